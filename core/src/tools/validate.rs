//! Checking a call's arguments against the tool's schema, and what the model reads when they do not fit (T10–T12, S216).

use std::fmt::Write;
use std::sync::OnceLock;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::{ValidationError, Validator};
use serde_json::Value;

use super::coerce::Coercion;
use super::number;
use super::plain_schema;
use crate::json;
use crate::message::JsonObject;

/// Most members of an `enum` that a message lists.
const LISTED: usize = 20;

/// A schema, read once and used for any number of calls, from any thread.
#[derive(Debug)]
pub struct Checker {
    coercion: Coercion,
    schema: Value,
    /// See [`plain_schema`].
    plain: bool,
    /// Made when something does not fit, or at once for schemas that are not plain.
    validator: OnceLock<Result<Validator, String>>,
}

impl Checker {
    /// Reads a schema. References are followed inside the schema only.
    ///
    /// Errors: what is wrong with the schema.
    pub fn new(schema: &Value) -> Result<Checker, String> {
        let plain = plain_schema::is_plain(schema);
        let validator = OnceLock::new();
        if !plain {
            let _ = validator.set(Ok(compile(schema)?));
        }
        Ok(Checker { coercion: Coercion::new(schema), schema: schema.clone(), plain, validator })
    }

    /// The arguments as the tool gets them, or the text the model reads: a line for each problem, then the arguments as
    /// they were received.
    pub fn check(&self, tool: &str, arguments: &Value) -> Result<JsonObject, String> {
        let mut converted = arguments.clone();
        self.coercion.apply(&mut converted);
        let mut problems = Problems { lines: Vec::new(), schema: &self.schema };
        if !self.plain || !plain_schema::fits(&self.schema, &converted) {
            match self.validator.get_or_init(|| compile(&self.schema)) {
                Ok(validator) => {
                    let errors: Vec<ValidationError<'_>> = validator.iter_errors(&converted).collect();
                    problems.add_all(&errors);
                }
                Err(error) => problems.lines.push(format!("root: the tool's schema is broken: {error}")),
            }
        }
        if problems.lines.is_empty() {
            match converted {
                Value::Object(object) => return Ok(object),
                other => problems.lines.push(format!("root: expected object, got {}", type_name(&other))),
            }
        }
        Err(failure(tool, &problems.lines, arguments))
    }
}

/// A validator that knows the usual formats and never leaves the schema.
pub(super) fn compile(schema: &Value) -> Result<Validator, String> {
    let options = || jsonschema::options().should_validate_formats(true);
    // Schemas with a list of `items`, as they were before the present draft, say so in no other way.
    let older = |_| options().with_draft(jsonschema::Draft::Draft7).build(schema);
    options().build(schema).map_err(|error| error.to_string()).or_else(|problem| older(()).map_err(|_| problem))
}

fn failure(tool: &str, problems: &[String], arguments: &Value) -> String {
    let mut text = format!("Validation failed for tool \"{tool}\":\n");
    for problem in problems {
        let _ = writeln!(text, "  - {problem}");
    }
    text.push_str("\nReceived arguments:\n");
    pretty(&mut text, arguments, 1);
    text
}

/// JSON indented by two spaces, with numbers as JavaScript writes them.
fn pretty(out: &mut String, value: &Value, depth: usize) {
    let indent = |out: &mut String, depth: usize| out.extend(std::iter::once("\n").chain((0..depth).map(|_| "  ")));
    match value {
        Value::Object(object) if !object.is_empty() => {
            out.push('{');
            for (index, (key, value)) in object.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                indent(out, depth);
                let _ = write!(out, "{}: ", json::to_string(key));
                pretty(out, value, depth + 1);
            }
            indent(out, depth - 1);
            out.push('}');
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('[');
            for (index, value) in items.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                indent(out, depth);
                pretty(out, value, depth + 1);
            }
            indent(out, depth - 1);
            out.push(']');
        }
        leaf => out.push_str(&json::to_string(leaf)),
    }
}

/// The lines of a message.
struct Problems<'a> {
    lines: Vec<String>,
    schema: &'a Value,
}

impl Problems<'_> {
    fn add_all(&mut self, errors: &[ValidationError<'_>]) {
        let mismatched: Vec<&str> = errors
            .iter()
            .filter(|error| matches!(error.kind(), ValidationErrorKind::Type { .. }))
            .map(|error| error.instance_path().as_str())
            .collect();
        for error in errors {
            // Of a value of the wrong type nothing else is worth saying.
            let wrong = mismatched.contains(&error.instance_path().as_str());
            if !wrong || matches!(error.kind(), ValidationErrorKind::Type { .. }) {
                self.add(error);
            }
        }
    }

    fn add(&mut self, error: &ValidationError<'_>) {
        let path = dotted(error.instance_path());
        let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        match error.kind() {
            ValidationErrorKind::Required { property } => {
                let key = property.as_str().map_or_else(|| json::to_string(property), str::to_owned);
                self.say(&below(&key), "missing");
            }
            ValidationErrorKind::AdditionalProperties { unexpected }
            | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
                for key in unexpected {
                    self.say(&below(key), "unknown field");
                }
            }
            ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
                self.add_union(error, context);
            }
            ValidationErrorKind::Type { kind } => {
                let (wanted, got) = (self.expected(error, kind).join(" or "), type_name(error.instance()));
                self.say(&path, &format!("expected {wanted}, got {got}"));
            }
            kind => self.say(&path, &phrase(kind)),
        }
    }

    /// The types a schema allows, in the order in which it lists them.
    fn expected(&self, error: &ValidationError<'_>, kind: &TypeKind) -> Vec<String> {
        let listed = self.schema.pointer(error.schema_path().as_str()).and_then(Value::as_array);
        match (kind, listed) {
            (TypeKind::Multiple(_), Some(names)) => names.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            (TypeKind::Multiple(several), None) => several.iter().map(|it| it.to_string()).collect(),
            (TypeKind::Single(one), _) => vec![one.to_string()],
        }
    }

    /// No branch of a union fits: what is wrong with the first one of the right type, or that the first one's type is wrong.
    /// Branches that differ in one constant name all of its values.
    fn add_union(&mut self, error: &ValidationError<'_>, branches: &[Vec<ValidationError<'static>>]) {
        let here = error.instance_path().as_str();
        let of_other_type = |branch: &&Vec<ValidationError<'static>>| {
            let mismatch = |it: &ValidationError<'_>| {
                matches!(it.kind(), ValidationErrorKind::Type { .. }) && it.instance_path().as_str() == here
            };
            branch.iter().any(mismatch)
        };
        let close: Vec<_> = branches.iter().filter(|branch| !of_other_type(branch)).collect();
        if close.len() > 1
            && let Some((path, values)) = one_constant(here, &close)
        {
            return self.say(&path, &one_of(&values));
        }
        if let Some(first) = close.first().copied().or(branches.first()) {
            self.add_all(first);
        }
    }

    fn say(&mut self, path: &str, problem: &str) {
        let path = if path.is_empty() { "root" } else { path };
        let line = format!("{path}: {problem}");
        if !self.lines.contains(&line) {
            self.lines.push(line);
        }
    }
}

fn phrase(kind: &ValidationErrorKind) -> String {
    match kind {
        ValidationErrorKind::Enum { options } => match options.as_array() {
            Some(options) => one_of(options),
            None => one_of(std::slice::from_ref(options)),
        },
        ValidationErrorKind::Constant { expected_value } => format!("expected {}", json::to_string(&**expected_value)),
        ValidationErrorKind::MinLength { limit } => format!("expected at least {limit} characters"),
        ValidationErrorKind::MaxLength { limit } => format!("expected at most {limit} characters"),
        ValidationErrorKind::MinItems { limit } => format!("expected at least {limit} items"),
        ValidationErrorKind::MaxItems { limit } => format!("expected at most {limit} items"),
        ValidationErrorKind::AdditionalItems { limit } => format!("expected at most {limit} items"),
        ValidationErrorKind::MinProperties { limit } => format!("expected at least {limit} properties"),
        ValidationErrorKind::MaxProperties { limit } => format!("expected at most {limit} properties"),
        ValidationErrorKind::Minimum { limit } => format!("expected >= {}", json::to_string(limit)),
        ValidationErrorKind::Maximum { limit } => format!("expected <= {}", json::to_string(limit)),
        ValidationErrorKind::ExclusiveMinimum { limit } => format!("expected > {}", json::to_string(limit)),
        ValidationErrorKind::ExclusiveMaximum { limit } => format!("expected < {}", json::to_string(limit)),
        ValidationErrorKind::MultipleOf { multiple_of } => {
            format!("expected a multiple of {}", json::to_string(&number::to_value(*multiple_of)))
        }
        ValidationErrorKind::Pattern { pattern } => format!("expected to match {pattern}"),
        ValidationErrorKind::Format { format } => format!("expected format {format}"),
        ValidationErrorKind::UniqueItems => "expected no item twice".to_owned(),
        ValidationErrorKind::Contains => "expected an item of another kind".to_owned(),
        ValidationErrorKind::FalseSchema => "unknown field".to_owned(),
        ValidationErrorKind::OneOfMultipleValid { .. } => "fits more than one of the alternatives".to_owned(),
        ValidationErrorKind::Not { .. } => "has a form that is not allowed".to_owned(),
        other => format!("does not satisfy {}", other.keyword()),
    }
}

fn one_of(options: &[Value]) -> String {
    let listed: Vec<String> = options.iter().take(LISTED).map(json::to_string).collect();
    let more = options.len().saturating_sub(LISTED);
    let rest = if more > 0 { format!(", ... and {more} more") } else { String::new() };
    format!("expected one of [{}{rest}]", listed.join(","))
}

/// The place below `here` where every branch wants a constant and nothing else is wrong, and these constants.
fn one_constant(here: &str, branches: &[&Vec<ValidationError<'static>>]) -> Option<(String, Vec<Value>)> {
    let mut path = None;
    let mut values = Vec::with_capacity(branches.len());
    for branch in branches {
        let [only] = branch.as_slice() else { return None };
        let ValidationErrorKind::Constant { expected_value } = only.kind() else { return None };
        let at = only.instance_path().as_str();
        if at == here || path.as_deref().is_some_and(|path| path != at) {
            return None;
        }
        path = Some(at.to_owned());
        values.push(Value::clone(expected_value));
    }
    let first = branches.first()?.first()?;
    Some((dotted(first.instance_path()), values))
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) if number::is_integer(value) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// `edits.0.newText`; the empty text for the root.
fn dotted(path: &Location) -> String {
    let segments: Vec<String> = path
        .iter()
        .map(|segment| match segment {
            LocationSegment::Property(name) => name.into_owned(),
            LocationSegment::Index(index) => index.to_string(),
        })
        .collect();
    segments.join(".")
}
