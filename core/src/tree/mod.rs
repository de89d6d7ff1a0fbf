//! The session tree: an append-only log of entries, each with a parent (sections A to C of the session rules).
//!
//! Read these in order: [`Tree`] (open, create, ask), [`Cursor`] (a position, and appending there), [`Context`] (what the
//! model sees at a leaf). Behind them: `log` holds the bytes, `index` knows who is whose parent, `scan` and `fact` read a
//! file once into an index, `fork` copies, `list` and `discover` look at directories. The tree knows nothing of agents.
//!
//! Opening reads every byte once and keeps no bodies: about 70 bytes an entry. A branch costs O(path), an append O(1).
//! Damage is reported as [`Diagnostic`]s and never cut away.

mod adjacency;
mod append;
mod context;
mod contribution;
mod copy;
mod cursor;
mod diagnostic;
mod discover;
mod entry;
mod fact;
mod fork;
mod header;
mod id_table;
mod ids;
mod import;
mod index;
mod kind;
mod labels;
mod lines;
mod list;
pub(crate) mod location;
mod log;
mod migrate;
mod name_order;
mod new_entry;
mod open;
mod options;
mod repair;
mod scan;
mod session_file;
mod storage;
mod structure;
mod system;
mod time;
#[allow(clippy::module_inception)]
mod tree;

pub use context::{Context, ContextEntry, ContextMessage};
pub(crate) use contribution::contribution;
pub use cursor::Cursor;
pub use diagnostic::{Diagnostic, DiagnosticKind};
pub use discover::{IdMatch, find_by_id};
pub use entry::Entry;
pub use ids::{IdSource, SystemIds, is_valid_session_id};
pub(crate) use import::{Imported, import};
pub use kind::EntryKind;
pub use labels::Label;
pub use list::{ListOptions, ListProgress, OnProgress, SessionInfo, list, list_all};
pub(crate) use location::resolve;
pub use location::{agent_dir, session_dir, session_dir_name};
pub(crate) use location::{expand_home, resolve as resolve_path};
pub use new_entry::{BranchSummaryEntry, CompactionEntry};
pub(crate) use open::session_directory;
pub use options::{CreateOptions, Durability, OpenOptions};
pub use repair::{Repair, repair};
pub use storage::{FileExtent, FileFacts, FileMode, OsStorage, Storage, StorageFile};
pub use structure::Structure;
pub use system::{SystemFold, fold_system, prompt_text};
pub use time::{format_iso, parse_iso};
pub use tree::{Branch, Entries, Tree};
