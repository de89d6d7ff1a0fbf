//! branchline: an embeddable coding-agent library.
//!
//! A host creates an [`engine`], opens a [`session`], prompts it, watches its events, moves around its [`tree`] and
//! forks it, all inside its own process. The modules below are the table of contents of the product; arrows of
//! dependency point down this list only.

pub mod agent;
pub mod error;
pub mod json;
pub mod message;
pub mod resources;
pub mod session;
pub mod tree;

pub use error::{Error, ErrorCode, Result};
