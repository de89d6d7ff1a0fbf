//! What a session knows of its project, and of the people it works for: settings, context files, skills, prompt templates,
//! and the system prompt made of them (P700–P778, P800).
//!
//! Nothing here is read by itself: a host says with [`ResourceOptions`] which places count, and then files are read, never
//! run. What was found, and what was wrong with it, is in [`Resources`].

pub mod context_files;
pub mod diagnostic;
mod discover;
pub mod frontmatter;
mod load;
mod options;
mod read;
pub mod settings;
mod settings_file;
mod skill_scan;
pub mod skills;
pub mod system_prompt;
pub mod templates;

pub use diagnostic::{ResourceDiagnostic, ResourceFault};
pub use load::Resources;
pub use options::{Discover, ResourceOptions, Section};
