//! The directory a case runs in, and texts that are described instead of written out.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// Makes directories, files and links below `tmp`, in the order of the corpus.
pub(super) fn make(setup: &Value, tmp: &Path) -> io::Result<()> {
    let list = |key: &str| setup[key].as_array().cloned().unwrap_or_default();
    for dir in list("dirs") {
        fs::create_dir_all(tmp.join(dir.as_str().unwrap_or_default()))?;
    }
    for file in list("files") {
        let path = tmp.join(file["path"].as_str().unwrap_or_default());
        fs::create_dir_all(path.parent().unwrap_or(tmp))?;
        fs::write(&path, content(&file, tmp))?;
        if let Some(mode) = file["mode"].as_str().and_then(|mode| u32::from_str_radix(mode, 8).ok()) {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
        }
    }
    for link in list("symlinks") {
        let path = tmp.join(link["path"].as_str().unwrap_or_default());
        fs::create_dir_all(path.parent().unwrap_or(tmp))?;
        symlink(with_tmp(link["target"].as_str().unwrap_or_default(), tmp), path)?;
    }
    Ok(())
}

/// The bytes of a file as a case describes them.
pub(super) fn content(file: &Value, tmp: &Path) -> Vec<u8> {
    if file["generator"].is_object() {
        return generated(&file["generator"], tmp).into_bytes();
    }
    let text = file["content"].as_str().unwrap_or_default();
    match file["encoding"].as_str() {
        Some("base64") => STANDARD.decode(text).unwrap_or_default(),
        Some("hex") => hex(text),
        _ => with_tmp(text, tmp).into_bytes(),
    }
}

pub(super) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks_exact(2).map(|pair| pair[0] * 16 + pair[1]).collect()
}

pub(super) fn with_tmp(text: &str, tmp: &Path) -> String {
    text.replace("{TMP}", &tmp.display().to_string())
}

/// A text by its recipe.
pub(super) fn generated(recipe: &Value, tmp: &Path) -> String {
    let text = |key: &str, default: &str| recipe[key].as_str().unwrap_or(default).to_owned();
    let count = recipe["count"].as_u64().unwrap_or(0) as usize;
    match recipe["kind"].as_str() {
        Some("lines") => {
            let (template, eol) = (text("template", ""), text("eol", "\n"));
            let lines: Vec<String> = (1..=count).map(|n| template.replace("{n}", &n.to_string())).collect();
            let last = if recipe["finalEol"].as_bool().unwrap_or(true) && count > 0 { eol.as_str() } else { "" };
            lines.join(&eol) + last
        }
        Some("repeat") => text("prefix", "") + &text("unit", "").repeat(count) + &text("suffix", ""),
        Some("concat") => {
            let parts = recipe["parts"].as_array().cloned().unwrap_or_default();
            parts.iter().map(|part| String::from_utf8_lossy(&part_bytes(part, tmp)).into_owned()).collect()
        }
        _ => String::new(),
    }
}

fn part_bytes(part: &Value, tmp: &Path) -> Vec<u8> {
    if part["kind"].is_string() { generated(part, tmp).into_bytes() } else { content(part, tmp) }
}

/// Arguments with places and described texts filled in.
pub(super) fn arguments(value: &Value, tmp: &Path) -> Value {
    match value {
        Value::String(text) => Value::String(with_tmp(text, tmp)),
        Value::Array(items) => items.iter().map(|item| arguments(item, tmp)).collect(),
        Value::Object(object) if object.contains_key("$gen") => Value::String(generated(&object["$gen"], tmp)),
        Value::Object(object) => {
            Value::Object(object.iter().map(|(key, value)| (key.clone(), arguments(value, tmp))).collect())
        }
        other => other.clone(),
    }
}
