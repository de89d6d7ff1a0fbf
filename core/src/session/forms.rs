//! The JSON forms of what operations take and give: the same in every language that has no structs of ours. Keys are
//! `camelCase`; an unknown one is an error, not a silence.

use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

use super::adopt::AdoptOptions;
use super::asked::{CustomMessage, Delivery};
use super::event::CompactionResult;
use super::explore_options::{ExploreOptions, ExplorePrompt, ExploreResult};
use super::replace::{NewSessionOptions, SwitchOptions};
use super::run_bash::RunBashOptions;
use super::sibling::{BranchOptions, BranchPoint};
use super::stats::SessionStats;
use crate::json;
use crate::message::BashExecution;

/// Reads a form by way of the struct that says what its keys are.
macro_rules! reads {
    ($type:ty, $given:ident => $value:expr) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                $given::deserialize(from).map($value)
            }
        }
    };
}

/// An absent `at` is the leaf, `null` the start, a text an entry.
fn point<'de, D: Deserializer<'de>>(from: D) -> Result<BranchPoint, D::Error> {
    Ok(Option::<String>::deserialize(from)?.map_or(BranchPoint::Start, BranchPoint::Entry))
}

/// `{model?, thinkingLevel?, tools?}`
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct GivenBranch {
    model: Option<String>,
    thinking_level: Option<String>,
    tools: Option<Vec<String>>,
}

reads!(BranchOptions, GivenBranch => |given: GivenBranch| BranchOptions {
    model: given.model,
    thinking_level: given.thinking_level,
    tools: given.tools,
    budgets: Vec::new(),
});

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct GivenBranchAt {
    #[serde(deserialize_with = "point")]
    at: BranchPoint,
    model: Option<String>,
    thinking_level: Option<String>,
    tools: Option<Vec<String>>,
}

/// Where a sibling begins, and how: the form `{at?, model?, thinkingLevel?, tools?}` of the arguments of
/// [`Session::branch`](super::Session::branch). An absent `at` is the leaf, `null` is before the first entry.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct BranchForm {
    /// Where it begins.
    pub at: BranchPoint,
    /// Everything else.
    pub options: BranchOptions,
}

reads!(BranchForm, GivenBranchAt => |given: GivenBranchAt| BranchForm {
    at: given.at,
    options: BranchOptions { model: given.model, thinking_level: given.thinking_level, tools: given.tools, budgets: Vec::new() },
});

#[derive(Deserialize)]
#[serde(untagged)]
enum GivenPrompt {
    Text(String),
    Full(GivenFullPrompt),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct GivenFullPrompt {
    text: String,
    #[serde(default)]
    images: Vec<Value>,
    model: Option<String>,
    thinking_level: Option<String>,
    tools: Option<Vec<String>>,
}

// A text, or `{text, images?, model?, thinkingLevel?, tools?}`.
reads!(ExplorePrompt, GivenPrompt => |given: GivenPrompt| match given {
    GivenPrompt::Text(text) => ExplorePrompt::new(text),
    GivenPrompt::Full(given) => ExplorePrompt {
        text: given.text,
        images: given.images,
        branch: BranchOptions { model: given.model, thinking_level: given.thinking_level, tools: given.tools, budgets: Vec::new() },
    },
});

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct GivenExplore {
    #[serde(deserialize_with = "point")]
    at: BranchPoint,
    limit: Option<usize>,
    model: Option<String>,
    thinking_level: Option<String>,
    tools: Option<Vec<String>>,
    capacity: Option<usize>,
}

// `{at?, limit?, model?, thinkingLevel?, tools?, capacity?}`
reads!(ExploreOptions, GivenExplore => |given: GivenExplore| {
    let usual = ExploreOptions::default();
    ExploreOptions {
        at: given.at,
        limit: given.limit.unwrap_or(usual.limit),
        branch: BranchOptions { model: given.model, thinking_level: given.thinking_level, tools: given.tools, budgets: Vec::new() },
        capacity: given.capacity.unwrap_or(usual.capacity),
    }
});

/// `{summarizeOthers?, others?, instructions?, replaceInstructions?}`
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct GivenAdopt {
    summarize_others: bool,
    others: Option<Vec<String>>,
    instructions: Option<String>,
    replace_instructions: bool,
}

reads!(AdoptOptions, GivenAdopt => |given: GivenAdopt| AdoptOptions {
    summarize_others: given.summarize_others,
    others: given.others,
    instructions: given.instructions,
    replace_instructions: given.replace_instructions,
});

/// `{recordParent?, name?}`
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct GivenNew {
    record_parent: bool,
    name: Option<String>,
}

reads!(NewSessionOptions, GivenNew => |given: GivenNew| NewSessionOptions {
    record_parent: given.record_parent,
    name: given.name,
});

/// `{cwd?}`
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct GivenSwitch {
    cwd: Option<String>,
}

reads!(SwitchOptions, GivenSwitch => |given: GivenSwitch| SwitchOptions { cwd: given.cwd.map(Into::into) });

/// `{customType, content, display?, details?}`
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct GivenCustom {
    custom_type: String,
    content: Value,
    #[serde(default = "yes")]
    display: bool,
    details: Option<Value>,
}

fn yes() -> bool {
    true
}

reads!(CustomMessage, GivenCustom => |given: GivenCustom| CustomMessage {
    custom_type: given.custom_type,
    content: given.content,
    display: given.display,
    details: given.details,
});

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum GivenDelivery {
    Store,
    Steer,
    FollowUp,
    NextTurn,
}

// `"store"`, `"steer"`, `"followUp"` or `"nextTurn"`.
reads!(Delivery, GivenDelivery => |given: GivenDelivery| match given {
    GivenDelivery::Store => Delivery::Store,
    GivenDelivery::Steer => Delivery::Steer,
    GivenDelivery::FollowUp => Delivery::FollowUp,
    GivenDelivery::NextTurn => Delivery::NextTurn,
});

/// `{command, output?, exitCode?, cancelled?, truncated?, fullOutputPath?, timestamp?, excludeFromContext?}`
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct GivenBash {
    command: String,
    #[serde(default)]
    output: String,
    exit_code: Option<i32>,
    #[serde(default)]
    cancelled: bool,
    #[serde(default)]
    truncated: bool,
    full_output_path: Option<String>,
    #[serde(default)]
    timestamp: i64,
    exclude_from_context: Option<bool>,
}

reads!(BashExecution, GivenBash => |given: GivenBash| BashExecution {
    command: given.command,
    output: given.output,
    exit_code: given.exit_code,
    cancelled: given.cancelled,
    truncated: given.truncated,
    full_output_path: given.full_output_path,
    timestamp: given.timestamp,
    exclude_from_context: given.exclude_from_context,
});

/// `{id?, excludeFromContext?}`
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct GivenRunBash {
    id: Option<String>,
    exclude_from_context: bool,
}

reads!(RunBashOptions, GivenRunBash => |given: GivenRunBash| RunBashOptions {
    id: given.id,
    exclude_from_context: given.exclude_from_context,
    ..RunBashOptions::default()
});

impl Serialize for CompactionResult {
    /// As in the event `compaction_end`, with `entryId` in front.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut out = to.serialize_struct("CompactionResult", 7)?;
        out.serialize_field("entryId", &self.entry_id)?;
        out.serialize_field("summary", &self.summary)?;
        out.serialize_field("firstKeptEntryId", &self.first_kept_entry_id)?;
        out.serialize_field("tokensBefore", &self.tokens_before)?;
        out.serialize_field("estimatedTokensAfter", &self.estimated_tokens_after)?;
        match &self.usage {
            Some(usage) => out.serialize_field("usage", usage)?,
            None => out.skip_field("usage")?,
        }
        out.serialize_field("details", &self.details)?;
        out.end()
    }
}

impl Serialize for SessionStats {
    /// `{userMessages, assistantMessages, toolResults, messages, toolCalls, tokens: {input, output, cacheRead, cacheWrite,
    /// cost}, costs: [{model, tokens}, …]}`
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut out = to.serialize_struct("SessionStats", 7)?;
        out.serialize_field("userMessages", &self.user_messages)?;
        out.serialize_field("assistantMessages", &self.assistant_messages)?;
        out.serialize_field("toolResults", &self.tool_results)?;
        out.serialize_field("messages", &self.messages)?;
        out.serialize_field("toolCalls", &self.tool_calls)?;
        out.serialize_field("tokens", &self.tokens)?;
        out.serialize_field("costs", &self.costs())?;
        out.end()
    }
}

impl ExploreResult {
    /// All but the session, as JSON: `{sibling, text, usage, stopReason, errorMessage, leaf, aborted, budgetExceeded, error: {code, message,
    /// path} | null, messages}`.
    pub fn to_json(&self) -> String {
        let error = self.error.as_ref().map(|error| {
            let path = error.path().map(|path| path.to_string_lossy());
            json!({"code": error.code().name(), "message": error.message(), "path": path})
        });
        let facts = json!({
            "sibling": self.sibling,
            "text": self.text,
            "usage": self.usage.to_value(),
            "stopReason": self.stop_reason.map(|reason| reason.name()),
            "errorMessage": self.error_message,
            "leaf": self.leaf,
            "aborted": self.aborted,
            "budgetExceeded": self.budget_exceeded,
            "error": error,
        });
        let mut text = json::to_string(&facts);
        text.pop();
        text.push_str(",\"messages\":[");
        for (at, message) in self.messages.iter().enumerate() {
            if at > 0 {
                text.push(',');
            }
            text.push_str(&message.to_json());
        }
        text.push_str("]}");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, String> {
        crate::json::form(value).map_err(|error| error.to_string())
    }

    #[test]
    fn three_ways_to_say_where() {
        let at = |value| read::<BranchForm>(value).unwrap().at;
        assert_eq!(at(json!({})), BranchPoint::Leaf);
        assert_eq!(at(json!({"at": null})), BranchPoint::Start);
        assert_eq!(at(json!({"at": "0a"})), BranchPoint::Entry("0a".into()));
        let given = read::<ExploreOptions>(json!({"at": null, "limit": 2, "model": "p/m"})).unwrap();
        assert_eq!((given.at, given.limit, given.capacity), (BranchPoint::Start, 2, 1024));
        assert_eq!(given.branch.model.as_deref(), Some("p/m"));
    }

    #[test]
    fn a_prompt_is_a_text_or_more() {
        let short = read::<ExplorePrompt>(json!("a")).unwrap();
        let long = read::<ExplorePrompt>(json!({"text": "b", "thinkingLevel": "high", "tools": []})).unwrap();
        assert_eq!((&*short.text, &*long.text), ("a", "b"));
        assert_eq!((long.branch.thinking_level.as_deref(), long.branch.tools), (Some("high"), Some(vec![])));
    }

    #[test]
    fn misspelt_keys_are_errors() {
        assert!(read::<BranchForm>(json!({"modell": "x"})).is_err());
        assert!(read::<ExplorePrompt>(json!({"txt": "x"})).is_err());
        assert!(read::<AdoptOptions>(json!({"summarise": true})).is_err());
        assert!(read::<CustomMessage>(json!({"customType": "a"})).is_err());
        assert!(read::<BashExecution>(json!({"output": "a"})).is_err());
        assert!(read::<Delivery>(json!("later")).is_err());
    }
}
