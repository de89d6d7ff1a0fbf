//! The native half of the Python package: `branchline._branchline`.
//!
//! It holds no behaviour, only the crossing. Three rules make it safe in any Python program:
//!
//! - Engine threads never touch Python. A call that waits gives a [`pending::Pending`] that a Python thread drives, by
//!   blocking (interpreter released, Ctrl-C seen) or from an asyncio loop that is woken through a pipe. So no lock order
//!   between the interpreter and the engine exists, and an interpreter that shuts down meets no thread of ours.
//! - After `fork()` the child has none of the engine's threads. Every object remembers the process it was made in
//!   ([`owned::Owned`]): in another one calls fail with `forked`, and nothing is torn down.
//! - Errors become the exceptions of `branchline.errors`, by code ([`error`]).

mod context;
mod display;
mod engine;
mod error;
mod event;
mod models;
mod owned;
mod pending;
mod policy;
mod resources;
mod run;
mod session;
mod siblings;
mod stored;
mod tools;
mod tree;

/// The native half of `branchline`; use the package instead.
#[pyo3::pymodule]
mod _branchline {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::context::{
        abort_bash, abort_retry, abort_summary, compact, context_usage, edit_context, fork_messages, prompt_custom,
        record_bash, run_bash, send_custom_message, set_queue_modes, stats,
    };
    #[pymodule_export]
    use crate::display::sanitize_for_display;
    #[pymodule_export]
    use crate::engine::{Engine, ScriptControl};
    #[pymodule_export]
    use crate::event::RawEvent;
    #[pymodule_export]
    use crate::models::{
        Replay, add_host_provider, add_replay, available_models, configure_models, find_model, find_model_or_custom,
        model_problems, models, models_in_scope, set_key, set_key_source, set_login_source, set_payload_hook,
    };
    #[pymodule_export]
    use crate::pending::{Pending, Wakeups};
    #[pymodule_export]
    use crate::policy::{Budget, Hook, Permissions};
    #[pymodule_export]
    use crate::resources::{reload_resources, resources, set_resources};
    #[pymodule_export]
    use crate::run::{Events, Run};
    #[pymodule_export]
    use crate::session::Session;
    #[pymodule_export]
    use crate::siblings::{Exploration, adopt, branch, explore, import_session, is_sibling_of, new_session, switch};
    #[pymodule_export]
    use crate::stored::{forget_stored, store_key, store_login, stored_keys};
    #[pymodule_export]
    use crate::tools::{PythonTool, Request, Requests, ToolCall, Toolbox};
    #[pymodule_export]
    use crate::tree::{Branch, Entries, Structure, Tree, read_session};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        let codes: Vec<&str> = branchline::ErrorCode::ALL.iter().map(|code| code.name()).collect();
        module.add("ERROR_CODES", codes)
    }
}
