//! Permission questions to a host: its answer decides about one call.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Value, json};

use super::queue::Asker;
use super::request::{Answer, NoAnswer, Question, RequestKind};
use crate::permissions::{PermissionAnswer, PermissionFuture, PermissionHandler, PermissionRequest, Scope};
use crate::tools::ToolError;

/// A permission handler whose questions are requests to the host, of kind [`RequestKind::Permission`]. One that fails,
/// is dropped, or comes too late is a denial.
///
/// [`Request::arguments`](super::Request::arguments) is `{tool, effect, arguments, command?, paths: [{given, path, real,
/// inside}], rule}`. The answer is `"allow"`, `"deny"` or `"allowAlways"`, `true` or `false`, or `{decision, reason?,
/// scope?}` with `scope` being `"same"` (the default), `"tool"` or `{"below": directory}` for `allowAlways`.
#[derive(Debug, Clone)]
pub struct HostPermissions {
    asker: Asker,
    target: u64,
}

impl HostPermissions {
    /// Questions go to `asker`'s queue with the number `target`, by which the host knows them.
    pub fn new(asker: Asker, target: u64) -> HostPermissions {
        HostPermissions { asker, target }
    }
}

impl PermissionHandler for HostPermissions {
    fn ask(&self, request: PermissionRequest) -> PermissionFuture {
        let asker = self.asker.clone();
        let cancel = request.cancel.clone();
        let question = Question {
            kind: RequestKind::Permission,
            target: self.target,
            name: request.tool.clone(),
            call_id: request.call_id.clone(),
            session_id: request.session_id.clone(),
            sibling: request.sibling,
            cwd: request.cwd.clone(),
            arguments: request.to_value(),
            progress: None,
            response: None,
        };
        Box::pin(async move {
            match asker.ask(question, cancel).await {
                Ok(Answer::Permission(answer)) => Ok(answer),
                Ok(_) | Err(NoAnswer::Dropped) => {
                    Err(ToolError::new("the program that decides about permissions gave no answer"))
                }
                Err(NoAnswer::Failed(message)) => Err(ToolError::new(message)),
                Err(NoAnswer::Cancelled) => Err(ToolError::aborted()),
                Err(NoAnswer::Closed) => {
                    Err(ToolError::new("the program that decides about permissions takes no more questions"))
                }
            }
        })
    }
}

impl PermissionRequest {
    /// The question as hosts of other languages get it: `{tool, effect, arguments, command?, paths, rule}`.
    pub fn to_value(&self) -> Value {
        let paths: Vec<Value> = self
            .paths
            .iter()
            .map(|path| {
                json!({
                    "given": path.given,
                    "path": path.path.to_string_lossy(),
                    "real": path.real.to_string_lossy(),
                    "inside": path.inside,
                })
            })
            .collect();
        let mut value = json!({"tool": self.tool, "effect": self.effect.name(), "arguments": self.arguments});
        if let Value::Object(object) = &mut value {
            if let Some(command) = &self.command {
                object.insert("command".to_owned(), command.as_str().into());
            }
            object.insert("paths".to_owned(), paths.into());
            object.insert("rule".to_owned(), self.rule.as_str().into());
        }
        value
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Given {
    Yes(bool),
    Word(Word),
    Full(Full),
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "camelCase")]
enum Word {
    Allow,
    Deny,
    AllowAlways,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Full {
    decision: Word,
    reason: Option<String>,
    scope: Option<GivenScope>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum GivenScope {
    Same,
    Tool,
    Below(PathBuf),
}

impl PermissionAnswer {
    /// Reads a host's answer, see [`HostPermissions`].
    ///
    /// Errors: what an answer is instead.
    pub fn from_host_value(value: Value) -> Result<PermissionAnswer, String> {
        let expected = "an answer is true, false, \"allow\", \"deny\", \"allowAlways\" or {decision, reason?, scope?}";
        let given: Given = crate::json::form(value).map_err(|_| expected.to_owned())?;
        let (word, reason, scope) = match given {
            Given::Yes(true) => (Word::Allow, None, None),
            Given::Yes(false) => (Word::Deny, None, None),
            Given::Word(word) => (word, None, None),
            Given::Full(full) => (full.decision, full.reason, full.scope),
        };
        Ok(match word {
            Word::Allow => PermissionAnswer::Allow,
            Word::Deny => PermissionAnswer::Deny(reason),
            Word::AllowAlways => PermissionAnswer::AllowAlways(match scope {
                None | Some(GivenScope::Same) => Scope::Same,
                Some(GivenScope::Tool) => Scope::Tool,
                Some(GivenScope::Below(directory)) => Scope::Below(directory),
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_and_nothing_else_is_one() {
        let read = |value| PermissionAnswer::from_host_value(value);
        assert_eq!(read(json!(true)), Ok(PermissionAnswer::Allow));
        assert_eq!(read(json!(false)), Ok(PermissionAnswer::Deny(None)));
        assert_eq!(read(json!("allow")), Ok(PermissionAnswer::Allow));
        let why = json!({"decision": "deny", "reason": "not now"});
        assert_eq!(read(why), Ok(PermissionAnswer::Deny(Some("not now".to_owned()))));
        assert_eq!(read(json!("allowAlways")), Ok(PermissionAnswer::AllowAlways(Scope::Same)));
        let below = json!({"decision": "allowAlways", "scope": {"below": "src"}});
        assert_eq!(read(below), Ok(PermissionAnswer::AllowAlways(Scope::Below("src".into()))));
        for bad in [json!(null), json!(1), json!("yes"), json!({}), json!({"decision": "allow", "why": 1}), json!([])] {
            assert!(read(bad.clone()).is_err(), "{bad}");
        }
    }
}
