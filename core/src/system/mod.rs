//! What depends on the operating system: time, descriptors to poll, process groups.

pub(crate) mod clock;
pub(crate) mod process;
mod process_tree;
pub(crate) mod spawn;
pub(crate) mod wake_fd;
