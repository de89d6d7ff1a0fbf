//! Keys and logins in the file that an engine reads, `auth.json`.

use std::sync::Arc;

use branchline::host::HostLogins;
use branchline::providers::{Login, StoredKey};
use branchline::{Error, ErrorCode, json};
use napi_derive::napi;
use serde_json::Value;

use crate::engine::Engine;
use crate::failure::guard;
use crate::options::value;
use crate::outcome::Outcome;

fn invalid(problem: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidArgument, problem)
}

#[napi]
impl Engine {
    #[napi]
    pub fn store_key(&self, ticket: u32, provider: String, key: String) -> napi::Result<()> {
        let key = guard(|| StoredKey::from_host_value(value(&key)?).map_err(invalid))?;
        let lifeline = self.lifeline.clone();
        self.shared.start(ticket, async move {
            lifeline.engine.store_key(&provider, key).await?;
            Ok(Outcome::Nothing)
        });
        Ok(())
    }

    #[napi]
    pub fn store_login(&self, ticket: u32, provider: String, login: String) -> napi::Result<()> {
        let login = guard(|| match value(&login)? {
            Value::Object(entry) => Ok(Login::new(provider, entry)),
            _ => Err(invalid("a login is an object")),
        })?;
        let lifeline = self.lifeline.clone();
        self.shared.start(ticket, async move {
            lifeline.engine.store_login(login).await?;
            Ok(Outcome::Nothing)
        });
        Ok(())
    }

    /// Whether something was stored, as JSON.
    #[napi]
    pub fn forget_stored(&self, ticket: u32, provider: String) {
        let lifeline = self.lifeline.clone();
        self.shared.start(ticket, async move {
            Ok(Outcome::Text(json::to_string(&lifeline.engine.forget_stored(&provider).await?)))
        });
    }

    #[napi]
    pub fn stored_keys(&self, ticket: u32) {
        let lifeline = self.lifeline.clone();
        self.shared
            .start(ticket, async move { Ok(Outcome::Text(json::to_string(&lifeline.engine.stored_keys().await?))) });
    }

    /// The number of who is asked, or nobody.
    #[napi]
    pub fn set_login_source(&self, target: Option<u32>) {
        let logins = |target: u32| Arc::new(HostLogins::new(self.shared.desk.asker(), target.into())) as _;
        self.lifeline.engine.set_login_source(target.map(logins));
    }
}
