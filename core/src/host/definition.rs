//! The definition of a tool as a host writes it.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::{Error, ErrorCode, Result};
use crate::permissions::Effect;
use crate::tools::validate::Checker;
use crate::tools::{ExecutionMode, ToolDefinition};

/// The longest name that model services take.
const LONGEST_NAME: usize = 64;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Given {
    name: String,
    #[serde(default)]
    description: String,
    parameters: Option<Value>,
    #[serde(default)]
    execution_mode: Mode,
    snippet: Option<String>,
    #[serde(default)]
    guidelines: Vec<String>,
    constrained_sampling: Option<Value>,
    effect: Option<String>,
    #[serde(default)]
    path_arguments: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
enum Mode {
    #[default]
    Parallel,
    Sequential,
}

impl ToolDefinition {
    /// Reads `{name, description, parameters?, executionMode?, snippet?, guidelines?, constrainedSampling?, effect?,
    /// pathArguments?}`, the form in which hosts of other languages define a tool. Without `parameters` it takes none,
    /// without an `effect` it may do anything.
    ///
    /// Errors: `invalid_argument` with what is wrong.
    pub fn from_host_value(value: Value) -> Result<ToolDefinition> {
        let given: Given = crate::json::form(value).map_err(|error| invalid(format!("bad tool: {error}")))?;
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if given.name.is_empty() || given.name.len() > LONGEST_NAME || !given.name.bytes().all(allowed) {
            let text = "bad tool: a name is 1 to 64 letters, digits, `_` and `-`";
            return Err(invalid(format!("{text}, not {:?}", given.name)));
        }
        let parameters = given.parameters.unwrap_or_else(|| json!({"type": "object", "properties": {}}));
        if parameters.get("type").and_then(Value::as_str) != Some("object") {
            return Err(invalid(format!("bad tool {:?}: parameters is no schema of an object", given.name)));
        }
        if let Err(problem) = Checker::new(&parameters) {
            return Err(invalid(format!("bad tool {:?}: parameters is no JSON Schema: {problem}", given.name)));
        }
        let mut definition = ToolDefinition::new(given.name, given.description, parameters);
        definition.mode = match given.execution_mode {
            Mode::Parallel => ExecutionMode::Parallel,
            Mode::Sequential => ExecutionMode::Sequential,
        };
        definition.snippet = given.snippet;
        definition.guidelines = given.guidelines;
        definition.constrained_sampling = given.constrained_sampling;
        if let Some(name) = given.effect {
            let text = format!("bad tool {:?}: an effect is read, write or execute, not {name:?}", definition.name);
            definition.effect = Effect::from_name(&name).ok_or_else(|| invalid(text))?;
        }
        definition.path_arguments = given.path_arguments;
        Ok(definition)
    }

    /// The form that [`from_host_value`](Self::from_host_value) reads.
    pub fn to_host_value(&self) -> Value {
        let mut value = self.declaration();
        if let Value::Object(object) = &mut value {
            if self.mode == ExecutionMode::Sequential {
                object.insert("executionMode".to_owned(), "sequential".into());
            }
            if let Some(snippet) = &self.snippet {
                object.insert("snippet".to_owned(), snippet.as_str().into());
            }
            if !self.guidelines.is_empty() {
                object.insert("guidelines".to_owned(), self.guidelines.clone().into());
            }
            if self.effect != Effect::Execute {
                object.insert("effect".to_owned(), self.effect.name().into());
            }
            if !self.path_arguments.is_empty() {
                object.insert("pathArguments".to_owned(), self.path_arguments.clone().into());
            }
        }
        value
    }
}

fn invalid(message: String) -> Error {
    Error::new(ErrorCode::InvalidArgument, message)
}
