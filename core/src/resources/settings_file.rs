//! Settings files, and laying one over the other (S280, S283, P800).

use std::path::Path;

use serde_json::{Map, Value};

use super::settings::Settings;

/// The object in a settings file; `None` when there is no file.
pub(super) fn read(path: &Path) -> Result<Option<Map<String, Value>>, String> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("cannot read the settings file: {error}")),
    };
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    match serde_json::from_slice(text) {
        Ok(Value::Object(values)) => Ok(Some(values)),
        Ok(_) => Err("the settings file does not hold a JSON object".to_owned()),
        Err(error) => Err(format!("the settings file is not valid JSON: {error}")),
    }
}

/// A `defaultTools` with its signs applied: to the plain names in it, or if it has none to the list that is there.
pub(super) fn changed_tools(settings: &Settings, list: &[Value]) -> Vec<Value> {
    let signed = |entry: &&Value| entry.as_str().is_some_and(|name| name.starts_with(['+', '-']));
    if !list.iter().any(|entry| signed(&entry)) {
        return list.to_vec();
    }
    let plain: Vec<Value> = list.iter().filter(|entry| !signed(entry)).cloned().collect();
    let usual = || settings.default_tools().into_iter().map(Value::String).collect();
    let mut tools = if plain.is_empty() { usual() } else { plain };
    for entry in list.iter().filter(signed).filter_map(Value::as_str) {
        let name = Value::from(&entry[1..]);
        match entry.starts_with('+') {
            true if tools.contains(&name) => {}
            true => tools.push(name),
            false => tools.retain(|known| *known != name),
        }
    }
    tools
}

/// Lays one object over another: objects in it merge, anything else replaces.
pub(super) fn merge(under: &mut Map<String, Value>, over: Map<String, Value>) {
    for (key, value) in over {
        match (under.get_mut(&key), value) {
            (Some(Value::Object(under)), Value::Object(over)) => merge(under, over),
            (_, value) => {
                under.insert(key, value);
            }
        }
    }
}

/// Old names (S283). A new name that is there as well wins.
pub(super) fn migrate(values: &mut Map<String, Value>) {
    if let Some(mode) = values.shift_remove("queueMode") {
        values.entry("steeringMode").or_insert(mode);
    }
    if let Some(Value::Bool(on)) = values.get("websockets").cloned() {
        values.shift_remove("websockets");
        values.entry("transport").or_insert(if on { "websocket".into() } else { "sse".into() });
    }
    if let Some(Value::Object(retry)) = values.get_mut("retry")
        && let Some(delay) = retry.shift_remove("maxDelayMs")
        && delay.is_number()
        && let Value::Object(provider) = retry.entry("provider").or_insert_with(|| Value::Object(Map::new()))
    {
        provider.entry("maxRetryDelayMs").or_insert(delay);
    }
    if let Some(Value::Object(skills)) = values.get("skills").cloned() {
        if let Some(enable) = skills.get("enableSkillCommands") {
            values.entry("enableSkillCommands").or_insert(enable.clone());
        }
        let directories = skills.get("customDirectories").filter(|value| value.is_array()).cloned();
        values.insert("skills".to_owned(), directories.unwrap_or_else(|| Value::Array(Vec::new())));
    }
}
