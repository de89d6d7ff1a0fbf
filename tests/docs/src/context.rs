//! What the blocks of the pages take for granted: an engine, a session, and functions of the reader's own.

use std::path::PathBuf;

use branchline::{Engine, EngineOptions, Permissions, PromptOptions, Session, SessionOptions};
use serde_json::Value;

/// An engine, and a session after one question and answer.
pub(crate) async fn made() -> Result<(Engine, Session), Box<dyn std::error::Error + Send + Sync>> {
    let engine = Engine::new(EngineOptions::default())?;
    let options = SessionOptions::new(".").model("scripted/demo").permissions(Permissions::allow());
    let session = engine.create_session(options).await?;
    session.prompt("Hello.", PromptOptions::default()).await?.result().await?;
    Ok((engine, session))
}

/// A model the reader has: gives its answer in pieces.
#[allow(dead_code)]
pub(crate) async fn my_model(_request: Value) -> branchline::Result<Vec<String>> {
    Ok(vec!["Hello ".into(), "there.".into()])
}

/// Runs commands elsewhere.
#[allow(dead_code)]
pub(crate) struct Elsewhere {
    pub(crate) checkout: PathBuf,
}
