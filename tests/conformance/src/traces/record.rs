//! What came of a scenario, in the form in which the corpus states it.

use branchline::Session;
use branchline::providers::Purpose;
use branchline::providers::scripted::RecordedRequest;
use serde_json::{Map, Value, json};

use super::host::Host;
use super::short;

/// Every result of a finished scenario.
pub(super) fn results(host: &Host, detail: u64) -> Map<String, Value> {
    let mut out = Map::new();
    let session = host.session();
    let tree = session.tree();
    let context = tree.context(session.leaf().as_deref()).map(|context| {
        context.messages().map(|message| short::message(&Value::from(message), 1)).collect::<Vec<Value>>()
    });
    out.insert("events".to_owned(), host.events().to_vec().into());
    out.insert("requests".to_owned(), host.requests().iter().map(|it| request(it, host, detail)).collect());
    out.insert("entries".to_owned(), entries(session, detail));
    out.insert("leaf".to_owned(), leaf(session));
    out.insert("fileLines".to_owned(), lines(session.path().as_deref()));
    out.insert("context".to_owned(), context.unwrap_or_default().into());
    out
}

/// All entries in file order.
pub(super) fn entries(session: &Session, detail: u64) -> Value {
    let values: Vec<Value> = session.tree().entries().flatten().map(|entry| entry.value()).collect();
    let index = |id: &Value| number(values.iter().position(|entry| !id.is_null() && entry["id"] == *id));
    values.iter().map(|entry| short::entry(entry, index, detail)).collect()
}

/// The number of an entry.
pub(super) fn index(session: &Session, id: &str) -> Value {
    number(session.tree().entries().flatten().position(|entry| entry.id() == id))
}

fn number(at: Option<usize>) -> Value {
    at.map_or(Value::Null, Value::from)
}

/// Numbers of entries and their labels.
pub(super) fn labels(session: &Session) -> Vec<(u64, String)> {
    let labels = session.tree().labels().into_iter();
    let mut labels: Vec<(u64, String)> =
        labels.map(|(target, label)| (index(session, &target).as_u64().unwrap_or(0), label.text)).collect();
    labels.sort();
    labels
}

pub(super) fn leaf(session: &Session) -> Value {
    session.leaf().map_or(Value::Null, |leaf| index(session, &leaf))
}

/// Lines of a file; null if there is none.
pub(super) fn lines(path: Option<&std::path::Path>) -> Value {
    let bytes = path.and_then(|path| std::fs::read(path).ok());
    bytes.map_or(Value::Null, |bytes| bytes.iter().filter(|byte| **byte == b'\n').count().into())
}

fn request(request: &RecordedRequest, host: &Host, detail: u64) -> Value {
    let turn = request.purpose == Purpose::Turn;
    let roles: Vec<&str> = request.messages.iter().map(|message| message.role().name()).collect();
    let reasoning = Some(request.thinking_level.as_str()).filter(|level| *level != "off");
    let mut out = json!({"model": request.model, "roles": roles, "purpose": if turn { "turn" } else { "summary" },
        "reasoning": reasoning, "aborted": request.aborted});
    if turn && detail > 1 {
        out["texts"] = request
            .messages
            .iter()
            .map(|message| match message.role().name() {
                "system" => Value::Null,
                _ => short::text(message.get("content").unwrap_or(&Value::Null), None).into(),
            })
            .collect();
    }
    if !turn {
        summary(&request.messages.last().map(|message| message.text("")).unwrap_or_default(), host, &mut out);
    }
    out
}

/// The parts of a request for a summary.
pub(super) fn summary(text: &str, host: &Host, out: &mut Value) {
    let between = |start: &str, end: &str| {
        let (_, rest) = text.split_once(start)?;
        rest.split_once(end).map(|(inner, _)| inner.to_owned())
    };
    let tagged = text.starts_with("<conversation>\n").then(|| between("<conversation>\n", "\n</conversation>\n\n"));
    let split = text.starts_with("# Conversation\n").then(|| between("# Conversation\n", "\n\n# Instructions\n"));
    let (form, conversation) = match (tagged.flatten(), split.flatten()) {
        (Some(conversation), _) => ("conversation-tags", Some(conversation)),
        (None, Some(conversation)) => ("turn-prefix", Some(conversation)),
        (None, None) => ("other", None),
    };
    out["form"] = form.into();
    out["conversation"] = conversation.into();
    out["previousSummary"] = between("<previous-summary>\n", "\n</previous-summary>\n\n").into();
    out["additionalFocus"] = text.split_once("\n\nAdditional focus: ").map(|(_, focus)| focus).into();
    if let Some(instructions) = host.replaced_instructions().iter().find(|it| text.ends_with(&format!("\n\n{it}"))) {
        let exact = text.split_once("</conversation>\n\n").is_some_and(|(_, rest)| rest == instructions);
        out["instructionsAreExactlyCustom"] = exact.into();
    }
}
