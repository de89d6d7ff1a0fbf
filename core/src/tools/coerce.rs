//! Making arguments fit a schema where their meaning is plain (T11): models send `"5"` for 5 and one thing for a list of it.
//!
//! A schema is read once into nodes, so that a call only walks its arguments. What cannot be converted is left as it is;
//! validation reports it.

use std::collections::HashMap;

use jsonschema::Validator;
use regex::Regex;
use serde_json::{Map, Value};

use super::number;
use crate::json;

/// What a schema says that matters for conversion.
#[derive(Debug)]
pub(super) struct Coercion {
    nodes: Vec<Node>,
}

/// Index of a node. The root is 0.
type NodeId = usize;

#[derive(Debug, Default)]
struct Node {
    types: Vec<Type>,
    /// `type` is a list, also of one.
    listed: bool,
    /// The members of `const` or `enum`.
    members: Option<Vec<Value>>,
    properties: HashMap<String, NodeId>,
    patterns: Vec<(Regex, NodeId)>,
    additional: Option<NodeId>,
    required: Vec<String>,
    items: Option<NodeId>,
    /// Positions of a tuple.
    tuple: Vec<NodeId>,
    is_tuple: bool,
    /// Schemas that apply as well: a reference, and `allOf`.
    also: Vec<NodeId>,
    unions: Vec<Union>,
}

#[derive(Debug)]
struct Union {
    branches: Vec<(NodeId, Validator)>,
    whole: Validator,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    String,
    Number,
    Integer,
    Boolean,
    Null,
    Array,
    Object,
}

impl Type {
    fn named(name: &str) -> Option<Type> {
        Some(match name {
            "string" => Type::String,
            "number" => Type::Number,
            "integer" => Type::Integer,
            "boolean" => Type::Boolean,
            "null" => Type::Null,
            "array" => Type::Array,
            "object" => Type::Object,
            _ => return None,
        })
    }

    fn of(value: &Value) -> Type {
        match value {
            Value::Null => Type::Null,
            Value::Bool(_) => Type::Boolean,
            Value::Number(_) => Type::Number,
            Value::String(_) => Type::String,
            Value::Array(_) => Type::Array,
            Value::Object(_) => Type::Object,
        }
    }

    fn accepts(self, value: &Value) -> bool {
        let given = Type::of(value);
        given == self || (self == Type::Integer && number::is_integer(value))
    }
}

impl Coercion {
    pub(super) fn new(schema: &Value) -> Coercion {
        let mut reader = Reader { root: schema, nodes: Vec::new(), references: HashMap::new() };
        reader.read(schema);
        Coercion { nodes: reader.nodes }
    }

    pub(super) fn apply(&self, value: &mut Value) {
        self.node(0, value);
    }

    fn node(&self, id: NodeId, value: &mut Value) {
        let node = &self.nodes[id];
        for also in &node.also {
            self.node(*also, value);
        }
        for union in &node.unions {
            self.union(union, value);
        }
        if let Some(members) = &node.members
            && !members.contains(value)
        {
            // Nothing is turned into null here: it would be lost.
            let fits = |member: &&Value| {
                let wanted = Type::of(member);
                wanted != Type::Null && wanted != Type::of(value) && converted(value, wanted).as_ref() == Some(member)
            };
            if let Some(member) = members.iter().find(fits) {
                *value = member.clone();
            }
        }
        if !node.types.is_empty() && !node.types.iter().any(|wanted| wanted.accepts(value)) {
            match node.types.as_slice() {
                types if node.listed || node.members.is_some() => {
                    if let Some(converted) = types.iter().find_map(|it| plainly_converted(value, *it)) {
                        *value = converted;
                    }
                }
                [Type::Array] if !node.is_tuple => *value = Value::Array(vec![value.take()]),
                [wanted] => convert(value, *wanted),
                _ => {}
            }
        }
        match value {
            Value::Object(object) => self.object(node, object),
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    if let Some(schema) = node.tuple.get(index).or(node.items.as_ref()) {
                        self.node(*schema, item);
                    }
                }
            }
            _ => {}
        }
    }

    fn object(&self, node: &Node, object: &mut Map<String, Value>) {
        object.retain(|key, value| {
            let optional = |id: &NodeId| !node.required.contains(key) && !self.accepts_null(*id);
            !(value.is_null() && node.properties.get(key).is_some_and(optional))
        });
        for (key, value) in object {
            let declared = node.properties.get(key);
            let matching = node.patterns.iter().filter(|(pattern, _)| pattern.is_match(key)).map(|(_, id)| id);
            let ids: Vec<NodeId> = declared.into_iter().chain(matching).copied().collect();
            for id in &ids {
                self.node(*id, value);
            }
            if let (true, Some(id)) = (ids.is_empty(), node.additional) {
                self.node(id, value);
            }
        }
    }

    fn union(&self, union: &Union, value: &mut Value) {
        if union.branches.iter().any(|(_, validator)| validator.is_valid(value)) {
            return;
        }
        for (branch, _) in &union.branches {
            let mut candidate = value.clone();
            self.node(*branch, &mut candidate);
            if union.whole.is_valid(&candidate) {
                *value = candidate;
                return;
            }
        }
    }

    fn accepts_null(&self, id: NodeId) -> bool {
        let node = &self.nodes[id];
        (node.types.is_empty() || node.types.contains(&Type::Null))
            && node.members.as_ref().is_none_or(|members| members.contains(&Value::Null))
            && node.unions.iter().all(|union| union.whole.is_valid(&Value::Null))
            && node.also.iter().all(|also| self.accepts_null(*also))
    }
}

/// Reads a schema into nodes.
struct Reader<'a> {
    root: &'a Value,
    nodes: Vec<Node>,
    /// References that were read, or are being read: schemas may contain themselves.
    references: HashMap<String, NodeId>,
}

impl Reader<'_> {
    fn read(&mut self, schema: &Value) -> NodeId {
        let id = self.nodes.len();
        self.nodes.push(Node::default());
        let Some(schema) = schema.as_object() else { return id };
        let mut node = Node::default();
        match schema.get("type") {
            Some(Value::String(name)) => node.types.extend(Type::named(name)),
            Some(Value::Array(names)) => {
                node.listed = true;
                node.types.extend(names.iter().filter_map(Value::as_str).filter_map(Type::named));
            }
            _ => {}
        }
        node.members = match (schema.get("const"), schema.get("enum")) {
            (Some(value), _) => Some(vec![value.clone()]),
            (None, Some(Value::Array(members))) => Some(members.clone()),
            _ => None,
        };
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            node.properties = properties.iter().map(|(key, schema)| (key.clone(), self.read(schema))).collect();
        }
        if let Some(patterns) = schema.get("patternProperties").and_then(Value::as_object) {
            let compiled = patterns.iter().filter_map(|(key, schema)| Some((Regex::new(key).ok()?, schema)));
            node.patterns = compiled.map(|(pattern, schema)| (pattern, self.read(schema))).collect();
        }
        if let Some(additional @ Value::Object(_)) = schema.get("additionalProperties") {
            node.additional = Some(self.read(additional));
        }
        if let Some(required) = schema.get("required").and_then(Value::as_array) {
            node.required = required.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        }
        match (schema.get("prefixItems"), schema.get("items")) {
            (Some(Value::Array(tuple)), rest) => {
                node.is_tuple = true;
                node.tuple = tuple.iter().map(|item| self.read(item)).collect();
                node.items = rest.filter(|rest| rest.is_object()).map(|rest| self.read(rest));
            }
            (_, Some(Value::Array(tuple))) => {
                node.is_tuple = true;
                node.tuple = tuple.iter().map(|item| self.read(item)).collect();
            }
            (_, Some(items)) => node.items = Some(self.read(items)),
            _ => {}
        }
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            node.also.extend(self.reference(reference));
        }
        for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            node.also.push(self.read(part));
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(branches) = schema.get(key).and_then(Value::as_array) {
                node.unions.extend(self.union(key, branches));
            }
        }
        self.nodes[id] = node;
        id
    }

    /// A reference into the schema itself; others are not followed.
    fn reference(&mut self, reference: &str) -> Option<NodeId> {
        if let Some(id) = self.references.get(reference) {
            return Some(*id);
        }
        let target = self.root.pointer(reference.strip_prefix('#')?)?;
        self.references.insert(reference.to_owned(), self.nodes.len());
        Some(self.read(target))
    }

    fn union(&mut self, key: &str, branches: &[Value]) -> Option<Union> {
        let whole = self.validator(&serde_json::json!({ key: branches }))?;
        let branches: Option<Vec<(NodeId, Validator)>> =
            branches.iter().map(|branch| Some((self.read(branch), self.validator(branch)?))).collect();
        Some(Union { branches: branches?, whole })
    }

    /// A part of the schema by itself, with what it may refer to.
    fn validator(&self, part: &Value) -> Option<Validator> {
        let mut part = part.clone();
        if let (Some(part), Some(root)) = (part.as_object_mut(), self.root.as_object()) {
            for key in ["$schema", "$defs", "definitions"] {
                if let Some(value) = root.get(key) {
                    part.entry(key).or_insert_with(|| value.clone());
                }
            }
        }
        super::validate::compile(&part).ok()
    }
}

/// The value as one of several types, if it means exactly that: with a choice of types less is guessed (T11, last pass).
fn plainly_converted(value: &Value, wanted: Type) -> Option<Value> {
    match (wanted, value) {
        (Type::String, Value::Null) => Some("".into()),
        (Type::Number | Type::Integer, Value::String(text)) => {
            let word = text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false");
            let blank = text.chars().all(crate::blank::is_blank_or_break);
            let number = number::from_value(value).filter(|_| !word && !blank).map(number::to_value)?;
            wanted.accepts(&number).then_some(number)
        }
        (Type::Integer, Value::Number(_)) => None,
        (Type::Boolean, Value::String(text)) => match text.as_str() {
            "true" => Some(true.into()),
            "false" => Some(false.into()),
            _ => None,
        },
        (Type::Null, Value::String(text)) => text.is_empty().then_some(Value::Null),
        _ => converted(value, wanted),
    }
}

fn convert(value: &mut Value, wanted: Type) {
    if let Some(converted) = converted(value, wanted) {
        *value = converted;
    }
}

/// The value as another type, if it means one.
fn converted(value: &Value, wanted: Type) -> Option<Value> {
    match wanted {
        Type::String => match value {
            Value::Number(_) | Value::Bool(_) => Some(json::to_string(value).into()),
            Value::Null => Some("null".into()),
            Value::String(_) => Some(value.clone()),
            Value::Array(_) | Value::Object(_) => None,
        },
        Type::Number => number::from_value(value).map(number::to_value),
        Type::Integer => number::from_value(value).map(|number| number::to_value(number.trunc())),
        Type::Boolean => match value {
            Value::Bool(_) => Some(value.clone()),
            Value::Null => Some(false.into()),
            Value::Number(_) if value.as_f64() == Some(0.0) => Some(false.into()),
            Value::Number(_) if value.as_f64() == Some(1.0) => Some(true.into()),
            Value::String(text) if text == "1" || text.eq_ignore_ascii_case("true") => Some(true.into()),
            Value::String(text) if text == "0" || text.eq_ignore_ascii_case("false") => Some(false.into()),
            _ => None,
        },
        Type::Null => match value {
            Value::Null | Value::Bool(false) => Some(Value::Null),
            Value::Number(_) if value.as_f64() == Some(0.0) => Some(Value::Null),
            Value::String(text) if matches!(text.as_str(), "" | "0" | "null" | "undefined") => Some(Value::Null),
            _ => None,
        },
        Type::Array | Type::Object => None,
    }
}
