//! Models and keys of an engine.

use std::sync::Arc;

use branchline::host::{self, HostKeys, HostPayloads};
use branchline::providers::Key;
use branchline::{Error, ErrorCode, json};
use napi_derive::napi;

use crate::engine::Engine;
use crate::failure::guard;
use crate::options::value;

#[napi]
impl Engine {
    #[napi]
    pub fn models(&self) -> napi::Result<String> {
        guard(|| self.shared.text(json::to_string(&self.lifeline.engine.models())))
    }

    #[napi]
    pub fn available_models(&self) -> napi::Result<String> {
        guard(|| self.shared.text(json::to_string(&self.lifeline.engine.available_models())))
    }

    #[napi]
    pub fn find_model(&self, text: String) -> napi::Result<String> {
        guard(|| self.shared.text(json::to_string(&self.lifeline.engine.find_model(&text)?)))
    }

    #[napi]
    pub fn find_model_or_custom(&self, text: String) -> napi::Result<String> {
        guard(|| self.shared.text(json::to_string(&self.lifeline.engine.find_model_or_custom(&text)?)))
    }

    #[napi]
    pub fn models_in_scope(&self, patterns: Vec<String>) -> napi::Result<String> {
        guard(|| self.shared.text(json::to_string(&self.lifeline.engine.models_in_scope(&patterns))))
    }

    #[napi]
    pub fn configure_models(&self, json: String) -> napi::Result<()> {
        guard(|| self.lifeline.engine.configure_models(&json))
    }

    #[napi]
    pub fn model_problems(&self) -> napi::Result<String> {
        guard(|| self.shared.text(json::to_string(&self.lifeline.engine.model_problems())))
    }

    #[napi]
    pub fn set_key(&self, provider: String, key: String) -> napi::Result<()> {
        guard(|| {
            let key = Key::from_host_value(value(&key)?);
            let key = key.map_err(|problem| Error::new(ErrorCode::InvalidArgument, problem))?;
            self.lifeline.engine.set_key(&provider, key);
            Ok(())
        })
    }

    /// The number of who is asked, or nobody.
    #[napi]
    pub fn set_key_source(&self, target: Option<u32>) {
        let keys = |target: u32| Arc::new(HostKeys::new(self.shared.desk.asker(), target.into())) as _;
        self.lifeline.engine.set_key_source(target.map(keys));
    }

    /// The number of who sees the bodies of requests, or nobody.
    #[napi]
    pub fn set_payload_hook(&self, target: Option<u32>) {
        let hook = |target: u32| Arc::new(HostPayloads::new(self.shared.desk.asker(), target.into())) as _;
        self.lifeline.engine.set_payload_hook(target.map(hook));
    }

    /// Adds models whose requests go to `target`.
    #[napi]
    pub fn add_host_provider(&self, target: u32, definition: String) -> napi::Result<()> {
        guard(|| {
            let provider = host::provider_from_value(value(&definition)?, self.shared.desk.asker(), target.into())?;
            self.lifeline.engine.add_provider(Arc::new(provider));
            Ok(())
        })
    }
}
