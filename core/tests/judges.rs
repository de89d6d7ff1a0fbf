//! The official SDKs as judges: they and branchline read the same streams from the same server, and must say the same.
//! `make test-judges` installs them; without that this does not run.

#[path = "provider_support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use branchline_canned::{Reply, Server};
use serde_json::{Value, json};
use support::*;

/// What branchline says of a stream, in the judges' terms.
fn ours(api: &str, base_url: &str) -> Value {
    let engine = engine();
    let model = model(api, "judge-1", base_url);
    engine.add_model(model.clone()).unwrap();
    let answer = ask(&engine, request(&model, vec![user("q")]));
    let message = answer.message.into_value();
    let blocks = message["content"].as_array().cloned().unwrap_or_default();
    let all = |kind: &str, field: &str| -> String {
        blocks.iter().filter(|block| block["type"] == kind).filter_map(|block| block[field].as_str()).collect()
    };
    let calls = blocks.iter().filter(|block| block["type"] == "toolCall");
    let calls = calls.map(|call| json!({"name": call["name"], "arguments": call["arguments"]}));
    let count = |key: &str| message["usage"][key].as_u64().unwrap_or_default();
    json!({
        "text": all("text", "text"),
        "thinking": all("thinking", "thinking"),
        "calls": calls.collect::<Vec<Value>>(),
        "stop": message["stopReason"],
        "usage": [count("input") + count("cacheRead") + count("cacheWrite"), count("output")],
    })
}

fn streams() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/judges/streams");
    let mut all: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.sort();
    all
}

#[test]
#[ignore = "needs the SDKs: make test-judges"]
fn the_official_sdks_read_the_same() {
    let python = std::env::var_os("BRANCHLINE_JUDGES").expect("run this with `make test-judges`");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/judges/judge.py");
    let streams = streams();
    assert!(streams.len() >= 12, "three streams of each protocol");
    let mut differ = Vec::new();
    for path in streams {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let api = name.split_once('.').unwrap().0;
        let server = Server::start(vec![Reply::sse(std::fs::read(&path).unwrap())]);
        let base_url = match api {
            "openai-completions" | "openai-responses" => server.url() + "/v1",
            "google-generative-ai" => server.url() + "/v1beta",
            _ => server.url(),
        };
        let ours = ours(api, &base_url);
        let judged = Command::new(&python).arg(&script).arg(api).arg(server.url()).output().unwrap();
        let theirs: Value = serde_json::from_slice(&judged.stdout)
            .unwrap_or_else(|_| panic!("{name}: the judge failed: {}", String::from_utf8_lossy(&judged.stderr)));
        if ours != theirs {
            differ.push(format!("{name}\n  branchline {ours}\n  SDK        {theirs}"));
        }
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}
