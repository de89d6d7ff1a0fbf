//! The host of a scenario: an engine in a directory of its own, one session at a time, and what was seen of them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use branchline::message::Message;
use branchline::providers::Model;
use branchline::providers::scripted::{Gates, RecordedRequest, Script, ScriptControl, ScriptedProvider};
use branchline::resources::settings::Settings;
use branchline::tree::{CreateOptions, Cursor, Tree};
use branchline::{
    Engine, EngineOptions, Error, Events, Permissions, Run, Session, SessionOptions, SubscribeOptions, block_on,
};
use serde_json::{Map, Value, json};

use super::tool::ScriptedTool;
use super::{record, short};

/// More events than any scenario causes, so that nothing ever waits for the host to read.
const CAPACITY: usize = 1 << 20;

pub(super) struct Host {
    scenario: Value,
    detail: u64,
    dir: PathBuf,
    /// Gone with the host.
    temporary: Option<tempfile::TempDir>,
    engine: Engine,
    control: ScriptControl,
    /// The gate of a call's id opens when the call waits.
    standing: Gates,
    session: Session,
    watch: Events,
    events: Vec<Value>,
    /// The same in full.
    told: Vec<Value>,
    /// Ids and files in order of first appearance.
    sessions: Vec<(String, Option<PathBuf>)>,
    replaced: Vec<Replaced>,
    pub(super) runs: Vec<Run>,
    pub(super) background: HashMap<String, JoinHandle<Result<Value, Error>>>,
    pub(super) instructions: Vec<String>,
    /// What the last step gave.
    pub(super) last: Value,
}

/// A session that another took the place of.
struct Replaced {
    by: &'static str,
    session: usize,
    path: Option<PathBuf>,
    before: Option<Vec<u8>>,
    lines_after: Value,
}

fn read(path: Option<&Path>) -> Option<Vec<u8>> {
    std::fs::read(path?).ok()
}

impl Host {
    pub(super) fn new(scenario: &Value, detail: u64) -> Result<Host, String> {
        let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
        let mut host = Host::in_dir(scenario, detail, dir.path())?;
        host.temporary = Some(dir);
        Ok(host)
    }

    /// The same in a directory that is there already and stays.
    pub(super) fn in_dir(scenario: &Value, detail: u64, dir: &Path) -> Result<Host, String> {
        let text = |error: Error| error.to_string();
        // As pi: nothing is asked, and nothing told of it.
        let ours = EngineOptions::default().agent_dir(dir).worker_threads(2);
        let engine = Engine::new(ours.permissions(Permissions::allow())).map_err(text)?;
        let script = Script::from_value(scenario["script"].clone()).map_err(text)?.with_chunk(0);
        let control = script.control();
        control.record();
        let provider = ScriptedProvider::new("script");
        provider.add(scenario["models"].as_array().into_iter().flatten().map(model), &script);
        engine.add_provider(Arc::new(provider));
        let standing = Gates::default();
        let options = options(scenario, dir, &control, &standing, true);
        let session = match scenario["options"]["seed"].as_array() {
            None => block_on(engine.create_session(options)),
            Some(seed) => {
                let path = seeded(dir, seed).map_err(text)?;
                block_on(engine.open_session(path, options))
            }
        };
        let session = session.map_err(text)?;
        let sessions = vec![(session.id(), session.path())];
        let watch = session.subscribe(SubscribeOptions::default().capacity(CAPACITY));
        Ok(Host {
            scenario: scenario.clone(),
            detail,
            dir: dir.to_owned(),
            temporary: None,
            engine,
            control,
            standing,
            session,
            watch,
            events: Vec::new(),
            told: Vec::new(),
            sessions,
            replaced: Vec::new(),
            runs: Vec::new(),
            background: HashMap::new(),
            instructions: Vec::new(),
            last: Value::Null,
        })
    }

    pub(super) fn session(&self) -> &Session {
        &self.session
    }

    pub(super) fn control(&self) -> &ScriptControl {
        &self.control
    }

    pub(super) fn standing(&self) -> &Gates {
        &self.standing
    }

    pub(super) fn requests(&self) -> Vec<RecordedRequest> {
        self.control.requests()
    }

    /// Instructions that replaced the usual ones.
    pub(super) fn replaced_instructions(&self) -> &[String] {
        &self.instructions
    }

    /// Takes in what the session has told by now.
    pub(super) fn drain(&mut self) {
        while let Some(event) = self.watch.try_next() {
            let event: Value = serde_json::from_str(&event.to_json()).unwrap_or_default();
            self.events.push(short::event(&event, self.detail));
            self.told.push(event);
        }
    }

    /// All events so far, in full.
    pub(super) fn told(&self) -> &[Value] {
        &self.told
    }

    /// The files of all sessions so far, also of those that have none yet.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        self.sessions.iter().filter_map(|(_, path)| path.clone()).collect()
    }

    pub(super) fn events(&self) -> &[Value] {
        &self.events
    }

    pub(super) fn note(&mut self, text: &Value) {
        self.drain();
        self.events.push(json!({"@note": text}));
    }

    /// Waits until nothing runs and nothing is left to read.
    pub(super) fn finish(&mut self) {
        for (_, thread) in self.background.drain() {
            let _ = thread.join();
        }
        self.wait_idle();
    }

    pub(super) fn wait_idle(&mut self) {
        for run in self.runs.drain(..) {
            let _ = block_on(run.result());
        }
        let _ = block_on(self.session.wait_idle());
        self.drain();
    }

    /// Makes another session the current one. `make` runs before the old one is torn down, and gives a session or, for
    /// a file that must be free first, the path to open.
    pub(super) fn replace(
        &mut self,
        by: &'static str,
        make: impl FnOnce(&Host) -> Result<Next, Error>,
    ) -> Result<(), Error> {
        let path = self.session.path();
        let before = read(path.as_deref());
        let next = make(self)?;
        block_on(self.session.abort())?;
        self.wait_idle();
        block_on(self.session.close())?;
        self.drain();
        let session = match next {
            Next::Made(session) => session,
            Next::Open(path) => block_on(self.engine.open_session(path, self.options(false)))?,
            Next::Create(parent) => {
                let options = self.options(false);
                let options = match parent {
                    Some(parent) => options.parent_session(parent),
                    None => options,
                };
                block_on(self.engine.create_session(options))?
            }
        };
        let old = self.number(&self.session.id());
        self.watch = session.subscribe(SubscribeOptions::default().capacity(CAPACITY));
        self.session = session;
        if self.number(&self.session.id()) == 0 {
            self.sessions.push((self.session.id(), self.session.path()));
        }
        if self.detail > 1 {
            self.events.push(json!({"@session": self.number(&self.session.id())}));
        }
        let lines_after = record::lines(path.as_deref());
        self.replaced.push(Replaced { by, session: old, path, before, lines_after });
        Ok(())
    }

    /// The file of a session by its number.
    pub(super) fn file(&self, number: usize) -> Option<PathBuf> {
        self.sessions.get(number.checked_sub(1)?)?.1.clone()
    }

    fn number(&self, id: &str) -> usize {
        self.sessions.iter().position(|(known, _)| known == id).map_or(0, |at| at + 1)
    }

    fn options(&self, first: bool) -> SessionOptions {
        options(&self.scenario, &self.dir, &self.control, &self.standing, first)
    }

    /// `session` and `replaced` of the results.
    pub(super) fn replaced(&self) -> Map<String, Value> {
        let parent = match self.session.tree().parent_session() {
            None => Value::Null,
            Some(path) => {
                let at = self.sessions.iter().position(|(_, known)| known.as_deref() == Some(Path::new(&path)));
                at.map_or("external".into(), |at| (at + 1).into())
            }
        };
        let replaced = self.replaced.iter().map(|replaced| {
            let now = read(replaced.path.as_deref());
            let count = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'\n').count();
            json!({
                "by": replaced.by,
                "session": replaced.session,
                "linesBefore": replaced.before.as_deref().map(count),
                "linesAfter": replaced.lines_after,
                "linesEnd": now.as_deref().map(count),
                "prefixIntact": replaced.before.as_ref().zip(now).map(|(before, now)| now.starts_with(before)),
            })
        });
        let session = json!({"number": self.number(&self.session.id()), "parent": parent});
        Map::from_iter([("session".to_owned(), session), ("replaced".to_owned(), replaced.collect())])
    }

    /// The results of the replacement form.
    pub(super) fn replacement(&self) -> Map<String, Value> {
        let tree = self.session.tree();
        let refused = self.last == json!({"refused": true});
        let old = self.replaced.last().filter(|_| !refused);
        let unchanged = match old {
            Some(old) => old.before.as_ref().zip(read(old.path.as_deref())).map(|(before, now)| *before == now),
            None => self.session.path().filter(|path| path.exists()).map(|_| true),
        };
        let entries = record::entries(&self.session, 1);
        let entries = entries.as_array().into_iter().flatten().map(|entry| {
            let mut out = json!({"type": entry["type"]});
            if let Some(role) = entry["message"].get("role") {
                out["role"] = role.clone();
            }
            out["parent"] = entry["parent"].clone();
            out
        });
        let session = json!({
            "header": {"parentSession": tree.parent_session().is_some()},
            "entries": entries.collect::<Vec<Value>>(),
            "leaf": record::leaf(&self.session),
            "onDisk": self.session.path().is_some_and(|path| path.exists()),
        });
        Map::from_iter([
            ("result".to_owned(), self.last.clone()),
            ("oldFileUnchanged".to_owned(), unchanged.into()),
            // In memory a fork counts as the same storage.
            ("sameManager".to_owned(), (old.is_none() || tree.path().is_none()).into()),
            ("newSession".to_owned(), session),
        ])
    }
}

/// Where the next session comes from.
pub(super) enum Next {
    Made(Session),
    Open(PathBuf),
    Create(Option<String>),
}

fn model(model: &Value) -> Model {
    let mut out = Model::new("script", model["id"].as_str().unwrap_or_default(), "script-api");
    if model["reasoning"] == true {
        out = out.reasoning();
    }
    out.images = true;
    out.context_window = model["contextWindow"].as_u64().unwrap_or(0);
    out.max_tokens = model["maxTokens"].as_u64().unwrap_or(0);
    out
}

fn options(scenario: &Value, dir: &Path, control: &ScriptControl, standing: &Gates, first: bool) -> SessionOptions {
    let given = &scenario["options"];
    let mut options = SessionOptions::new(dir)
        .session_dir(dir.join("sessions"))
        .system_prompt(scenario["prompt"].as_str().unwrap_or_default())
        .settings(Settings::from_values(scenario["settings"].as_object().cloned().unwrap_or_default()))
        .in_memory(given["inMemory"] == true);
    if first || given["replacement"] != "restore" {
        if let Some(model) = given["model"].as_str() {
            options = options.model(format!("script/{model}"));
        }
        if let Some(level) = given["thinkingLevel"].as_str() {
            options = options.thinking_level(level);
        }
    }
    let mut names: Vec<&str> =
        scenario["builtins"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for tool in scenario["tools"].as_array().into_iter().flatten() {
        names.push(tool["name"].as_str().unwrap_or_default());
        let tool = ScriptedTool::new(tool, control.gates().clone(), standing.clone());
        options = options.custom_tool(Arc::new(tool));
    }
    if first || given["restoreTools"] != true { options.tools(names) } else { options }
}

/// A file with the seed of a scenario.
fn seeded(dir: &Path, seed: &[Value]) -> Result<PathBuf, Error> {
    let options = CreateOptions { session_dir: Some(dir.join("sessions")), ..CreateOptions::default() };
    let tree = Tree::create(dir, options)?;
    let mut cursor = Cursor::new(tree.clone());
    for entry in seed {
        let message = Message::from_value(entry["message"].clone()).unwrap_or_default();
        cursor.append_message(&message)?;
    }
    let path = tree.path().unwrap_or_default();
    tree.release()?;
    Ok(path)
}
