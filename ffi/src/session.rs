//! `branchline_session`: making, asking about and ending sessions. What can be done with one is in `session_run`,
//! `session_tree` and `session_append`.

use std::ffi::c_char;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use branchline_core::Session;

use crate::block_on::{Deadline, block_on, block_until};
use crate::boundary::export;
use crate::callbacks::{self, Callbacks, branchline_callbacks};
use crate::engine::{EngineObject, FREE_LIMIT, branchline_engine};
use crate::error::{Failure, branchline_error};
use crate::finished::Threads;
use crate::handle::{self, Handle, Object, Table};
use crate::input::invalid;
use crate::options::{self, branchline_session_options};
use crate::status::branchline_status;
use crate::subscription::{self, Subscription, SubscriptionObject, Turns, branchline_subscription};
use crate::{input, json, output};

/// A live session: one cursor over one session tree, with its model, tools, queues and agent loop.
pub struct branchline_session {
    _opaque: [u8; 0],
}

pub(crate) struct SessionObject {
    pub(crate) core: Session,
    /// Tells callbacks of this session from others.
    pub(crate) key: u64,
    turns: Turns,
    subscriptions: Mutex<Vec<Weak<Subscription>>>,
    threads: Arc<Threads>,
}

static SESSIONS: Table<SessionObject> = Table::new();

impl Object for SessionObject {
    type C = branchline_session;
    const KIND: usize = 3;
    const NAME: &'static str = "session";
    fn table() -> &'static Table<Self> {
        &SESSIONS
    }
}

impl Drop for SessionObject {
    /// The host let go of the session, so it hears no more of it.
    fn drop(&mut self) {
        self.subscriptions().into_iter().for_each(|subscription| subscription.cancel());
    }
}

impl SessionObject {
    fn new(core: Session, threads: Arc<Threads>) -> Result<Handle<SessionObject>, Failure> {
        let key = callbacks::next_key();
        Handle::new(SessionObject { core, key, turns: Turns::default(), subscriptions: Mutex::default(), threads })
    }

    /// A session made from this one.
    pub(crate) fn sibling(&self, core: Session) -> Result<Handle<SessionObject>, Failure> {
        SessionObject::new(core, self.threads.clone())
    }

    fn subscriptions(&self) -> Vec<Arc<Subscription>> {
        let list = self.subscriptions.lock().unwrap_or_else(PoisonError::into_inner);
        list.iter().filter_map(Weak::upgrade).collect()
    }

    fn subscribe(&self, callbacks: Callbacks) -> Result<Weak<Subscription>, Failure> {
        let events = self.core.subscribe(options::subscribe(callbacks.capacity()));
        let subscription = subscription::start(events, callbacks, self.key, self.turns.clone(), &self.threads)?;
        let weak = Arc::downgrade(&subscription);
        let mut list = self.subscriptions.lock().unwrap_or_else(PoisonError::into_inner);
        list.retain(|known| known.strong_count() > 0);
        list.push(weak.clone());
        Ok(weak)
    }

    /// Waits until all callbacks have seen what is queued for them now. False when the time ran out.
    pub(crate) fn flush(&self, deadline: Deadline) -> bool {
        self.subscriptions().iter().all(|subscription| subscription.flush(deadline))
    }
}

/// Makes a new session. Its file appears with the first message. `options` may be NULL.
///
/// Ownership: borrows `engine` and `options`; `out_session` is yours: free it with branchline_session_free. It may
/// outlive the engine, whose end closes it.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, UNKNOWN_MODEL, UNKNOWN_TOOL, INVALID_SESSION_ID, FILE_EXISTS,
/// STORAGE_FAILED, CLOSED, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_create(
    engine: *mut branchline_engine,
    options: *const branchline_session_options,
    out_session: *mut *mut branchline_session,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        output::required(out_session, "out_session")?;
        let engine = handle::get::<EngineObject>(engine)?;
        let session = block_on(engine.core.create_session(options::session(options, ".")?))?;
        output::handle(out_session, SessionObject::new(session, engine.threads.clone())?);
        Ok(())
    })
}

/// Opens a session file, also one that pi made. A path where there is none is a new session, whose file appears there with
/// the first message; read-only it is STORAGE_FAILED. Unless it is opened read-only, nobody else can open it for writing
/// until the session is closed. `options` may be NULL.
///
/// Ownership: borrows everything; `out_session` is yours: free it with branchline_session_free.
/// Threads: any, also from inside callbacks. Blocks while the file is read.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, INVALID_SESSION_FILE, SESSION_LOCKED, STORAGE_FAILED, UNKNOWN_MODEL,
/// UNKNOWN_TOOL, CLOSED, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_open(
    engine: *mut branchline_engine,
    path: *const c_char,
    options: *const branchline_session_options,
    out_session: *mut *mut branchline_session,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        output::required(out_session, "out_session")?;
        let engine = handle::get::<EngineObject>(engine)?;
        let path = input::optional_path(path).ok_or_else(|| invalid("path is NULL"))?;
        let session = block_on(engine.core.open_session(path, options::session(options, "")?))?;
        output::handle(out_session, SessionObject::new(session, engine.threads.clone())?);
        Ok(())
    })
}

/// Opens the most recent session of a working directory, or makes one. `options` may be NULL.
///
/// Ownership: borrows everything; `out_session` is yours: free it with branchline_session_free.
/// Threads: any, also from inside callbacks. Blocks while files are read.
/// Errors: as branchline_session_open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_continue_recent(
    engine: *mut branchline_engine,
    options: *const branchline_session_options,
    out_session: *mut *mut branchline_session,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        output::required(out_session, "out_session")?;
        let engine = handle::get::<EngineObject>(engine)?;
        let session = block_on(engine.core.continue_recent(options::session(options, ".")?))?;
        output::handle(out_session, SessionObject::new(session, engine.threads.clone())?);
        Ok(())
    })
}

/// Copies a session file into the session directory of `options`, under its own name or, when that is taken, with "-1",
/// "-2" and so on before the extension, and opens the copy. A file that is there already is opened itself. `options` may be
/// NULL. See branchline_session_import_session for the same in place of a session.
///
/// Ownership: borrows everything; `out_session` is yours: free it with branchline_session_free.
/// Threads: any, also from inside callbacks. Blocks while files are read.
/// Errors: as branchline_session_open; STORAGE_FAILED also when there is no such file, INVALID_ARGUMENT also for options that
/// write no file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_import(
    engine: *mut branchline_engine,
    path: *const c_char,
    options: *const branchline_session_options,
    out_session: *mut *mut branchline_session,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        output::required(out_session, "out_session")?;
        let engine = handle::get::<EngineObject>(engine)?;
        let path = input::optional_path(path).ok_or_else(|| invalid("path is NULL"))?;
        let session = block_on(engine.core.import_session(path, options::session(options, ".")?))?;
        output::handle(out_session, SessionObject::new(session, engine.threads.clone())?);
        Ok(())
    })
}

/// One string of a session.
unsafe fn ask<T: Into<Vec<u8>>>(
    session: *const branchline_session,
    out: *mut *mut c_char,
    answer: impl FnOnce(&Session) -> Option<T>,
) -> Result<(), Failure> {
    output::required(out, "the place for the result")?;
    let session = handle::get::<SessionObject>(session)?;
    // SAFETY: valid for writing, as the header demands of the functions below.
    unsafe { output::string(out, answer(&session.core)) };
    Ok(())
}

/// The session's id.
///
/// Ownership: borrows `session`; `out_id` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_id(
    session: *const branchline_session,
    out_id: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, { ask(session, out_id, |session| Some(session.id())) })
}

/// The session's file, which may not exist yet; NULL in memory. Bytes as the operating system has them.
///
/// Ownership: borrows `session`; `out_path` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_path(
    session: *const branchline_session,
    out_path: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, {
        ask(session, out_path, |session| session.path().map(|path| path.as_os_str().as_encoded_bytes().to_vec()))
    })
}

/// The working directory. Bytes as the operating system has them.
///
/// Ownership: borrows `session`; `out_cwd` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_cwd(
    session: *const branchline_session,
    out_cwd: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, { ask(session, out_cwd, |session| Some(session.cwd().as_os_str().as_encoded_bytes().to_vec())) })
}

/// The id of the entry the session stands on; NULL before the first entry.
///
/// Ownership: borrows `session`; `out_id` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_leaf(
    session: *const branchline_session,
    out_id: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, { ask(session, out_id, Session::leaf) })
}

/// The session's name; NULL if it has none.
///
/// Ownership: borrows `session`; `out_name` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_name(
    session: *const branchline_session,
    out_name: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, { ask(session, out_name, Session::name) })
}

/// What the session is doing, as JSON: `{"id","path","cwd","name","phase","running","sibling","leaf","model",
/// "modelNotice"?,"thinkingLevel","tools","steering","followUp","pendingBash","contextMessages"}`; `phase` is "idle",
/// "running", "retrying" (a run that waits before it makes a failed request again), "compacting" (also in the middle of a
/// run) or "closed"; `running` says whether a run is active; `modelNotice` says why the model is another one than the
/// file's, if it is.
///
/// Ownership: borrows `session`; `out_json` is yours: free it with branchline_string_free.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_state(
    session: *const branchline_session,
    out_json: *mut *mut c_char,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, { ask(session, out_json, |session| Some(json::state(session))) })
}

/// Has functions called for each event from now on, until the session ends or is freed or the subscription is freed.
/// On a closed session `destroy` is all that is called.
///
/// Ownership: borrows `session`; copies `callbacks`, of which `destroy` runs exactly once, on failure before this
/// returns (unless the table could not be read: NULL, or a wrong struct_size). `out_subscription` may be NULL; otherwise
/// it is yours: free it with branchline_subscription_free.
/// Threads: any, also from inside callbacks. The functions are called on threads of the library, one at a time.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED, INTERNAL when no thread can be started.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_subscribe(
    session: *mut branchline_session,
    callbacks: *const branchline_callbacks,
    out_subscription: *mut *mut branchline_subscription,
    error: *mut *mut branchline_error,
) -> branchline_status {
    // Read before anything can fail, also in a forked child: from here on the table's end is ours to tell.
    // SAFETY: as the header demands.
    let callbacks = unsafe { Callbacks::read(callbacks) };
    export!(error, {
        let callbacks = callbacks?;
        callbacks.check()?;
        let session = handle::get::<SessionObject>(session)?;
        let subscription = session.subscribe(callbacks)?;
        if !out_subscription.is_null() {
            output::handle(out_subscription, Handle::new(SubscriptionObject(subscription))?);
        }
        Ok(())
    })
}

/// Aborts what runs, ends the session and waits until its file is released. Calls to it fail with CLOSED from then on;
/// what is stored can still be read. Closing twice is fine.
///
/// Ownership: borrows `session`, which still has to be freed.
/// Threads: any, also from inside callbacks.
/// Errors: INVALID_ARGUMENT, INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_close(
    session: *mut branchline_session,
    error: *mut *mut branchline_error,
) -> branchline_status {
    export!(error, { Ok(block_on(handle::get::<SessionObject>(session)?.core.close())?) })
}

/// Frees a session: closes it, waiting at most 5 seconds, and from inside a callback not at all. No callback of it
/// starts any more; one that is running on another thread runs on. NULL is fine.
///
/// Ownership: takes `session`. Queues and subscriptions of it stay valid until they are freed too, in any order.
/// Threads: any, also from inside its own callbacks.
/// Errors: INVALID_HANDLE, FORKED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn branchline_session_free(session: *mut branchline_session) -> branchline_status {
    export!(std::ptr::null_mut(), {
        let Some(session) = handle::take::<SessionObject>(session)? else { return Ok(()) };
        session.subscriptions().into_iter().for_each(|subscription| subscription.cancel());
        // Closing begins here in any case: somebody else may wait for the session and would keep it alive.
        let closing = session.core.close();
        if callbacks::current().is_none() {
            // A file that was let go of can be opened again at once.
            let _ = block_until(closing, Deadline::after(Some(FREE_LIMIT)));
        }
        Ok(())
    })
}
