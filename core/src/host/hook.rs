//! Hooks around tool calls that a host written in another language provides.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::queue::Asker;
use super::request::{Answer, NoAnswer, Question, RequestKind};
use crate::agent::{Decision, HookFuture, HookedCall, ResultChange, ToolHook};
use crate::message::JsonObject;
use crate::tools::{ToolError, ToolResult};

/// A hook whose questions are requests to the host, of kind [`RequestKind::BeforeTool`] and [`RequestKind::AfterTool`].
/// One that fails or is dropped becomes the error result of its call.
///
/// Before a call [`Request::arguments`](super::Request::arguments) is `{arguments}`, and the answer is `null` or `true` (it
/// runs), `false` or a text (it does not; the model reads the text), or `{block?: reason or true, terminate?, arguments?}`.
/// After it the question is `{arguments, result}`, and the answer is `null` or the parts of the result to replace:
/// `{content?, details?, structuredContent?, usage?, isError?, terminate?}`.
#[derive(Debug, Clone)]
pub struct HostHook {
    asker: Asker,
    target: u64,
    before: bool,
    after: bool,
}

impl HostHook {
    /// Questions go to `asker`'s queue with the number `target`, by which the host knows them; `before` and `after` say
    /// which ones it wants.
    pub fn new(asker: Asker, target: u64, before: bool, after: bool) -> HostHook {
        HostHook { asker, target, before, after }
    }

    fn question(&self, kind: RequestKind, call: &HookedCall, arguments: Value) -> Question {
        Question {
            kind,
            target: self.target,
            name: call.name.clone(),
            call_id: call.id.clone(),
            session_id: call.session_id.clone(),
            sibling: call.sibling,
            cwd: PathBuf::new(),
            arguments,
            progress: None,
            response: None,
        }
    }

    async fn ask(&self, question: Question, cancel: CancellationToken) -> Result<Answer, ToolError> {
        self.asker.ask(question, cancel).await.map_err(|reason| match reason {
            NoAnswer::Failed(message) => ToolError::new(message),
            NoAnswer::Cancelled => ToolError::aborted(),
            NoAnswer::Dropped | NoAnswer::Closed => lost(),
        })
    }
}

fn lost() -> ToolError {
    ToolError::new("The program that checks tool calls gave no answer.")
}

impl ToolHook for HostHook {
    fn before<'a>(&'a self, call: &'a mut HookedCall) -> HookFuture<'a, Decision> {
        Box::pin(async move {
            if !self.before {
                return Ok(Decision::Run);
            }
            let question = self.question(RequestKind::BeforeTool, call, json!({"arguments": call.arguments}));
            let Answer::BeforeTool(answer) = self.ask(question, call.cancel.clone()).await? else { return Err(lost()) };
            if let Some(arguments) = answer.arguments {
                call.arguments = arguments;
            }
            Ok(answer.decision)
        })
    }

    fn after<'a>(&'a self, call: &'a HookedCall, result: &'a ToolResult) -> HookFuture<'a, ResultChange> {
        Box::pin(async move {
            if !self.after {
                return Ok(ResultChange::default());
            }
            let told = json!({"arguments": call.arguments, "result": result.to_host_value()});
            let question = self.question(RequestKind::AfterTool, call, told);
            match self.ask(question, call.cancel.clone()).await? {
                Answer::AfterTool(change) => Ok(change),
                _ => Err(lost()),
            }
        })
    }
}

/// What a host said before a call.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct BeforeTool {
    decision: Decision,
    arguments: Option<JsonObject>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Block {
    Reason(String),
    Plain(bool),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenBefore {
    block: Option<Block>,
    #[serde(default)]
    terminate: bool,
    arguments: Option<JsonObject>,
}

pub(crate) fn read_before(value: Value) -> Result<BeforeTool, String> {
    let block = |reason, terminate| Decision::Block { reason, terminate };
    let decided = |decision| Ok(BeforeTool { decision, arguments: None });
    match value {
        Value::Null | Value::Bool(true) => decided(Decision::Run),
        Value::Bool(false) => decided(block(None, false)),
        Value::String(reason) => decided(block(Some(reason), false)),
        value => {
            let given: GivenBefore = crate::json::form(value).map_err(|error| {
                format!("what to do before a call is null, true, false, a text or {{block?, terminate?, arguments?}}: {error}")
            })?;
            let decision = match given.block {
                None | Some(Block::Plain(false)) => Decision::Run,
                Some(Block::Plain(true)) => block(None, given.terminate),
                Some(Block::Reason(reason)) => block(Some(reason), given.terminate),
            };
            Ok(BeforeTool { decision, arguments: given.arguments })
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Blocks(Vec<Value>),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct GivenAfter {
    content: Option<Content>,
    details: Option<Value>,
    structured_content: Option<Value>,
    usage: Option<Value>,
    is_error: Option<bool>,
    terminate: Option<bool>,
}

pub(crate) fn read_after(value: Value) -> Result<ResultChange, String> {
    if value.is_null() {
        return Ok(ResultChange::default());
    }
    let given: GivenAfter = crate::json::form(value).map_err(|error| {
        format!("what to do after a call is null or {{content?, details?, structuredContent?, usage?, isError?, terminate?}}: {error}")
    })?;
    let content = match given.content {
        None => None,
        // Read as a result is, which checks the blocks.
        Some(Content::Text(text)) => Some(ToolResult::text(text).content),
        Some(Content::Blocks(blocks)) => Some(ToolResult::from_host_value(json!({"content": blocks}))?.content),
    };
    Ok(ResultChange {
        content,
        details: given.details,
        structured_content: given.structured_content,
        usage: given.usage,
        is_error: given.is_error,
        terminate: given.terminate,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hosts_say_before_a_call() {
        let decision = |value| read_before(value).map(|answer| answer.decision);
        let block = |reason: Option<&str>, terminate| Ok(Decision::Block { reason: reason.map(Into::into), terminate });
        assert_eq!(decision(json!(null)), Ok(Decision::Run));
        assert_eq!(decision(json!(true)), Ok(Decision::Run));
        assert_eq!(decision(json!(false)), block(None, false));
        assert_eq!(decision(json!("no")), block(Some("no"), false));
        assert_eq!(decision(json!({"block": "no", "terminate": true})), block(Some("no"), true));
        let changed = read_before(json!({"arguments": {"path": "a"}})).unwrap();
        assert_eq!((changed.decision, changed.arguments.unwrap()["path"].as_str()), (Decision::Run, Some("a")));
        for bad in [json!(1), json!([]), json!({"blocked": true}), json!({"arguments": []})] {
            assert!(read_before(bad.clone()).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_hosts_say_after_a_call() {
        assert_eq!(read_after(json!(null)), Ok(ResultChange::default()));
        let change = read_after(json!({"content": "x", "isError": true})).unwrap();
        assert_eq!(change.content.unwrap()[0]["text"], "x");
        assert_eq!(change.is_error, Some(true));
        for bad in [json!(true), json!({"text": "x"}), json!({"content": [1]})] {
            assert!(read_after(bad.clone()).is_err(), "{bad}");
        }
    }
}
