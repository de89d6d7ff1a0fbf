//! What belongs to one process.

use pyo3::prelude::*;

use crate::error;

/// A value that may only be used, and only be dropped, in the process it was made in.
///
/// After `fork()` a lock may be held by a thread that does not exist in the child, for ever. So the child refuses every
/// call, and leaks what it would otherwise drop: the memory is the parent's copy and ends with the process.
pub(crate) struct Owned<T> {
    value: Option<T>,
    process: u32,
}

impl<T> Owned<T> {
    pub(crate) fn new(value: T) -> Owned<T> {
        Owned { value: Some(value), process: std::process::id() }
    }

    /// The value. Errors: `forked`.
    pub(crate) fn get(&self, py: Python<'_>) -> PyResult<&T> {
        match &self.value {
            Some(value) if self.process == std::process::id() => Ok(value),
            _ => Err(error::forked(py)),
        }
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            std::mem::forget(self.value.take());
        }
    }
}
