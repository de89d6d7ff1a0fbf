//! `scripted/demo`: a model for first steps. It thinks briefly, looks around the working directory with the tools it
//! has, and says what it did; the same conversation always gets the same answer, and it never runs out.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::play::{Pace, play};
use super::{Answers, Reply, ShortUsage};
use crate::message::{Message, Role};
use crate::providers::{Purpose, Request, ResponseStream};

/// Commands a person would use to look around; they change nothing.
const LIST: &str = "ls -A | head -n 20";

pub(super) struct Demo;

impl Answers for Demo {
    fn stream(&self, request: Request) -> ResponseStream {
        let reply = reply(&request);
        let pace = Pace { chunk: 6, delay: Duration::from_millis(20), chunk_delay: Duration::from_millis(4) };
        play(request, reply, pace, None)
    }
}

fn reply(request: &Request) -> Reply {
    let tokens = request.messages.iter().map(|message| message.object().len() as u64 * 20).sum();
    let content = match (request.purpose, request.messages.iter().rev().find(|message| message.role() != Role::System))
    {
        (Purpose::Summary, _) => vec![text("The conversation looked at the files of the working directory.")],
        (_, Some(last)) if last.role() == Role::ToolResult => vec![text(&answer(&request.messages))],
        (_, Some(last)) => opening(request, last),
        (_, None) => vec![text("There is nothing to answer yet.")],
    };
    let usage = ShortUsage { input: tokens, output: 40, cache_read: 0, cache_write: 0 };
    Reply { content, usage: Some(usage), ..Reply::default() }
}

/// The first message of a turn: a thought, a line, and a look around.
fn opening(request: &Request, prompt: &Message) -> Vec<Value> {
    let has = |name: &str| request.tools.iter().any(|tool| tool.get("name").and_then(Value::as_str) == Some(name));
    let call = |number: usize, name: &str, arguments: Value| {
        let id = format!("demo_{}_{number}", request.messages.len());
        json!({"type": "toolCall", "id": id, "name": name, "arguments": arguments})
    };
    let mut calls = Vec::new();
    if has("bash") {
        calls.push(call(1, "bash", json!({"command": LIST})));
    }
    if has("read")
        && let Some(file) = prompt_cwd(&request.messages).and_then(|cwd| some_file(&cwd))
    {
        calls.push(call(2, "read", json!({"path": file, "limit": 20})));
    }
    let asked: String = prompt.text(" ").chars().take(60).collect();
    let mut content =
        vec![json!({"type": "thinking", "thinking": "A look at the directory will help before I answer."})];
    if calls.is_empty() {
        content.push(text(&format!("You said \"{asked}\". I have no tools here, so this is all I can tell you.")));
    } else {
        content.push(text(&format!("You said \"{asked}\". Let me look around first.\n\n")));
    }
    content.extend(calls);
    content
}

/// What the results of the last batch say.
fn answer(messages: &[Arc<Message>]) -> String {
    let results: Vec<_> = messages.iter().rev().take_while(|message| message.role() == Role::ToolResult).collect();
    let lines: usize = results.iter().map(|message| message.text("\n").lines().count()).sum();
    let failed: Vec<_> = results.iter().filter(|message| message.get("isError") == Some(&Value::Bool(true))).collect();
    let some = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let mut out = format!("I looked with {} and read {}.", some(results.len(), "tool call"), some(lines, "line"));
    if let Some(first) = failed.last() {
        let why: String = first.text("\n").lines().next().unwrap_or_default().chars().take(200).collect();
        out.push_str(&format!(" {} of them failed: {}", failed.len(), why.trim_end_matches('.')));
        out.push('.');
    }
    out.push_str(" This answer comes from the built-in demo model; choose a real one to get real work done.");
    out
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// The first regular file of a directory by name, hidden ones last.
fn some_file(cwd: &Path) -> Option<String> {
    let entries = std::fs::read_dir(cwd).ok()?.take(1000).filter_map(Result::ok);
    let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    let names = files.filter_map(|entry| entry.file_name().into_string().ok());
    names.min_by_key(|name| (name.starts_with('.'), name.clone())).map(|name| PathBuf::from(name).display().to_string())
}

/// The working directory a conversation's prompt names.
fn prompt_cwd(messages: &[Arc<Message>]) -> Option<PathBuf> {
    let section = messages.iter().rev().find_map(|message| message.get("sections")?.get("cwd").and_then(Value::as_str));
    let path = section?.strip_prefix("<cwd>\n")?.strip_suffix("\n</cwd>")?;
    Some(Path::new(path).to_path_buf())
}
