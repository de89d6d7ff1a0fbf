//! Gemini (P500–P524). `contents` writes the conversation, `thinking` what levels mean, `stream` reads the answer.

mod contents;
mod stream;
mod thinking;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use serde_json::{Value, json};

use super::http::{Memo, Outgoing, Refusal};
use super::limits::{conversation_tokens, output_limit};
use super::protocol::{Call, Interpreter, Protocol};
use super::transcript::is_blank;
use super::{Request, ToolChoice, strict};
use crate::message::JsonObject;

/// The protocol `google-generative-ai`.
#[derive(Default)]
pub(crate) struct Google {
    /// Counts the ids made here, so that they differ within an engine (P521).
    counter: Arc<AtomicU64>,
}

impl Protocol for Google {
    fn api(&self) -> &'static str {
        "google-generative-ai"
    }

    fn needs_key(&self, _: &Call<'_>) -> bool {
        true
    }

    fn prepare(&self, call: &Call<'_>) -> Result<Outgoing, String> {
        let body = body(call.request)?;
        let id = &call.request.model.id;
        let url = format!("{}/models/{id}:streamGenerateContent?alt=sse", call.base_url());
        let mut out = Outgoing::new(url, crate::json::to_vec(&body));
        call.key_header(&mut out, "x-goog-api-key");
        Ok(out)
    }

    fn interpreter(&self, _: &Request, _: Option<Memo>) -> Box<dyn Interpreter> {
        Box::new(stream::Answers::new(self.counter.clone()))
    }

    fn refused(&self, _: &Request, refusal: &Refusal) -> String {
        match refusal.shown() {
            body if is_blank(&body) => format!("HTTP {}", refusal.status),
            body => body,
        }
    }
}

/// The generation of a Gemini model, `gemini-2.5-pro` being of the second; `None` for other models.
fn generation(id: &str) -> Option<u32> {
    let digits = id.strip_prefix("gemini-")?;
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().ok()
}

fn body(request: &Request) -> Result<JsonObject, String> {
    let (model, options) = (&*request.model, &request.options);
    let (system, contents) = contents::convert(request);
    let mut body = JsonObject::new();
    body.insert("contents".to_owned(), contents.into());
    if !is_blank(&system) {
        body.insert("systemInstruction".to_owned(), json!({"parts": [{"text": system}], "role": "user"}));
    }
    if !request.tools.is_empty() {
        let declarations: Vec<Value> = request.tools.iter().map(declaration).collect();
        body.insert("tools".to_owned(), json!([{"functionDeclarations": declarations}]));
        if let Some(mode) = mode(request)? {
            body.insert("toolConfig".to_owned(), json!({"functionCallingConfig": {"mode": mode}}));
        }
    }
    let mut config = JsonObject::new();
    if let Some(temperature) = options.temperature {
        config.insert("temperature".to_owned(), temperature.into());
    }
    let limit = output_limit(model, options.max_tokens, conversation_tokens(&request.messages));
    if limit > 0 {
        config.insert("maxOutputTokens".to_owned(), limit.into());
    }
    if let Some(thinking) = thinking::config(request)? {
        config.insert("thinkingConfig".to_owned(), thinking);
    }
    if !config.is_empty() {
        body.insert("generationConfig".to_owned(), config.into());
    }
    Ok(body)
}

/// How functions may be called (P511).
fn mode(request: &Request) -> Result<Option<&'static str>, String> {
    let validates = generation(&request.model.id).is_some_and(|generation| generation >= 3);
    let mut strict = false;
    for tool in request.tools.iter() {
        match strict::wish(tool) {
            strict::Wish::Require if !validates => {
                let name = tool["name"].as_str().unwrap_or_default();
                return Err(format!("the tool {name:?} must have strict arguments, which this model does not allow"));
            }
            wish => strict |= wish != strict::Wish::None,
        }
    }
    Ok(match request.options.tool_choice {
        Some(ToolChoice::None) => Some("NONE"),
        _ if strict && validates => Some("VALIDATED"),
        Some(ToolChoice::Auto) => Some("AUTO"),
        None => None,
    })
}

fn declaration(tool: &Value) -> Value {
    json!({
        "name": tool["name"],
        "description": tool["description"].as_str().unwrap_or_default(),
        "parametersJsonSchema": without_const(&tool["parameters"]),
    })
}

/// Texts and numbers in `const` become an `enum` of one value, which the service understands (P507).
fn without_const(schema: &Value) -> Value {
    match schema {
        Value::Object(object) => {
            let member = |(key, value): (&String, &Value)| match (key.as_str(), value) {
                ("const", Value::String(_) | Value::Number(_)) => ("enum".to_owned(), json!([value])),
                ("enum" | "default" | "examples", _) => (key.clone(), value.clone()),
                ("properties", Value::Object(properties)) => {
                    let each = properties.iter().map(|(name, schema)| (name.clone(), without_const(schema)));
                    (key.clone(), Value::Object(each.collect()))
                }
                _ => (key.clone(), without_const(value)),
            };
            Value::Object(object.iter().map(member).collect())
        }
        Value::Array(items) => items.iter().map(without_const).collect(),
        other => other.clone(),
    }
}
