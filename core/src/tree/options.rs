//! How a tree is opened or created.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;

use super::ids::{IdSource, SystemIds};
use super::storage::{OsStorage, Storage};

/// When an appended entry is on the disk, not only with the operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// Whenever the operating system likes: a crash of the machine may lose the last seconds, a crash of the process
    /// nothing. What pi does.
    #[default]
    None,
    /// When a turn ends.
    Turn,
    /// Before the append returns. A failed sync refuses all later appends: nobody can tell what is on the disk.
    Entry,
}

/// Options of [`Tree::open`](super::Tree::open).
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// Working directory instead of the header's (S47).
    pub cwd: Option<PathBuf>,
    /// Where sessions made from this one go; by default the file's directory (S47).
    pub session_dir: Option<PathBuf>,
    /// Change nothing on the disk and take no lock; appends fail.
    pub read_only: bool,
    /// When appended entries are on the disk.
    pub durability: Durability,
    /// The file system.
    pub storage: Arc<dyn Storage>,
    /// Source of ids and times.
    pub ids: Arc<dyn IdSource>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        OpenOptions {
            cwd: None,
            session_dir: None,
            read_only: false,
            durability: Durability::None,
            storage: Arc::new(OsStorage),
            ids: Arc::new(SystemIds),
        }
    }
}

/// Options of [`Tree::create`](super::Tree::create) and of everything else that makes a new session.
#[derive(Debug, Clone)]
pub struct CreateOptions {
    /// Directory of the session file; by default the one of the working directory below the agent directory (S39).
    pub session_dir: Option<PathBuf>,
    /// Agent directory; by default `$PI_CODING_AGENT_DIR` or `~/.pi/agent` (S38).
    pub agent_dir: Option<PathBuf>,
    /// Session id instead of a fresh UUID (S16).
    pub id: Option<String>,
    /// Path of the session this one comes from, for the header (S10).
    pub parent_session: Option<String>,
    /// Never touch the disk (S100).
    pub in_memory: bool,
    /// When appended entries are on the disk.
    pub durability: Durability,
    /// The file system.
    pub storage: Arc<dyn Storage>,
    /// Source of ids and times.
    pub ids: Arc<dyn IdSource>,
}

impl Default for CreateOptions {
    fn default() -> Self {
        CreateOptions {
            session_dir: None,
            agent_dir: None,
            id: None,
            parent_session: None,
            in_memory: false,
            durability: Durability::None,
            storage: Arc::new(OsStorage),
            ids: Arc::new(SystemIds),
        }
    }
}
