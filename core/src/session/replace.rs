//! From one session to the next: a new one, another file, a file from elsewhere (S189–S192).
//!
//! pi replaces its only session by the next one. Here a session is an object of the host, so [`Session::new_session`]
//! leaves it open, like a fork does; [`Session::switch`] and [`Session::import_session`] close it, but only when the next one is
//! open, so that a failure leaves everything as it was.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::open::{Choices, Source, launch, make_tree};
use super::sibling::{BranchOptions, BranchPoint};
use super::{Session, SessionOptions, Shared};
use crate::engine::EngineShared;
use crate::error::{Error, ErrorCode, Result};
use crate::tree::{
    CreateOptions, Imported, OpenOptions, OsStorage, Storage, Tree, expand_home, import, resolve, session_directory,
};

/// Details of [`Session::new_session`].
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct NewSessionOptions {
    /// Record this session's file in the new one's header as the one it came from (S10).
    pub record_parent: bool,
    /// The new session's name (S290).
    pub name: Option<String>,
}

impl NewSessionOptions {
    /// Sets [`record_parent`](Self::record_parent).
    pub fn record_parent(mut self, record: bool) -> Self {
        self.record_parent = record;
        self
    }

    /// Sets [`name`](Self::name).
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }
}

/// Details of [`Session::switch`] and [`Session::import_session`].
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct SwitchOptions {
    /// Working directory instead of the file's own, for a file whose own does not exist (S191).
    pub cwd: Option<PathBuf>,
}

impl SwitchOptions {
    /// Sets [`cwd`](Self::cwd).
    pub fn cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }
}

impl Session {
    /// Makes a new, empty session in the same directory, or in memory (S190). It has this session's working directory,
    /// model, level, tools, hooks, system prompt, resources and settings. This session stays open, also while it runs.
    ///
    /// Errors: `not_saved` when this session should be recorded and has no file yet, `closed`, `storage_failed`.
    pub async fn new_session(&self, options: NewSessionOptions) -> Result<Session> {
        let tree = self.tree();
        if options.record_parent && tree.path().is_some() && !tree.is_saved() {
            let text = "the session has no file yet that the new one could name; send a message first";
            return Err(Error::new(ErrorCode::NotSaved, text));
        }
        let new = self.engine().blocking(move || tree.new_session(options.record_parent)).await?;
        let choices = Choices { name: options.name, read_only: false, ..self.shared().choices() };
        launch(self.engine(), new, choices).await
    }

    /// Opens another session file in place of this session (S191): when it is open, what runs here is aborted and stored
    /// and this session is closed (S189). Hooks, tools of the host, system prompt, settings, durability and the choice of
    /// tools made when this session was made are taken over; model and level are what the file says (F.2), and only where
    /// it says nothing this session's. On any error this session is as it was.
    ///
    /// Errors: as [`Engine::open_session`](crate::Engine::open_session), `working_directory_missing` among them.
    pub async fn switch(&self, path: impl AsRef<Path>, options: SwitchOptions) -> Result<Session> {
        let path = path.as_ref().to_path_buf();
        if self.is_own_file(&path) {
            // Its lock is ours. Another cursor on it, where whoever opens the file would stand.
            let last = self.tree().last_id().map_or(BranchPoint::Start, BranchPoint::Entry);
            let next = self.branch(last, BranchOptions::default()).await?;
            self.close().await?;
            return Ok(next);
        }
        self.replace_by(Opened { path, copied: false }, options).await
    }

    /// Copies a session file into this session's directory and opens the copy in place of this session, as
    /// [`switch`](Session::switch) does (S192). The copy has the file's name, with `-1`, `-2`, … before the extension when
    /// that is taken; a file that is in the directory already is opened itself. If it cannot be opened the copy is
    /// removed again.
    ///
    /// Errors: `invalid_argument` in memory, where there is no directory; `storage_failed` when there is no such file;
    /// and those of [`switch`](Session::switch).
    pub async fn import_session(&self, path: impl AsRef<Path>, options: SwitchOptions) -> Result<Session> {
        let Some(directory) = self.tree().session_dir().map(Path::to_path_buf) else {
            let text = "an in-memory session has no directory; use Engine::import_session";
            return Err(Error::new(ErrorCode::InvalidArgument, text));
        };
        let (source, tree) = (path.as_ref().to_path_buf(), self.tree());
        let copy = move || import(&*tree.shared.storage, &source, &directory, tree.shared.durability);
        let Imported { path, copied } = self.engine().blocking(copy).await?;
        if !copied {
            return self.switch(path, options).await;
        }
        self.replace_by(Opened { path, copied }, options).await
    }

    fn is_own_file(&self, path: &Path) -> bool {
        let tree = self.tree();
        let Some(own) = tree.path().filter(|_| tree.is_saved()) else { return false };
        let identity = |path: &Path| tree.shared.storage.facts(path).ok().map(|facts| facts.identity);
        resolve(path) == own || identity(path).is_some_and(|it| identity(&own) == Some(it))
    }

    async fn replace_by(&self, file: Opened, options: SwitchOptions) -> Result<Session> {
        self.shared().family()?; // a session that is over has no successor
        let next = open(self.engine(), self.shared(), file, options).await?;
        self.close().await?;
        Ok(next)
    }
}

/// A file to go on with.
struct Opened {
    path: PathBuf,
    copied: bool,
}

async fn open(engine: &Arc<EngineShared>, from: &Arc<Shared>, file: Opened, options: SwitchOptions) -> Result<Session> {
    let ours = from.choices_made();
    let choices = Choices {
        name: None,
        model: None,
        last_resort_model: from.state().model,
        thinking_level: None,
        resources: from.resource_options(),
        loaded: None,
        ..ours.clone()
    };
    let session_options = SessionOptions {
        session_dir: from.tree.session_dir().map(Path::to_path_buf),
        durability: ours.durability,
        storage: Some(from.tree.shared.storage.clone()),
        read_only: ours.read_only,
        ..SessionOptions::new(options.cwd.unwrap_or_default())
    };
    let Opened { path, copied } = file;
    let opened = path.clone();
    let opening = engine.blocking(move || make_tree(Source::File(opened), session_options, None));
    let session = match opening.await {
        Ok(tree) => {
            let same = tree.cwd() == from.cwd;
            launch(engine, tree, if same { choices } else { choices.in_another_project() }).await
        }
        Err(error) => Err(error),
    };
    if session.is_err() && copied {
        remove(engine, from.tree.shared.storage.clone(), path).await;
    }
    session
}

async fn remove(engine: &Arc<EngineShared>, storage: Arc<dyn Storage>, path: PathBuf) {
    let _ =
        engine.blocking(move || storage.remove(&path).map_err(|error| Error::storage("remove", &path, &error))).await;
}

/// Copies a file into the session directory that the options name and opens it (S192).
pub(crate) async fn import_session(
    engine: &Arc<EngineShared>,
    path: PathBuf,
    mut options: SessionOptions,
) -> Result<Session> {
    if options.in_memory || options.read_only {
        let text = "an import writes a file; open the session read-only where it is instead";
        return Err(Error::new(ErrorCode::InvalidArgument, text));
    }
    let settings = options.settings.as_ref().unwrap_or(&engine.options.settings);
    options.session_dir = options.session_dir.or_else(|| settings.session_directory());
    let agent_dir = engine.options.agent_dir.clone();
    let wanted = options.clone();
    let storage: Arc<dyn Storage> = options.storage.clone().unwrap_or_else(|| Arc::new(OsStorage));
    let theirs = storage.clone();
    let copy = move || {
        // Without a working directory the session keeps its own, and is filed under that.
        let cwd = match wanted.cwd.as_os_str().is_empty() {
            false => wanted.cwd,
            true => {
                let look = OpenOptions { read_only: true, storage: theirs.clone(), ..OpenOptions::default() };
                Tree::open(expand_home(&path), look)?.cwd().to_path_buf()
            }
        };
        let create = CreateOptions { session_dir: wanted.session_dir, agent_dir, ..CreateOptions::default() };
        import(&*theirs, &path, &session_directory(&create, &cwd), wanted.durability)
    };
    let Imported { path, copied } = engine.blocking(copy).await?;
    let session = super::start(engine, Source::File(path.clone()), options).await;
    if session.is_err() && copied {
        remove(engine, storage, path).await;
    }
    session
}
