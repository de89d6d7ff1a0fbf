//! What depends on the operating system: descriptors to poll, process groups.

pub(crate) mod process;
pub(crate) mod wake_fd;
