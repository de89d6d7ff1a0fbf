//! How a request says how much to think, in the format of the service (P310, P311).

use serde_json::{Value, json};

use super::compat::{ChatCompat, ThinkingFormat};
use crate::message::JsonObject;
use crate::providers::Model;

/// The thinking a request asks for.
pub(super) struct Thinking<'a> {
    pub(super) model: &'a Model,
    pub(super) compat: &'a ChatCompat,
    /// The level; `None` for off.
    pub(super) level: Option<&'a str>,
    /// Tokens it may take; 0 when there is no thinking.
    pub(super) budget: u64,
}

impl Thinking<'_> {
    /// The service's word for the level; `None` when off.
    fn effort(&self) -> Option<&str> {
        self.level.map(|level| self.model.level_word(level).flatten().unwrap_or(level))
    }

    /// The service's word for "off": `None` if the model says nothing about it, `Some(None)` if it cannot be off.
    fn off(&self) -> Option<Option<&str>> {
        self.model.level_word("off")
    }

    /// Adds the fields. A model that does not reason has none.
    pub(super) fn put(&self, body: &mut JsonObject) {
        if !self.model.reasoning {
            return;
        }
        let on = self.level.is_some();
        let kind = || json!({"type": if on { "enabled" } else { "disabled" }});
        let effort = self.effort().filter(|_| self.compat.reasoning_effort);
        let mut put = |key: &str, value: Value| {
            body.insert(key.to_owned(), value);
        };
        match self.compat.thinking_format {
            ThinkingFormat::OpenAi => {
                if let Some(word) =
                    effort.or_else(|| self.off().flatten().filter(|_| !on && self.compat.reasoning_effort))
                {
                    put("reasoning_effort", word.into());
                }
            }
            ThinkingFormat::Zai => {
                let mut thinking = kind();
                if on {
                    thinking["clear_thinking"] = false.into();
                }
                put("thinking", thinking);
                put_effort(body, effort);
            }
            ThinkingFormat::DeepSeek => {
                // Nothing is said of off to a model that cannot be off.
                if on || self.off() != Some(None) {
                    put("thinking", kind());
                }
                put_effort(body, effort);
            }
            ThinkingFormat::Qwen => {
                put("enable_thinking", on.into());
                put_effort(body, effort);
            }
            ThinkingFormat::Together => {
                put("reasoning", json!({"enabled": on}));
                put_effort(body, effort);
            }
            ThinkingFormat::QwenTemplate => {
                put("chat_template_kwargs", json!({"enable_thinking": on, "preserve_thinking": true}));
            }
            ThinkingFormat::Template => self.put_template(body, "chat_template_kwargs"),
            ThinkingFormat::TemplateArgs => {
                let off = self.off().flatten().filter(|_| !on && self.compat.reasoning_effort);
                put_effort(body, effort.or(off));
                self.put_template(body, "chat_template_args");
            }
            ThinkingFormat::OpenRouter => {
                if let Some(word) = self.effort().or_else(|| self.off().unwrap_or(Some("none"))) {
                    put("reasoning", json!({"effort": word}));
                }
            }
            ThinkingFormat::Word => {
                if let Some(word) = self.effort().or_else(|| self.off().unwrap_or(Some("none"))) {
                    put("thinking", word.into());
                }
            }
            ThinkingFormat::AntLing => {
                if let Some(word) = self.level.and_then(|level| self.model.level_word(level).flatten()) {
                    put("reasoning", json!({"effort": word}));
                }
            }
        }
        if let (Some(field), true) = (&self.compat.budget_field, on && self.budget > 0) {
            body.insert(field.clone(), self.budget.into());
        }
    }

    /// A configured map in which `{"$var": …}` stands for what the request asks for (P311).
    fn put_template(&self, body: &mut JsonObject, key: &str) {
        let mut values = JsonObject::new();
        for (name, value) in &self.compat.template_values {
            match value.get("$var").and_then(Value::as_str) {
                None => {
                    values.insert(name.clone(), value.clone());
                }
                Some(variable) => {
                    let omit = value.get("omitWhenOff").and_then(Value::as_bool).unwrap_or(false);
                    if let Some(value) = self.variable(variable).filter(|_| self.level.is_some() || !omit) {
                        values.insert(name.clone(), value);
                    }
                }
            }
        }
        if !values.is_empty() {
            body.insert(key.to_owned(), values.into());
        }
    }

    fn variable(&self, name: &str) -> Option<Value> {
        match name {
            "thinking.enabled" => Some(self.level.is_some().into()),
            "thinking.effort" => self.effort().or_else(|| self.off().flatten()).map(Value::from),
            "thinking.budget" => self.level.map(|_| self.budget.into()),
            _ => None,
        }
    }
}

fn put_effort(body: &mut JsonObject, effort: Option<&str>) {
    if let Some(word) = effort {
        body.insert("reasoning_effort".to_owned(), word.into());
    }
}
