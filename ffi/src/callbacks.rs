//! `branchline_callbacks`: the functions of a host that the library calls.

use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};

use branchline_core::Session;

use crate::error::Failure;
use crate::event::branchline_event;
use crate::input::{self, Versioned, invalid};

/// The functions of a host for one subscription. Start from `BRANCHLINE_CALLBACKS_INIT`.
///
/// Callbacks run on threads of the library, one at a time for each session. From inside them every function of the
/// library may be called, freeing their own session included; only waiting for their own session to be idle is
/// refused. They must return normally: no exception, no longjmp.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct branchline_callbacks {
    /// `sizeof(branchline_callbacks)`.
    pub struct_size: usize,
    /// Passed to the functions below; the library does not look at it.
    pub user_data: *mut c_void,
    /// Called for each event. The event lives until the function returns.
    pub on_event: Option<unsafe extern "C" fn(user_data: *mut c_void, event: *const branchline_event)>,
    /// Called exactly once when the library will not use this table any more, also when subscribing failed; may be NULL.
    pub destroy: Option<unsafe extern "C" fn(user_data: *mut c_void)>,
    /// Events held before the session waits for these callbacks; 0 is 1024.
    pub capacity: usize,
}

// SAFETY: repr(C), size first, pointers and integers only, laid out without padding; all zeros is valid.
unsafe impl Versioned for branchline_callbacks {
    const NAME: &'static str = "branchline_callbacks";
}

/// A host's table. Dropping it runs `destroy`: that is how it runs exactly once on every path.
pub(crate) struct Callbacks {
    table: branchline_callbacks,
}

// SAFETY: the contract of the table is that the library may call it from its own threads.
unsafe impl Send for Callbacks {}

impl Callbacks {
    /// # Safety
    /// `table` is NULL or as the header demands.
    pub(crate) unsafe fn read(table: *const branchline_callbacks) -> Result<Callbacks, Failure> {
        // SAFETY: as this function's.
        match unsafe { input::read(table) }? {
            Some(table) => Ok(Callbacks { table }),
            None => Err(invalid("callbacks is NULL")),
        }
    }

    pub(crate) fn check(&self) -> Result<(), Failure> {
        match self.table.on_event {
            Some(_) => Ok(()),
            None => Err(invalid("on_event is NULL")),
        }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.table.capacity
    }

    pub(crate) fn on_event(&self, event: *const branchline_event) {
        if let Some(on_event) = self.table.on_event {
            // SAFETY: the host's function, called as the header says.
            unsafe { on_event(self.table.user_data, event) };
        }
    }
}

impl Drop for Callbacks {
    fn drop(&mut self) {
        if let Some(destroy) = self.table.destroy {
            // SAFETY: the host's function, called as the header says.
            unsafe { destroy(self.table.user_data) };
        }
    }
}

thread_local! {
    /// What this thread is in a callback of: a session, a tool or a call, by its key.
    static INSIDE: Cell<Option<u64>> = const { Cell::new(None) };
    /// Id and sibling number of the session that waits for what this thread is asked to do.
    static SERVED: RefCell<Option<(String, u32)>> = const { RefCell::new(None) };
}

/// A number for something that has callbacks.
pub(crate) fn next_key() -> u64 {
    static KEYS: AtomicU64 = AtomicU64::new(0);
    KEYS.fetch_add(1, Ordering::Relaxed)
}

/// Runs something of a host as a callback of what has this key.
pub(crate) fn inside<T>(session: u64, callback: impl FnOnce() -> T) -> T {
    let before = INSIDE.replace(Some(session));
    let value = callback();
    INSIDE.set(before);
    value
}

/// Stands for every session; no id of one looks like this.
pub(crate) const ANY: &str = "*";

/// Runs something of a host's, a tool or a model, for a session; `ANY` when it is not known which one waits.
pub(crate) fn serving<T>(session_id: String, sibling: u32, callback: impl FnOnce() -> T) -> T {
    let before = SERVED.replace((!session_id.is_empty()).then_some((session_id, sibling)));
    let value = callback();
    SERVED.replace(before);
    value
}

/// Whether the calling thread is in a callback that this session waits for.
pub(crate) fn serves(session: &Session) -> bool {
    SERVED.with_borrow(|served| {
        served.as_ref().is_some_and(|(id, sibling)| id == ANY || (*sibling == session.sibling() && *id == session.id()))
    })
}

/// What the calling thread is in a callback of.
pub(crate) fn current() -> Option<u64> {
    INSIDE.get()
}
