//! Data that crosses as JSON text. Keys are those of the other languages, in camelCase.

use branchline_core::json;
use branchline_core::tree::{Context, Diagnostic, SessionInfo, Tree};
use branchline_core::{NavigateResult, Result, Session};
use serde_json::{Value, json};
use std::path::Path;

fn path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

pub(crate) fn sessions(sessions: &[SessionInfo]) -> String {
    json::to_string(sessions)
}

pub(crate) fn state(session: &Session) -> String {
    let mut object = json!({
        "id": session.id(),
        "path": session.path().as_deref().map(path),
        "cwd": path(&session.cwd()),
        "name": session.name(),
    });
    if let (Some(object), Ok(Value::Object(state))) = (object.as_object_mut(), serde_json::to_value(session.state())) {
        object.extend(state);
    }
    json::to_string(&object)
}

/// `leaf` first, so that a reader of the stream knows it when the entries come.
pub(crate) fn tree(tree: &Tree, leaf: Option<&str>) -> String {
    format!("{{\"leaf\":{},\"entries\":{}}}", json::to_string(&leaf), tree.structure().to_json())
}

pub(crate) fn branch(tree: &Tree, leaf: Option<&str>) -> String {
    json::to_string(&tree.branch(leaf).ids().collect::<Vec<_>>())
}

pub(crate) fn context(context: &Context) -> Result<Vec<u8>> {
    let model = context.model().map(|(provider, id)| json!({"provider": provider, "modelId": id}));
    let mut out = b"{\"messages\":[".to_vec();
    for (n, message) in context.messages().enumerate() {
        if n > 0 {
            out.push(b',');
        }
        out.extend_from_slice(&message.raw());
    }
    out.extend_from_slice(b"],\"thinkingLevel\":");
    json::write(&mut out, context.thinking_level());
    out.extend_from_slice(b",\"model\":");
    json::write(&mut out, &model);
    out.push(b'}');
    Ok(out)
}

pub(crate) fn diagnostics(diagnostics: &[Diagnostic]) -> String {
    json::to_string(diagnostics)
}

pub(crate) fn navigated(result: &NavigateResult) -> String {
    json::to_string(result)
}
