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
        let mut out = Outgoing::new(url, &body);
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
        let validates = generation(&request.model.id).is_some_and(|generation| generation >= 3);
        let forms: Vec<Option<Value>> =
            request.tools.iter().map(|tool| strict_form(tool, validates)).collect::<Result<_, _>>()?;
        let declarations = request.tools.iter().zip(&forms).map(|(tool, form)| declaration(tool, form.as_ref()));
        let declarations: Vec<Value> = declarations.collect();
        body.insert("tools".to_owned(), json!([{"functionDeclarations": declarations}]));
        if let Some(mode) = mode(request, forms.iter().any(Option::is_some)) {
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

/// How functions may be called (P511). With a strict one their arguments are validated.
fn mode(request: &Request, strict: bool) -> Option<&'static str> {
    match request.options.tool_choice {
        Some(ToolChoice::None) => Some("NONE"),
        _ if strict => Some("VALIDATED"),
        Some(ToolChoice::Auto) => Some("AUTO"),
        None => None,
    }
}

/// The strict form of a tool's schema, if it wants one and the model validates (P130).
fn strict_form(tool: &Value, validates: bool) -> Result<Option<Value>, String> {
    let wish = strict::wish(tool);
    if wish == strict::Wish::None {
        return Ok(None);
    }
    let form = if validates { strict::strict_schema(&tool["parameters"]) } else { None };
    if form.is_none() && wish == strict::Wish::Require {
        let name = tool["name"].as_str().unwrap_or_default();
        return Err(format!(
            "the tool {name:?} must have strict arguments, which this model or the tool's schema does not allow"
        ));
    }
    Ok(form)
}

fn declaration(tool: &Value, strict: Option<&Value>) -> Value {
    json!({
        "name": tool["name"],
        "description": tool["description"].as_str().unwrap_or_default(),
        "parametersJsonSchema": without_const(strict.unwrap_or(&tool["parameters"])),
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
