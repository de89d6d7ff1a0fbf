//! The engine.

use std::path::PathBuf;

use branchline::providers::scripted;
use branchline::tree::{CreateOptions, Durability, ListOptions, SessionInfo};
use branchline::{EngineForm, EngineOptions, SessionOptions};
use pyo3::prelude::*;

use crate::error::{self, IntoPyResult};
use crate::owned::Owned;
use crate::pending::Pending;
use crate::policy::{Budget, Hook, Permissions};
use crate::resources;
use crate::session::Heir;
use crate::tools::{PythonTool, Toolbox};

/// `branchline::Engine`.
#[pyclass(frozen, module = "branchline._branchline")]
pub(crate) struct Engine {
    engine: Owned<branchline::Engine>,
}

impl Engine {
    pub(crate) fn get(&self, py: Python<'_>) -> PyResult<&branchline::Engine> {
        self.engine.get(py)
    }
}

/// Keywords of the calls that make a session, as a dictionary; what is absent has its default, but for `cwd`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Keywords {
    cwd: PathBuf,
    #[pyo3(default)]
    session_dir: Option<PathBuf>,
    #[pyo3(default)]
    in_memory: bool,
    #[pyo3(default)]
    id: Option<String>,
    #[pyo3(default)]
    name: Option<String>,
    #[pyo3(default)]
    parent_session: Option<String>,
    #[pyo3(default)]
    model: Option<String>,
    #[pyo3(default)]
    thinking_level: Option<String>,
    #[pyo3(default)]
    tools: Option<Vec<String>>,
    #[pyo3(default)]
    permissions: Option<Py<Permissions>>,
    #[pyo3(default)]
    budgets: Vec<Py<Budget>>,
    #[pyo3(default)]
    tool_hooks: Vec<Py<Hook>>,
    #[pyo3(default)]
    system_prompt: Option<String>,
    #[pyo3(default)]
    resources: Option<String>,
    #[pyo3(default)]
    durability: Option<String>,
    #[pyo3(default)]
    read_only: bool,
    #[pyo3(default)]
    custom_tools: Vec<Py<PythonTool>>,
    /// What must live as long as the session: the functions behind its tools.
    #[pyo3(default)]
    keep: Option<Py<PyAny>>,
}

impl Keywords {
    /// What is to be kept, and the options.
    fn options(self, py: Python<'_>) -> PyResult<(Option<Py<PyAny>>, SessionOptions)> {
        let mut options = SessionOptions::new(self.cwd);
        options.session_dir = self.session_dir;
        options.in_memory = self.in_memory;
        options.id = self.id;
        options.name = self.name;
        options.parent_session = self.parent_session;
        options.model = self.model;
        options.thinking_level = self.thinking_level;
        options.tools = self.tools;
        options.permissions = self.permissions.map(|permissions| permissions.get().get(py)).transpose()?;
        for budget in self.budgets {
            options.budgets.push(budget.get().get(py)?);
        }
        for hook in self.tool_hooks {
            options.tool_hooks.push(hook.get().get(py)?);
        }
        options.system_prompt = self.system_prompt;
        if let Some(resources) = self.resources {
            options.resources = resources::options(py, &resources)?;
        }
        options.durability = match self.durability.as_deref() {
            None | Some("none") => Durability::None,
            Some("turn") => Durability::Turn,
            Some("entry") => Durability::Entry,
            Some(_) => return Err(error::invalid(py, "durability is \"none\", \"turn\" or \"entry\"")),
        };
        options.read_only = self.read_only;
        for tool in self.custom_tools {
            options.custom_tools.push(tool.get().get(py)?);
        }
        Ok((self.keep, options))
    }
}

#[pymethods]
impl Engine {
    /// `options_json` is an `EngineForm`, `models` the text of a `models.json`.
    #[new]
    #[pyo3(signature = (options_json = "{}", models = None, permissions = None))]
    fn new(
        py: Python<'_>,
        options_json: &str,
        models: Option<&str>,
        permissions: Option<&Permissions>,
    ) -> PyResult<Engine> {
        let mut base = EngineOptions::default();
        if let Some(permissions) = permissions {
            base.permissions = permissions.get(py)?;
        }
        let engine = py.detach(|| {
            let engine = EngineForm::from_json(options_json)?.start(base)?;
            models.map_or(Ok(()), |models| engine.configure_models(models)).map(|()| engine)
        });
        Ok(Engine { engine: Owned::new(engine.py(py)?) })
    }

    /// Adds the model `scripted/NAME`.
    fn add_scripted_model(&self, py: Python<'_>, name: &str, script_json: &str) -> PyResult<ScriptControl> {
        let script = scripted::Script::from_json(script_json).py(py)?;
        let control = script.control();
        self.engine.get(py)?.add_scripted_model(name, script).py(py)?;
        Ok(ScriptControl { control: Owned::new(control) })
    }

    fn create_session(&self, py: Python<'_>, keywords: Keywords) -> PyResult<Pending> {
        let engine = self.engine.get(py)?.clone();
        let (keep, options) = keywords.options(py)?;
        let heir = Heir { engine: engine.clone(), keep };
        Ok(self::session(async move { engine.create_session(options).await }, heir))
    }

    fn open_session(&self, py: Python<'_>, path: PathBuf, keywords: Keywords) -> PyResult<Pending> {
        let engine = self.engine.get(py)?.clone();
        let (keep, options) = keywords.options(py)?;
        let heir = Heir { engine: engine.clone(), keep };
        Ok(self::session(async move { engine.open_session(path, options).await }, heir))
    }

    fn continue_recent(&self, py: Python<'_>, keywords: Keywords) -> PyResult<Pending> {
        let engine = self.engine.get(py)?.clone();
        let (keep, options) = keywords.options(py)?;
        let heir = Heir { engine: engine.clone(), keep };
        Ok(self::session(async move { engine.continue_recent(options).await }, heir))
    }

    /// A copy of a file in the place where the options say that sessions are.
    fn import_session(&self, py: Python<'_>, path: PathBuf, keywords: Keywords) -> PyResult<Pending> {
        let engine = self.engine.get(py)?.clone();
        let (keep, options) = keywords.options(py)?;
        let heir = Heir { engine: engine.clone(), keep };
        Ok(self::session(async move { engine.import_session(path, options).await }, heir))
    }

    /// Sessions as tuples `(path, id, cwd, name, parent, created, modified, messages, first message, all text)`; times in
    /// milliseconds since 1970.
    fn list_sessions(
        &self,
        py: Python<'_>,
        cwd: Option<PathBuf>,
        session_dir: Option<PathBuf>,
        agent_dir: Option<PathBuf>,
        text: bool,
    ) -> PyResult<Pending> {
        let engine = self.engine.get(py)?.clone();
        let location = CreateOptions { session_dir, agent_dir, ..CreateOptions::default() };
        let options = ListOptions { location, text, ..ListOptions::default() };
        let list = async move { engine.list_sessions(cwd, options).await };
        Ok(Pending::new(list, |py, sessions| {
            let rows = sessions.into_iter().map(|session| info(py, session)).collect::<PyResult<Vec<_>>>()?;
            rows.into_pyobject(py)
        }))
    }

    /// Adds a tool for the sessions and toolboxes made from now on.
    fn add_tool(&self, py: Python<'_>, tool: &PythonTool) -> PyResult<()> {
        self.engine.get(py)?.add_tool(tool.get(py)?);
        Ok(())
    }

    fn toolbox(&self, py: Python<'_>, cwd: PathBuf) -> PyResult<Toolbox> {
        Ok(Toolbox::new(self.engine.get(py)?.clone(), cwd))
    }

    /// Aborts and closes every session and waits until their files are released.
    fn shutdown(&self, py: Python<'_>) -> PyResult<Pending> {
        let engine = self.engine.get(py)?.clone();
        Ok(Pending::unit(async move {
            engine.shutdown().await;
            Ok(())
        }))
    }
}

/// A call that gives a session.
pub(crate) fn session(
    future: impl Future<Output = branchline::Result<branchline::Session>> + Send + 'static,
    heir: Heir,
) -> Pending {
    Pending::new(future, |py, session| Ok(Bound::new(py, heir.session(session))?.into_any()))
}

fn info(py: Python<'_>, session: SessionInfo) -> PyResult<Bound<'_, PyAny>> {
    let row = (
        session.path,
        session.id,
        session.cwd,
        session.name,
        session.parent_session_path,
        session.created,
        session.modified,
        session.message_count,
        session.first_message,
        session.all_messages_text,
    );
    Ok(row.into_pyobject(py)?.into_any())
}

/// The host's hand on a playing script.
#[pyclass(frozen, module = "branchline._branchline")]
pub(crate) struct ScriptControl {
    control: Owned<scripted::ScriptControl>,
}

#[pymethods]
impl ScriptControl {
    /// Opens a gate that a reply waits at (`waitGate`).
    fn open_gate(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        self.control.get(py)?.gates().open(name);
        Ok(())
    }

    /// Waits until the reply with this number (from 0) stands at its `hang` or `waitGate`.
    fn reached(&self, py: Python<'_>, reply: usize) -> PyResult<Pending> {
        let control = self.control.get(py)?.clone();
        Ok(Pending::unit(async move {
            control.reached(reply).await;
            Ok(())
        }))
    }
}
