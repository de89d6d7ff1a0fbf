//! A model that answers from a script: text, thinking, tool calls, delays, errors and usage, streamed in chunks like a
//! real one, without a network.
//!
//! [`Script`] is the data (JSON), [`ScriptControl`] the host's hand on a playing script (gates, a record of requests),
//! [`ScriptedProvider`] the provider. An engine has one named `scripted` with the model `demo`, which needs no script.
//!
//! ```
//! use branchline::providers::scripted::Script;
//! let script = Script::from_json(r#"[{"content": [{"type": "text", "text": "Hello."}]}]"#)?;
//! # Ok::<(), branchline::Error>(())
//! ```

mod control;
mod demo;
mod play;
mod script;

pub use control::{Gates, RecordedRequest, ScriptControl};
pub use script::{AtEnd, Reply, Script, ShortUsage};

use std::sync::{Arc, Mutex};

use self::play::Player;
use super::{Model, Provider, Request, ResponseStream};

/// Wire protocol of the built-in scripted models.
const API: &str = "scripted";

/// A provider whose models answer from scripts. Several models may share one script: each request takes its next reply.
pub struct ScriptedProvider {
    name: String,
    models: Mutex<Vec<(Model, Arc<dyn Answers>)>>,
}

/// Where replies come from.
trait Answers: Send + Sync {
    fn stream(&self, request: Request) -> ResponseStream;
}

impl ScriptedProvider {
    /// A provider without models yet.
    pub fn new(name: impl Into<String>) -> ScriptedProvider {
        ScriptedProvider { name: name.into(), models: Mutex::new(Vec::new()) }
    }

    /// The provider every engine has: `scripted`, with the model `demo`.
    pub(crate) fn builtin() -> ScriptedProvider {
        let provider = ScriptedProvider::new("scripted");
        let model = Model { context_window: 128_000, ..Model::new("scripted", "demo", API).reasoning() };
        provider.put(model, Arc::new(demo::Demo));
        provider
    }

    /// Adds models that share one script, replacing those of the same ids; `model.provider` is set to this provider's
    /// name. The script starts at its first reply.
    pub fn add(&self, models: impl IntoIterator<Item = Model>, script: &Script) {
        let player: Arc<dyn Answers> = Arc::new(Player::new(script.clone()));
        for model in models {
            self.put(model, player.clone());
        }
    }

    /// Adds one model with the usual facts: it reasons, reads images, and has a window of 128,000 tokens.
    pub fn add_named(&self, id: &str, script: &Script) {
        let model = Model { context_window: 128_000, images: true, ..Model::new(&self.name, id, API).reasoning() };
        self.add([model], script);
    }

    fn put(&self, mut model: Model, answers: Arc<dyn Answers>) {
        model.provider.clone_from(&self.name);
        let mut models = lock(&self.models);
        models.retain(|(known, _)| known.id != model.id);
        models.push((model, answers));
    }
}

impl Provider for ScriptedProvider {
    fn name(&self) -> &str {
        &self.name
    }

    fn models(&self) -> Vec<Model> {
        lock(&self.models).iter().map(|(model, _)| model.clone()).collect()
    }

    fn stream(&self, request: Request) -> ResponseStream {
        let found = lock(&self.models).iter().find(|(model, _)| model.id == request.model.id).cloned();
        match found {
            Some((_, answers)) => answers.stream(request),
            None => play::failed(&request, "the model was removed from its provider"),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
