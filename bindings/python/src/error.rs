//! Errors, as exceptions of `branchline.errors`.

use std::path::Path;

use branchline::ErrorCode;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// The exception for an error of the library.
pub(crate) fn convert(py: Python<'_>, error: &branchline::Error) -> PyErr {
    make(py, error.code().name(), error.message(), error.path())
}

/// The exception for an argument that cannot be used.
pub(crate) fn invalid(py: Python<'_>, message: impl AsRef<str>) -> PyErr {
    make(py, ErrorCode::InvalidArgument.name(), message.as_ref(), None)
}

/// The exception for a fault of our own.
pub(crate) fn internal(py: Python<'_>, message: impl AsRef<str>) -> PyErr {
    make(py, ErrorCode::Internal.name(), message.as_ref(), None)
}

/// The exception for a wait that took too long.
pub(crate) fn timeout(py: Python<'_>) -> PyErr {
    make(py, ErrorCode::Timeout.name(), "the time allowed for the wait ran out", None)
}

/// The exception for the use of an object in a process that it was not made in.
pub(crate) fn forked(py: Python<'_>) -> PyErr {
    let message = "this object was made before fork() and cannot be used in the child; create or open it there";
    make(py, "forked", message, None)
}

fn make(py: Python<'_>, code: &str, message: &str, path: Option<&Path>) -> PyErr {
    static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let exception = MAKE
        .import(py, "branchline.errors", "make_error")
        .and_then(|make| make.call1((code, message, path.map(Path::to_path_buf))));
    match exception {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// Results of the library, as results of Python calls.
pub(crate) trait IntoPyResult<T> {
    /// The value, or the exception.
    fn py(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> IntoPyResult<T> for branchline::Result<T> {
    fn py(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| convert(py, &error))
    }
}
