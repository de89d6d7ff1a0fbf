//! Text on its way to a person's screen.

use pyo3::prelude::*;
use pyo3::types::PyString;

/// The text without what a terminal would obey and what changes the order in which it is read.
///
/// That is escape sequences with their content (colours, titles, links), other control characters but LF and TAB, and the
/// controls of bidirectional text. CR LF becomes LF, and so does a CR by itself. A sequence that does not end in its line
/// loses only its beginning, so that it hides nothing. Half a surrogate pair becomes U+FFFD. The library stores and tells
/// text as it came: use this for what is shown. For HTML escape what comes out.
#[pyfunction]
pub(crate) fn sanitize_for_display(text: &Bound<'_, PyString>) -> PyResult<String> {
    let given = text.extract::<String>().or_else(|_| {
        let units = text.call_method1("encode", ("utf-16-le", "surrogatepass"))?;
        units.call_method1("decode", ("utf-16-le", "replace"))?.extract::<String>()
    })?;
    Ok(branchline::sanitize_for_display(&given).into_owned())
}
