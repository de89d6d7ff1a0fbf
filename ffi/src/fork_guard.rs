//! What happens after `fork()`.
//!
//! Hazard: the child gets a copy of the memory but only one thread. Locks that other threads held stay locked, worker
//! threads are gone, and the parent still owns the session files; a child that went on would hang or write into them.
//! Handlers of `pthread_atfork` would change the process and run in hosts that never fork on purpose. So the first
//! handle marks the process as owner, and every call asks whether this still is that process: with a page that the
//! kernel clears in children (one load), or where there is none by the process id (a system call, about 50 ns).

use std::sync::OnceLock;
#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicU32, Ordering};

enum Owner {
    /// A word that is 1 in the owner and 0 in its children.
    #[cfg(target_os = "linux")]
    Page(&'static AtomicU32),
    Process(u32),
}

static OWNER: OnceLock<Owner> = OnceLock::new();

/// Makes this process the owner of all handles, unless one is already.
pub(crate) fn claim() {
    OWNER.get_or_init(|| {
        #[cfg(target_os = "linux")]
        if let Some(word) = wiped_word() {
            word.store(1, Ordering::Relaxed);
            return Owner::Page(word);
        }
        Owner::Process(std::process::id())
    });
}

/// Whether this process is a child of the one that owns the handles.
pub(crate) fn is_child() -> bool {
    match OWNER.get() {
        None => false,
        #[cfg(target_os = "linux")]
        Some(Owner::Page(word)) => word.load(Ordering::Relaxed) == 0,
        Some(Owner::Process(id)) => *id != std::process::id(),
    }
}

#[cfg(target_os = "linux")]
fn wiped_word() -> Option<&'static AtomicU32> {
    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
    let length = rustix::param::page_size();
    // SAFETY: a fresh private mapping at an address of the kernel's choice; nothing else refers to it.
    let page =
        unsafe { mmap_anonymous(std::ptr::null_mut(), length, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE) };
    let page = page.ok()?;
    // SAFETY: the page was mapped above with this length, and is used by nobody yet.
    unsafe {
        if madvise(page, length, Advice::LinuxWipeOnFork).is_err() {
            let _ = munmap(page, length);
            return None;
        }
        // Never unmapped, zeroed by the kernel, aligned to a page: a valid word for the rest of the process.
        Some(&*page.cast::<AtomicU32>())
    }
}
