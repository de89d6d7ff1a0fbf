//! Tool declarations for both OpenAI protocols (P130–P132, P305, P408).

use std::collections::HashMap;

use serde_json::{Value, json};

use super::strict::strict_schema;
use crate::message::JsonObject;

/// What the service can do with tools.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ToolSupport {
    /// It enforces strict schemas; whether a tool is strict is then said for each.
    pub(crate) strict: bool,
    /// It takes tools with a grammar.
    pub(crate) grammar: bool,
}

/// One tool as it will be declared.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Declared<'a> {
    /// A function with a schema.
    Function {
        /// Its name.
        name: &'a str,
        /// For the model.
        description: &'a str,
        /// JSON Schema of the arguments.
        parameters: Value,
        /// Whether the schema is enforced; `None` where that is not said.
        strict: Option<bool>,
    },
    /// A tool whose input is free text that follows a grammar.
    Grammar {
        /// Its name.
        name: &'a str,
        /// For the model.
        description: &'a str,
        /// `lark` or `regex`.
        syntax: &'static str,
        /// The grammar.
        definition: &'a str,
    },
}

/// The property that holds the input of each tool with a grammar.
pub(crate) fn grammar_tools(tools: &[Value], supported: bool) -> HashMap<String, String> {
    let has_grammar = |tool: &&Value| tool.pointer("/constrainedSampling/variants").and_then(grammar).is_some();
    let named = |tool: &Value| {
        let property = only_text_property(tool.get("parameters")?)?;
        Some((tool.get("name")?.as_str()?.to_owned(), property.to_owned()))
    };
    tools.iter().filter(|_| supported).filter(has_grammar).filter_map(named).collect()
}

/// The declarations, and the property that holds the input of each tool with a grammar.
///
/// Errors: a tool requires what the service cannot do.
pub(crate) fn declare(
    tools: &[Value],
    support: ToolSupport,
) -> Result<(Vec<Declared<'_>>, HashMap<String, String>), String> {
    let mut declared = Vec::with_capacity(tools.len());
    let grammar_tools = grammar_tools(tools, support.grammar);
    for tool in tools {
        let text = |key: &str| tool.get(key).and_then(Value::as_str).unwrap_or_default();
        let (name, description) = (text("name"), text("description"));
        let parameters = tool.get("parameters").cloned().unwrap_or_else(|| json!({"type": "object", "properties": {}}));
        let sampling = tool.get("constrainedSampling");
        let kind = sampling.and_then(|sampling| sampling.get("type")).and_then(Value::as_str);
        if kind == Some("grammar")
            && support.grammar
            && let Some(variants) = sampling.and_then(|sampling| sampling.get("variants"))
            && let Some((syntax, definition)) = grammar(variants)
        {
            if !grammar_tools.contains_key(name) {
                return Err(format!("Tool {name} has a grammar, so it needs exactly one property, a required string"));
            }
            declared.push(Declared::Grammar { name, description, syntax, definition });
            continue;
        }
        let wish = match kind {
            Some("json_schema") => sampling.and_then(|sampling| sampling.get("strict")).and_then(Value::as_str),
            _ => None,
        };
        let form = match wish {
            Some(_) if support.strict => strict_schema(&parameters),
            _ => None,
        };
        if form.is_none() && wish == Some("require") {
            let why = if support.strict { "its schema has no strict form" } else { "the model does not support that" };
            return Err(format!("Tool {name} requires strict arguments, but {why}"));
        }
        let strict = support.strict.then_some(form.is_some());
        declared.push(Declared::Function { name, description, parameters: form.unwrap_or(parameters), strict });
    }
    Ok((declared, grammar_tools))
}

fn grammar(variants: &Value) -> Option<(&'static str, &str)> {
    [("openai_lark", "lark"), ("openai_regex", "regex")].into_iter().find_map(|(key, syntax)| {
        let variant = variants.get(key)?;
        let definition = variant.as_str().or_else(|| variant.get("definition").and_then(Value::as_str))?;
        Some((syntax, definition))
    })
}

fn only_text_property(parameters: &Value) -> Option<&str> {
    let properties: &JsonObject = parameters.get("properties")?.as_object()?;
    let mut all = properties.iter();
    let (name, schema) = all.next()?;
    let required = parameters.get("required")?.as_array()?.iter().any(|required| required == name.as_str());
    let text = schema.get("type").and_then(Value::as_str) == Some("string");
    (all.next().is_none() && required && text).then_some(name)
}
