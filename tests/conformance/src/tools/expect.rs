//! Comparing a result with a case: placeholders, described texts, files, logs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use regex::Regex;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::compare::Mismatch;
use crate::report::problem;

/// A temporary log as tools name it.
static LOG: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(/[^\s"\]]*/(pi-bash|pi-powershell|pi-output)-[0-9a-f]{16}\.log)"#).expect("a constant expression")
});

/// Compares within one case, and collects what does not fit.
pub(super) struct Expect<'a> {
    pub(super) tmp: &'a Path,
    pub(super) mismatches: Vec<Mismatch>,
    /// The first log that a text named.
    pub(super) log: Option<PathBuf>,
}

impl<'a> Expect<'a> {
    pub(super) fn new(tmp: &'a Path) -> Expect<'a> {
        Expect { tmp, mismatches: Vec::new(), log: None }
    }

    pub(super) fn fail(&mut self, path: &str, expected: &Value, actual: Option<&Value>) {
        let show = |value: Option<&Value>| value.map_or_else(|| "(absent)".to_owned(), Value::to_string);
        self.mismatches.push(problem(path, &expected.to_string(), show(actual)));
    }

    /// What came out, with places and logs as the corpus writes them.
    pub(super) fn neutral(&mut self, text: &str) -> String {
        let text = text.replace(&self.tmp.display().to_string(), "{TMP}");
        if let Some(found) = LOG.captures(&text).and_then(|found| found.get(1)) {
            self.log.get_or_insert_with(|| PathBuf::from(found.as_str()));
        }
        LOG.replace_all(&text, "{LOG:$2}").into_owned()
    }

    pub(super) fn value(&mut self, path: &str, expected: &Value, actual: Option<&Value>) {
        let Some(actual) = actual else { return self.fail(path, expected, None) };
        match (expected, actual) {
            (Value::String(text), _) if text == "{SECONDS}" => {
                if actual.as_f64().is_none_or(|seconds| seconds < 0.0) {
                    self.fail(path, expected, Some(actual));
                }
            }
            (Value::String(text), Value::String(got)) => {
                let got = self.neutral(got);
                if !self.text_fits(text, &got) {
                    self.fail(path, expected, Some(&Value::String(got)));
                }
            }
            (Value::Object(object), Value::String(got)) if object.contains_key("$long") => {
                let got = self.neutral(got);
                let facts = &object["$long"];
                let right = facts["chars"] == got.encode_utf16().count()
                    && facts["utf8Bytes"] == got.len()
                    && facts["sha256"] == sha256(got.as_bytes());
                if !right {
                    self.fail(path, expected, Some(&Value::String(got)));
                }
            }
            (Value::Object(object), Value::String(got)) if object.contains_key("$error") => {
                let got = self.neutral(got);
                let words = object["$error"]["mustContain"].as_array().cloned().unwrap_or_default();
                if !words.iter().filter_map(Value::as_str).all(|word| got.contains(word)) {
                    self.fail(path, expected, Some(&Value::String(got)));
                }
            }
            (Value::Object(expected), Value::Object(actual)) => {
                for (key, value) in expected {
                    self.value(&format!("{path}.{key}"), value, actual.get(key));
                }
                for (key, value) in actual.iter().filter(|(key, _)| !expected.contains_key(*key)) {
                    self.mismatches.push(problem(&format!("{path}.{key}"), "(absent)", value.to_string()));
                }
            }
            (Value::Array(expected), Value::Array(actual)) if expected.len() == actual.len() => {
                for (at, (expected, actual)) in expected.iter().zip(actual).enumerate() {
                    self.value(&format!("{path}[{at}]"), expected, Some(actual));
                }
            }
            (Value::Number(expected_number), Value::Number(got)) if expected_number.as_f64() == got.as_f64() => {}
            (expected, actual) if expected == actual => {}
            (expected, actual) => self.fail(path, expected, Some(actual)),
        }
    }

    fn text_fits(&self, expected: &str, got: &str) -> bool {
        if let Some(name) = expected.strip_prefix("{BASE64 OF ").and_then(|rest| rest.strip_suffix('}')) {
            return fs::read(self.tmp.join(name)).is_ok_and(|bytes| STANDARD.encode(bytes) == got);
        }
        if expected == "{REENCODED, png}" {
            return STANDARD.decode(got).is_ok_and(|bytes| bytes.starts_with(b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR"));
        }
        if expected == "{REENCODED, jpeg}" {
            return STANDARD.decode(got).is_ok_and(|bytes| bytes.starts_with(b"\xff\xd8\xff"));
        }
        expected == got
    }

    /// Files and directories after the calls.
    pub(super) fn files(&mut self, expected: &Value) {
        for file in expected.as_array().into_iter().flatten() {
            let name = file["path"].as_str().unwrap_or_default();
            let path = self.tmp.join(name);
            let at = format!("filesAfter[{name}]");
            if file["exists"] == false {
                if path.symlink_metadata().is_ok() {
                    self.mismatches.push(problem(&at, "no such file", "a file"));
                }
                continue;
            }
            if file["kind"] == "directory" {
                if !path.is_dir() {
                    self.mismatches.push(problem(&at, "a directory", "none"));
                }
                continue;
            }
            let Ok(bytes) = fs::read(&path) else {
                self.mismatches.push(problem(&at, "a file", "none"));
                continue;
            };
            self.file_content(&format!("{at}.content"), file, &bytes);
            if let Some(mode) = file["mode"].as_str() {
                let got = fs::metadata(&path).map_or(0, |it| it.permissions().mode() & 0o7777);
                if format!("{got:o}") != mode {
                    self.mismatches.push(problem(&format!("{at}.mode"), mode, format!("{got:o}")));
                }
            }
            if let Some(target) = file["symlinkTo"].as_str() {
                let got = fs::read_link(&path).unwrap_or_default();
                if got != self.tmp.join(target) && got != Path::new(target) {
                    self.mismatches.push(problem(&format!("{at}.symlinkTo"), target, got.display().to_string()));
                }
            }
        }
    }

    fn file_content(&mut self, at: &str, file: &Value, bytes: &[u8]) {
        if file["encoding"] == "hex" {
            if super::setup::hex(file["content"].as_str().unwrap_or_default()) != bytes {
                self.fail(at, &file["content"], Some(&Value::String(format!("{bytes:02x?}"))));
            }
            return;
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => self.value(at, &file["content"], Some(&Value::String(text.to_owned()))),
            Err(_) => self.fail(at, &file["content"], Some(&Value::String(format!("{bytes:02x?}")))),
        }
    }

    /// The temporary log that the result named, or that none was made.
    pub(super) fn log_file(&mut self, expected: &Value) {
        let got = self.log.clone().and_then(|path| Some((fs::metadata(&path).ok()?, fs::read(&path).ok()?)));
        match (expected.as_object(), got) {
            (None, None) => {}
            (None, Some(_)) => self.mismatches.push(problem("logFile", "none", "a log")),
            (Some(_), None) => self.mismatches.push(problem("logFile", "a log", "none")),
            (Some(facts), Some((metadata, bytes))) => {
                let mode = format!("{:o}", metadata.permissions().mode() & 0o7777);
                let got = serde_json::json!({"mode": mode, "bytes": bytes.len(), "sha256": sha256(&bytes)});
                for (key, value) in facts {
                    let same_mode = key == "mode"
                        && value.as_str().map(|it| it.trim_start_matches('0')) == Some(mode.trim_start_matches('0'));
                    if !same_mode && got.get(key).is_some() && got.get(key) != Some(value) {
                        self.fail(&format!("logFile.{key}"), value, got.get(key));
                    }
                }
            }
        }
    }
}

pub(super) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
