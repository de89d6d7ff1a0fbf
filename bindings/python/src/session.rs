//! Sessions.

use std::path::PathBuf;

use branchline::{ForkPosition, NavigateOptions, PromptOptions, SubscribeOptions, json};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::Value;

use crate::context;
use crate::engine;
use crate::error;
use crate::owned::Owned;
use crate::pending::Pending;
use crate::run::{Events, Run};
use crate::tree::Tree;

/// `branchline::Session`.
#[pyclass(frozen, module = "branchline._branchline")]
pub(crate) struct Session {
    owned: Owned<(branchline::Session, branchline::Engine)>,
    /// The functions behind its tools, which live as long as it.
    keep: Option<Py<PyAny>>,
}

impl Session {
    pub(crate) fn get(&self, py: Python<'_>) -> PyResult<&branchline::Session> {
        Ok(&self.owned.get(py)?.0)
    }

    pub(crate) fn own(&self, py: Python<'_>) -> PyResult<branchline::Session> {
        self.get(py).cloned()
    }

    pub(crate) fn heir(&self, py: Python<'_>) -> PyResult<Heir> {
        let keep = self.keep.as_ref().map(|keep| keep.clone_ref(py));
        Ok(Heir { engine: self.owned.get(py)?.1.clone(), keep })
    }
}

/// What sessions that come from one another have in common: sessions do not keep their engine alive, so their Python
/// objects do.
pub(crate) struct Heir {
    pub(crate) engine: branchline::Engine,
    /// The functions behind their tools.
    pub(crate) keep: Option<Py<PyAny>>,
}

impl Heir {
    pub(crate) fn session(self, session: branchline::Session) -> Session {
        Session { owned: Owned::new((session, self.engine)), keep: self.keep }
    }

    pub(crate) fn clone_ref(&self, py: Python<'_>) -> Heir {
        Heir { engine: self.engine.clone(), keep: self.keep.as_ref().map(|keep| keep.clone_ref(py)) }
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.keep)
    }
}

/// A call that gives an id.
pub(crate) fn id_call(future: impl Future<Output = branchline::Result<String>> + Send + 'static) -> Pending {
    Pending::new(future, |py, id| Ok(id.into_pyobject(py)?.into_any()))
}

pub(crate) fn json_value(py: Python<'_>, text: &str) -> PyResult<Value> {
    py.detach(|| json::parse_given(text.as_bytes()))
        .map_err(|problem| error::invalid(py, format!("the value {problem}")))
}

#[pymethods]
impl Session {
    /// A tool may refer to its session: the garbage collector has to see that.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.keep)
    }

    fn sibling(&self, py: Python<'_>) -> PyResult<u32> {
        Ok(self.get(py)?.sibling())
    }

    fn id(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.get(py)?.id())
    }

    fn path(&self, py: Python<'_>) -> PyResult<Option<PathBuf>> {
        Ok(self.get(py)?.path())
    }

    fn cwd(&self, py: Python<'_>) -> PyResult<PathBuf> {
        Ok(self.get(py)?.cwd())
    }

    fn leaf(&self, py: Python<'_>) -> PyResult<Option<String>> {
        Ok(self.get(py)?.leaf())
    }

    fn name(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let session = self.get(py)?;
        Ok(py.detach(|| session.name()))
    }

    /// A snapshot, as keywords of `SessionState`.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let state = self.get(py)?.state();
        let dict = PyDict::new(py);
        dict.set_item("phase", state.phase.name())?;
        dict.set_item("running", state.running)?;
        dict.set_item("sibling", state.sibling)?;
        dict.set_item("leaf", state.leaf)?;
        dict.set_item("model", state.model)?;
        dict.set_item("model_notice", state.model_notice)?;
        dict.set_item("thinking_level", state.thinking_level)?;
        dict.set_item("tools", state.tools)?;
        dict.set_item("steering", state.steering)?;
        dict.set_item("follow_up", state.follow_up)?;
        dict.set_item("pending_bash", state.pending_bash)?;
        dict.set_item("context_messages", state.context_messages)?;
        Ok(dict)
    }

    fn tree(&self, py: Python<'_>) -> PyResult<Tree> {
        Ok(Tree::new(self.get(py)?.tree()))
    }

    /// Sends a prompt; the result is a `Run`, given when the prompt is accepted.
    fn prompt(
        this: PyRef<'_, Self>,
        text: String,
        images_json: &str,
        when_running: &str,
        expand: bool,
        forced_prompt: Option<String>,
        capacity: usize,
    ) -> PyResult<Pending> {
        let py = this.py();
        let images = match json_value(py, images_json)? {
            Value::Array(images) => images,
            _ => return Err(error::invalid(py, "images is a list of image blocks")),
        };
        let when_running = context::when_running(py, when_running)?;
        let mut options =
            PromptOptions::default().images(images).when_running(when_running).expand(expand).capacity(capacity);
        options.forced_prompt = forced_prompt;
        let session = this.own(py)?;
        Ok(Pending::new(async move { session.prompt(text, options).await }, |py, run| {
            Ok(Bound::new(py, Run::new(run))?.into_any())
        }))
    }

    fn steer(&self, py: Python<'_>, text: String) -> PyResult<Pending> {
        let session = self.own(py)?;
        Ok(Pending::unit(async move { session.steer(text).await }))
    }

    fn follow_up(&self, py: Python<'_>, text: String) -> PyResult<Pending> {
        let session = self.own(py)?;
        Ok(Pending::unit(async move { session.follow_up(text).await }))
    }

    /// Empties both queues; the result is a tuple of their texts.
    fn clear_queues(&self, py: Python<'_>) -> PyResult<Pending> {
        let session = self.own(py)?;
        Ok(Pending::new(async move { session.clear_queues().await }, |py, texts| {
            Ok(texts.into_pyobject(py)?.into_any())
        }))
    }

    /// Gives the signal at once; waiting for the result waits until the session is idle.
    fn abort(&self, py: Python<'_>) -> PyResult<Pending> {
        Ok(Pending::unit(self.get(py)?.abort()))
    }

    fn wait_idle(&self, py: Python<'_>) -> PyResult<Pending> {
        let session = self.own(py)?;
        Ok(Pending::unit(async move { session.wait_idle().await }))
    }

    fn subscribe(&self, py: Python<'_>, capacity: usize) -> PyResult<Events> {
        Ok(Events::new(self.get(py)?.subscribe(SubscribeOptions::default().capacity(capacity))))
    }

    /// The result is a tuple `(leaf, editor text, cancelled, summary entry)`.
    #[pyo3(signature = (entry_id, label, summarize, instructions, replace_instructions))]
    fn navigate(
        &self,
        py: Python<'_>,
        entry_id: String,
        label: Option<String>,
        summarize: bool,
        instructions: Option<String>,
        replace_instructions: bool,
    ) -> PyResult<Pending> {
        let mut options = NavigateOptions::default().summarize(summarize).replace_instructions(replace_instructions);
        options.label = label;
        options.instructions = instructions;
        let session = self.own(py)?;
        Ok(Pending::new(async move { session.navigate(&entry_id, options).await }, |py, result| {
            let row = (result.leaf, result.editor_text, result.cancelled, result.summary_entry);
            Ok(row.into_pyobject(py)?.into_any())
        }))
    }

    /// The result is a tuple `(session, editor text)`.
    fn fork(&self, py: Python<'_>, entry_id: String, position: &str) -> PyResult<Pending> {
        let position = match position {
            "before" => ForkPosition::Before,
            "at" => ForkPosition::At,
            _ => return Err(error::invalid(py, "position is \"before\" or \"at\"")),
        };
        let (session, heir) = (self.own(py)?, self.heir(py)?);
        Ok(Pending::new(async move { session.fork(&entry_id, position).await }, |py, fork| {
            let session = Bound::new(py, heir.session(fork.session))?;
            Ok((session, fork.editor_text).into_pyobject(py)?.into_any())
        }))
    }

    fn clone(&self, py: Python<'_>) -> PyResult<Pending> {
        let (session, heir) = (self.own(py)?, self.heir(py)?);
        Ok(engine::session(async move { session.clone_session().await }, heir))
    }

    /// The result is the id of the label entry.
    #[pyo3(signature = (entry_id, label))]
    fn set_label(&self, py: Python<'_>, entry_id: String, label: Option<String>) -> PyResult<Pending> {
        let session = self.own(py)?;
        Ok(id_call(async move { session.set_label(&entry_id, label.as_deref()).await }))
    }

    fn set_name(&self, py: Python<'_>, name: String) -> PyResult<Pending> {
        let session = self.own(py)?;
        Ok(Pending::unit(async move { session.set_name(&name).await }))
    }

    fn set_model(&self, py: Python<'_>, name: String) -> PyResult<Pending> {
        let session = self.own(py)?;
        Ok(Pending::unit(async move { session.set_model(&name).await }))
    }

    fn set_thinking_level(&self, py: Python<'_>, level: String) -> PyResult<Pending> {
        let session = self.own(py)?;
        Ok(Pending::unit(async move { session.set_thinking_level(&level).await }))
    }

    fn set_tools(&self, py: Python<'_>, names: Vec<String>) -> PyResult<Pending> {
        let session = self.own(py)?;
        Ok(Pending::unit(async move { session.set_tools(names).await }))
    }

    /// The result is the id of the entry.
    #[pyo3(signature = (custom_type, data_json))]
    fn append_custom(&self, py: Python<'_>, custom_type: String, data_json: Option<&str>) -> PyResult<Pending> {
        let data = data_json.map(|text| json_value(py, text)).transpose()?;
        let session = self.own(py)?;
        Ok(id_call(async move { session.append_custom(custom_type, data).await }))
    }

    /// The result is the id of the entry; `None` when it will be stored later.
    #[pyo3(signature = (custom_type, content_json, display, details_json))]
    fn append_custom_message(
        &self,
        py: Python<'_>,
        custom_type: String,
        content_json: &str,
        display: bool,
        details_json: Option<&str>,
    ) -> PyResult<Pending> {
        let content = json_value(py, content_json)?;
        let details = details_json.map(|text| json_value(py, text)).transpose()?;
        let session = self.own(py)?;
        let call = async move { session.append_custom_message(custom_type, content, display, details).await };
        Ok(Pending::new(call, |py, id| Ok(id.into_pyobject(py)?)))
    }

    fn close(&self, py: Python<'_>) -> PyResult<Pending> {
        let session = self.own(py)?;
        Ok(Pending::unit(async move { session.close().await }))
    }
}
