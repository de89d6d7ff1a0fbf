//! A policy as hosts of other languages write it.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Action, Effect, Permissions};
use crate::error::{Error, ErrorCode, Result};

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Given {
    preset: Option<String>,
    tools: Map<String, Value>,
    effects: Map<String, Value>,
    roots: Vec<PathBuf>,
    timeout_ms: Option<u64>,
}

impl Permissions {
    /// Reads a policy: the name of a preset, or `{preset?, tools?: {name: action}, effects?: {effect: action}, roots?:
    /// [directory], timeoutMs?}` with `allow`, `ask` and `deny` for actions. A handler is added to what this gives.
    ///
    /// Errors: `invalid_argument` with what is wrong.
    pub fn from_host_value(value: Value) -> Result<Permissions> {
        if let Value::String(name) = &value {
            return Permissions::named(name);
        }
        let given: Given = crate::json::form(value).map_err(|error| invalid(format!("permissions: {error}")))?;
        let mut policy = match &given.preset {
            Some(name) => Permissions::named(name)?,
            None => Permissions::default(),
        };
        for (tool, value) in given.tools {
            let action = action(&tool, &value)?;
            policy = policy.tool(tool, action);
        }
        for (name, value) in given.effects {
            let effect = Effect::from_name(&name)
                .ok_or_else(|| invalid(format!("permissions: an effect is read, write or execute, not {name:?}")))?;
            policy = policy.effect(effect, action(&name, &value)?);
        }
        policy = given.roots.into_iter().fold(policy, Permissions::root);
        Ok(match given.timeout_ms {
            Some(ms) => policy.timeout(Duration::from_millis(ms)),
            None => policy,
        })
    }
}

fn action(of: &str, value: &Value) -> Result<Action> {
    match value.as_str() {
        Some("allow") => Ok(Action::Allow),
        Some("ask") => Ok(Action::Ask),
        Some("deny") => Ok(Action::Deny),
        _ => Err(invalid(format!("permissions: what happens to {of:?} is allow, ask or deny, not {value}"))),
    }
}

fn invalid(message: String) -> Error {
    Error::new(ErrorCode::InvalidArgument, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_policy_in_json_is_the_one_in_rust() {
        let given = json!({
            "preset": "workspace",
            "tools": {"bash": "deny"},
            "effects": {"write": "ask"},
            "roots": ["src"],
            "timeoutMs": 1000,
        });
        let wanted = Permissions::workspace().tool("bash", Action::Deny).effect(Effect::Write, Action::Ask);
        let wanted = wanted.root("src").timeout(Duration::from_secs(1));
        assert_eq!(Permissions::from_host_value(given).unwrap(), wanted);
        assert_eq!(Permissions::from_host_value(json!("allow")).unwrap(), Permissions::allow());
        assert_eq!(Permissions::from_host_value(json!({})).unwrap(), Permissions::ask());
    }

    #[test]
    fn what_is_no_policy_is_refused() {
        for bad in [
            json!("all"),
            json!({"preset": "all"}),
            json!({"tools": {"bash": "never"}}),
            json!({"effects": {"delete": "deny"}}),
            json!({"root": "src"}),
            json!(true),
        ] {
            assert_eq!(
                Permissions::from_host_value(bad.clone()).unwrap_err().code(),
                ErrorCode::InvalidArgument,
                "{bad}"
            );
        }
    }
}
