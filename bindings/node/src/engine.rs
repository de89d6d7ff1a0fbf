//! The engine as JavaScript holds it.

use std::sync::Arc;

use branchline::host::{HostKeys, HostLogins, HostPayloads};
use branchline::providers::scripted::{Script, ScriptControl};
use branchline::{EngineForm, EngineOptions, Result, SessionOptions};
use napi_derive::napi;

use crate::bridge::Shared;
use crate::failure::guard;
use crate::options;
use crate::outcome::Outcome;
use crate::session::Session;
use crate::tools::Toolbox;
use crate::tree::Tree;

/// Keeps an engine alive: held by its handle and by its sessions. When the last one goes, so do the engine's threads.
pub(crate) struct Lifeline {
    pub(crate) engine: branchline::Engine,
}

#[napi]
pub struct Engine {
    pub(crate) shared: Arc<Shared>,
    pub(crate) lifeline: Arc<Lifeline>,
}

/// The ways to a session.
enum Source {
    New,
    File(String),
    Recent,
    Import(String),
}

impl Engine {
    pub(crate) fn new(shared: Arc<Shared>, json: &str) -> Result<Engine> {
        let given = options::read::<options::Engine>(json)?;
        let mut base = EngineOptions::default();
        if let Some(policy) = given.permissions {
            base.permissions = shared.permissions(policy)?;
        }
        if let Some(target) = given.key_source {
            base = base.key_source(Arc::new(HostKeys::new(shared.desk.asker(), target.into())));
        }
        if let Some(target) = given.login_source {
            base = base.login_source(Arc::new(HostLogins::new(shared.desk.asker(), target.into())));
        }
        if let Some(target) = given.payload_hook {
            base = base.payload_hook(Arc::new(HostPayloads::new(shared.desk.asker(), target.into())));
        }
        let engine = EngineForm::from_value(given.form)?.start(base)?;
        let lifeline = Arc::new(Lifeline { engine });
        shared.register(&lifeline);
        Ok(Engine { shared, lifeline })
    }

    fn make(&self, ticket: u32, source: Source, json: &str) -> napi::Result<()> {
        let options: SessionOptions = guard(|| {
            let mut given = options::read::<options::Session>(json)?;
            let custom = std::mem::take(&mut given.custom_tools);
            let bounds = std::mem::take(&mut given.bounds);
            let mut options: SessionOptions = given.into();
            self.shared.bound(bounds, &mut options)?;
            for tool in custom {
                options.custom_tools.push(self.shared.tool(tool)?);
            }
            Ok(options)
        })?;
        let (shared, lifeline) = (self.shared.clone(), self.lifeline.clone());
        self.shared.start(ticket, async move {
            let engine = &lifeline.engine;
            let session = match source {
                Source::New => engine.create_session(options).await?,
                Source::File(path) => engine.open_session(path, options).await?,
                Source::Recent => engine.continue_recent(options).await?,
                Source::Import(path) => engine.import_session(path, options).await?,
            };
            Ok(Outcome::Session(Session::new(shared, lifeline, session)))
        });
        Ok(())
    }
}

#[napi]
impl Engine {
    #[napi]
    pub fn create(&self, ticket: u32, options: String) -> napi::Result<()> {
        self.make(ticket, Source::New, &options)
    }

    #[napi]
    pub fn open(&self, ticket: u32, path: String, options: String) -> napi::Result<()> {
        self.make(ticket, Source::File(path), &options)
    }

    #[napi]
    pub fn continue_recent(&self, ticket: u32, options: String) -> napi::Result<()> {
        self.make(ticket, Source::Recent, &options)
    }

    #[napi]
    pub fn import_session(&self, ticket: u32, path: String, options: String) -> napi::Result<()> {
        self.make(ticket, Source::Import(path), &options)
    }

    #[napi]
    pub fn list(&self, ticket: u32, options: String) -> napi::Result<()> {
        let mut options = guard(|| options::read::<options::List>(&options))?;
        let lifeline = self.lifeline.clone();
        self.shared.start(ticket, async move {
            let cwd = options.cwd.take().map(Into::into);
            let found = lifeline.engine.list_sessions(cwd, options.into()).await?;
            // A text each: together they could be longer than a string.
            Ok(Outcome::Texts(found.iter().map(branchline::json::to_string).collect()))
        });
        Ok(())
    }

    /// Opens a file to read it, without a session or the lock.
    #[napi]
    pub fn read(&self, ticket: u32, path: String) {
        let shared = self.shared.clone();
        self.shared.start_blocking(ticket, move || {
            let options = branchline::tree::OpenOptions { read_only: true, ..Default::default() };
            Ok(Outcome::Tree(Tree::new(shared, branchline::tree::Tree::open(path, options)?)))
        });
    }

    #[napi]
    pub fn add_scripted_model(&self, name: String, script: String) -> napi::Result<ScriptHand> {
        guard(|| {
            let script = Script::from_json(&script)?;
            let control = script.control();
            self.lifeline.engine.add_scripted_model(&name, script)?;
            Ok(ScriptHand { control })
        })
    }

    /// For the sessions and toolboxes made from now on.
    #[napi]
    pub fn add_tool(&self, custom: String) -> napi::Result<()> {
        guard(|| {
            self.lifeline.engine.add_tool(self.shared.tool(options::read(&custom)?)?);
            Ok(())
        })
    }

    #[napi]
    pub fn toolbox(&self, cwd: String) -> Toolbox {
        Toolbox::new(self.shared.clone(), self.lifeline.clone(), cwd)
    }

    #[napi]
    pub fn shutdown(&self, ticket: u32) {
        let lifeline = self.lifeline.clone();
        self.shared.start(ticket, async move {
            lifeline.engine.shutdown().await;
            Ok(Outcome::Nothing)
        });
    }
}

/// The host's hand on a playing script.
#[napi]
pub struct ScriptHand {
    control: ScriptControl,
}

#[napi]
impl ScriptHand {
    #[napi]
    pub fn open_gate(&self, name: String) {
        self.control.gates().open(name);
    }
}
