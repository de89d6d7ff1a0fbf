//! The engine: what a host creates first. Worker threads, models and tools; no globals, so two can live in one process.
//!
//! Here it is made, and makes sessions; `options` is what a host says about it, `forms` the same as JSON, `models` and `choice`
//! are its models, `keys` what it stores, `end` its end.

mod choice;
mod end;
mod forms;
mod keys;
mod models;
mod options;

pub use forms::EngineForm;
pub use keys::StoredEntry;
pub use options::EngineOptions;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::runtime::{Handle, Runtime};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::error::{Error, ErrorCode, Result};
use crate::providers;
use crate::providers::scripted::{Script, ScriptedProvider};
use crate::providers::{
    Catalogue, Http, Keyring, Model, Models, Provider, Remote, Request, ResponseStream, Services, WireRecorder,
};
use crate::session::{self, Session, SessionOptions, Shared, Source};
use crate::tools::under_way::UnderWay;
use crate::tools::{self, Tool, Toolbox};
use crate::tree::{self, ListOptions, SessionInfo};

/// What a host creates first. Cheap to clone; all clones are the same engine.
///
/// Every method is legal from any thread. When the last clone is dropped every session is aborted and closed, without
/// waiting; [`shutdown`](Engine::shutdown) does the same and waits. Calls after that fail with `closed`.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

/// The owner of the runtime. Sessions hold [`EngineShared`] only, so they never keep it alive.
struct Inner {
    shared: Arc<EngineShared>,
    runtime: Mutex<Option<Runtime>>,
}

/// What sessions need of their engine.
pub(crate) struct EngineShared {
    pub(crate) handle: Handle,
    pub(crate) options: EngineOptions,
    pub(crate) models: Mutex<Models>,
    pub(crate) remote: Arc<Remote>,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) keyring: Arc<Keyring>,
    tools: Mutex<Vec<Arc<dyn Tool>>>,
    /// Those of `tools` that nobody has replaced are these.
    pub(crate) builtin: Vec<Arc<dyn Tool>>,
    scripted: Arc<ScriptedProvider>,
    recorder: Option<Arc<WireRecorder>>,
    /// Where commands find the agent's own programs, if the host named an agent directory (T207).
    pub(crate) program_dir: Option<PathBuf>,
    /// `None` once the engine was shut down.
    sessions: Mutex<Option<Vec<Weak<Shared>>>>,
    /// Fires when it is; ends the calls of its toolboxes.
    closing: CancellationToken,
    /// The calls of its toolboxes.
    tool_calls: UnderWay,
}

/// More would be a mistake, and take seconds to start and end.
const MOST_THREADS: usize = 512;

impl Engine {
    /// Starts an engine.
    ///
    /// Errors: `invalid_argument` for more than 512 worker threads; `internal` when they cannot be started; `file_exists` and
    /// `storage_failed` of the file to record to.
    pub fn new(options: EngineOptions) -> Result<Engine> {
        let default = || std::thread::available_parallelism().map_or(2, usize::from).min(4);
        let threads = options.worker_threads.unwrap_or_else(default).max(1);
        if threads > MOST_THREADS {
            let text =
                format!("{threads} worker threads are more than {MOST_THREADS}; a few are enough for many sessions");
            return Err(Error::new(ErrorCode::InvalidArgument, text));
        }
        // Before the runtime, which must not be dropped on an executor's thread.
        let recorder = options.record.as_ref().map(WireRecorder::create).transpose()?.map(Arc::new);
        // The I/O driver is for sockets only: no signal handler of the process is touched.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("branchline")
            .enable_io()
            .enable_time()
            .build()
            .map_err(|error| Error::new(ErrorCode::Internal, format!("cannot start worker threads: {error}")))?;
        let scripted = Arc::new(ScriptedProvider::builtin());
        let mut models = Models::default();
        models.add(scripted.clone());
        let catalogue = Arc::new(Catalogue::new(options.catalogue.clone()));
        let keyring = Arc::new(Keyring::new(&options.keys, catalogue.clone(), runtime.handle().clone()));
        let credentials = options.credentials.clone().unwrap_or_else(|| keyring.clone());
        let http = Http::new(options.network.clone(), providers::observers(&options.wire_observer, &recorder));
        let remote = Arc::new(Remote::new(
            Services { http, credentials, payload_hook: Mutex::new(options.payload_hook.clone()) },
            catalogue.clone(),
        ));
        let builtin = tools::builtin();
        let agent_dir = options.agent_dir.as_deref();
        let shared = EngineShared {
            program_dir: agent_dir.map(|dir| tree::resolve(&tree::expand_home(dir)).join("bin")),
            handle: runtime.handle().clone(),
            options,
            models: Mutex::new(models),
            remote,
            catalogue,
            keyring,
            tools: Mutex::new(builtin.clone()),
            builtin,
            scripted,
            recorder,
            sessions: Mutex::new(Some(Vec::new())),
            closing: CancellationToken::new(),
            tool_calls: UnderWay::new(),
        };
        Ok(Engine { inner: Arc::new(Inner { shared: Arc::new(shared), runtime: Mutex::new(Some(runtime)) }) })
    }

    pub(crate) fn shared(&self) -> &Arc<EngineShared> {
        &self.inner.shared
    }

    /// Adds the model `scripted/NAME` that answers from a script. `name` may be written with or without `scripted/`.
    ///
    /// Errors: `invalid_argument` for an empty name.
    pub fn add_scripted_model(&self, name: &str, script: Script) -> Result<()> {
        let id = name.strip_prefix("scripted/").unwrap_or(name);
        if id.is_empty() {
            return Err(Error::new(ErrorCode::InvalidArgument, "a scripted model needs a name"));
        }
        self.shared().scripted.add_named(id, &script);
        Ok(())
    }

    /// Adds a provider and its models, replacing one of the same name.
    pub fn add_provider(&self, provider: Arc<dyn Provider>) {
        lock(&self.shared().models).add(provider);
    }

    /// Adds a model that is reached over the network by one of the wire protocols, replacing one of the same provider
    /// and id. Keys come from [`EngineOptions::credentials`].
    ///
    /// Errors: `invalid_argument` without provider or id, or if the provider's name belongs to a provider that was added
    /// as a whole.
    pub fn add_model(&self, model: Model) -> Result<()> {
        lock(&self.shared().models).add_model(model, &self.shared().remote)
    }

    /// Asks a model, without a session: the request goes to the provider as it is, and what comes back is its stream. The
    /// work is done on the engine's threads, so any executor can poll the stream; dropping it ends the request.
    ///
    /// Errors: `unknown_model` when the model's provider is not known, `closed`.
    pub fn stream(&self, request: Request) -> Result<ResponseStream> {
        let shared = self.shared();
        if lock(&shared.sessions).is_none() {
            return Err(closed());
        }
        let name = &request.model.provider;
        let Some(provider) = shared.provider(name) else {
            return Err(Error::new(ErrorCode::UnknownModel, format!("no provider is called {name:?}")));
        };
        Ok(providers::stream_on(&shared.handle, provider, request))
    }

    /// Adds a tool for the sessions made from now on, replacing one of the same name.
    pub fn add_tool(&self, tool: Arc<dyn Tool>) {
        put_tool(&mut lock(&self.shared().tools), tool);
    }

    /// The engine's tools in a directory, without a session. They run on the engine's threads, with its operations, and
    /// its calls end with the engine.
    pub fn toolbox(&self, cwd: impl Into<PathBuf>) -> Toolbox {
        let shared = self.shared();
        let tools = lock(&shared.tools).clone();
        let operations = shared.options.operations.clone();
        Toolbox::on(shared.handle.clone(), None, cwd.into(), operations, tools)
            .until(shared.closing.clone(), shared.tool_calls.clone())
            .finding(shared.program_dir.clone())
    }

    /// Makes a new session (S289). Its file appears with the first message.
    ///
    /// Errors: `unknown_model`, `unknown_tool`, `invalid_session_id`, `file_exists`, `storage_failed`, `closed`.
    pub async fn create_session(&self, options: SessionOptions) -> Result<Session> {
        session::start(self.shared(), Source::New, options).await
    }

    /// Opens a session file. A path where there is none is a new session, whose file appears there with the first message
    /// (S48); read-only it is `storage_failed`.
    ///
    /// Errors: `invalid_session_file`, `session_locked`, `unknown_model`, `unknown_tool`, `storage_failed`, `closed`.
    pub async fn open_session(&self, path: impl AsRef<Path>, options: SessionOptions) -> Result<Session> {
        session::start(self.shared(), Source::File(path.as_ref().to_path_buf()), options).await
    }

    /// Opens the most recent session of a directory, or makes one.
    ///
    /// Errors: as [`open_session`](Engine::open_session).
    pub async fn continue_recent(&self, options: SessionOptions) -> Result<Session> {
        session::start(self.shared(), Source::Recent, options).await
    }

    /// Copies a session file into the session directory of `options`, under its own name or, when that is taken, with `-1`,
    /// `-2`, … before the extension, and opens the copy (S192). A file that is there already is opened itself. If it
    /// cannot be opened the copy is removed again.
    ///
    /// Errors: `storage_failed` when there is no such file, `invalid_argument` for options that write no file, and those of
    /// [`open_session`](Engine::open_session).
    pub async fn import_session(&self, path: impl AsRef<Path>, options: SessionOptions) -> Result<Session> {
        session::import_session(self.shared(), path.as_ref().to_path_buf(), options).await
    }

    /// Lists the session files of a working directory, or with `None` of all of them, most recent first. Where the
    /// options name no agent directory the engine's is used.
    ///
    /// Errors: `cancelled`, `closed`.
    pub async fn list_sessions(&self, cwd: Option<PathBuf>, options: ListOptions) -> Result<Vec<SessionInfo>> {
        let mut options = options;
        if options.location.agent_dir.is_none() {
            options.location.agent_dir.clone_from(&self.shared().options.agent_dir);
        }
        if options.location.session_dir.is_none() {
            options.location.session_dir = self.shared().options.settings.session_directory();
        }
        let list = move || match cwd {
            Some(cwd) => tree::list(cwd, &options),
            None => tree::list_all(&options),
        };
        self.shared().blocking(list).await
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("options", &self.shared().options).finish_non_exhaustive()
    }
}

impl EngineShared {
    /// The agent directory: the host's, else the environment's, else the usual one.
    pub(crate) fn agent_dir(&self) -> PathBuf {
        self.options.agent_dir.clone().unwrap_or_else(tree::agent_dir)
    }

    /// The engine's tools and those of one session, the latter winning.
    pub(crate) fn tools(&self, custom: &[Arc<dyn Tool>]) -> Vec<Arc<dyn Tool>> {
        let mut tools = lock(&self.tools).clone();
        custom.iter().for_each(|tool| put_tool(&mut tools, tool.clone()));
        tools
    }

    /// Enters a session into the list of those that end with the engine.
    pub(crate) fn register(&self, session: &Arc<Shared>) -> Result<()> {
        let mut sessions = lock(&self.sessions);
        let Some(sessions) = sessions.as_mut() else { return Err(closed()) };
        sessions.retain(|known| known.strong_count() > 0);
        sessions.push(Arc::downgrade(session));
        Ok(())
    }

    /// Runs blocking work on the engine's threads. Any executor can drive the future.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        if lock(&self.sessions).is_none() {
            return Err(closed());
        }
        let (reply, answer) = oneshot::channel();
        self.handle.spawn_blocking(move || {
            let _ = reply.send(work());
        });
        answer.await.unwrap_or_else(|_| Err(closed()))
    }
}

fn put_tool(tools: &mut Vec<Arc<dyn Tool>>, tool: Arc<dyn Tool>) {
    match tools.iter_mut().find(|known| known.definition().name == tool.definition().name) {
        Some(known) => *known = tool,
        None => tools.push(tool),
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn closed() -> Error {
    Error::new(ErrorCode::Closed, "the engine was shut down; create another")
}
