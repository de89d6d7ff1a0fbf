//! Kind `dir`: questions about a directory of session files.

use std::collections::BTreeSet;
use std::fs::{File, FileTimes};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use branchline::tree::{self, CreateOptions, IdMatch, ListOptions, SessionInfo, Tree, format_iso};
use serde_json::{Map, Value, json};

use super::manager::CWD;
use super::{Case, clock, input};
use crate::compare::{Comparer, Mismatch};
use crate::report::{Outcome, problem};

const NULL_CONTENT: &str = "D-null-content";
const BOM: &str = "D-bom";

/// Runs a case.
pub(super) fn run(case: &Case) -> Outcome {
    let stated = &case.expected["results"];
    if case.expected.get("files").is_none_or(|files| files.as_array().is_some_and(Vec::is_empty)) {
        return default_dirs(stated);
    }
    let Some(results) = stated.as_object() else {
        return Outcome::Failed(vec![problem(".results", "named queries", stated.to_string())]);
    };
    let files = Files::read(case);
    let (mismatches, ours) = compare(results, &files, &BTreeSet::new());
    let odd = files.odd();
    if mismatches.is_empty() || odd.is_empty() {
        return super::outcome(mismatches, Vec::new());
    }
    // Files the reference leaves out: without them everything is as stated, and with them as if they were not odd.
    let ids = files.reasons();
    let (mut broken, _) = compare(results, &files.without_bom(), &odd);
    let (_, plain) = compare(results, &files.plain(), &BTreeSet::new());
    for (key, wanted) in &plain {
        if ours.get(key) != Some(wanted) {
            broken.push(problem(
                &format!(".{key} (compared with files without the oddity)"),
                &wanted.to_string(),
                ours[key].to_string(),
            ));
        }
    }
    super::outcome(broken, ids)
}

/// The files of a case.
struct Files(Vec<(String, Vec<u8>, u64)>);

impl Files {
    fn read(case: &Case) -> Files {
        let folder = case.folder.join(format!("{}.dir", case.name));
        let list = case.expected["files"].as_array().into_iter().flatten();
        Files(
            list.map(|file| {
                let name = file["name"].as_str().unwrap_or_default().to_owned();
                let bytes = std::fs::read(folder.join(&name)).unwrap_or_default();
                (name, bytes, file["mtime"].as_u64().unwrap_or(0))
            })
            .collect(),
        )
    }

    fn write(&self, dir: &Path) {
        for (name, bytes, mtime) in &self.0 {
            let path = dir.join(name);
            path.parent().map(std::fs::create_dir_all).transpose().expect("a writable directory");
            std::fs::write(&path, bytes).expect("a writable directory");
            let time = UNIX_EPOCH + Duration::from_secs(*mtime);
            let file = File::options().write(true).open(&path).expect("just written");
            file.set_times(FileTimes::new().set_modified(time)).expect("times can be set");
        }
    }

    /// Names of files that the reference leaves out of listings although they can be read.
    fn odd(&self) -> BTreeSet<String> {
        let odd =
            self.0.iter().filter(|(_, bytes, _)| bytes.starts_with(input::BOM) || !null_contents(bytes).is_empty());
        odd.map(|(name, ..)| name.clone()).collect()
    }

    fn reasons(&self) -> Vec<&'static str> {
        let bom = self.0.iter().any(|(_, bytes, _)| bytes.starts_with(input::BOM)).then_some(BOM);
        let null = self.0.iter().any(|(_, bytes, _)| !null_contents(bytes).is_empty()).then_some(NULL_CONTENT);
        bom.into_iter().chain(null).collect()
    }

    /// A file with a byte order mark is no session anywhere in the reference; null contents only hide it in lists.
    fn without_bom(&self) -> Files {
        Files(self.0.iter().filter(|(_, bytes, _)| !bytes.starts_with(input::BOM)).cloned().collect())
    }

    /// The same files without what makes them odd.
    fn plain(&self) -> Files {
        let plain = |bytes: &Vec<u8>| {
            let bytes = bytes.strip_prefix(input::BOM).unwrap_or(bytes);
            input::edit(bytes, &null_contents(bytes), |line| {
                let mut value = branchline::json::parse(line)?;
                match value["message"].is_object() {
                    true => value["message"]["content"] = "".into(),
                    false => value["message"] = json!({"role": "other"}),
                }
                Some(branchline::json::to_vec(&value))
            })
        };
        Files(self.0.iter().map(|(name, bytes, mtime)| (name.clone(), plain(bytes), *mtime)).collect())
    }
}

/// Lines with a user or assistant message whose content is null (S111) or of another kind that is no text and no list, or
/// without a message at all.
fn null_contents(bytes: &[u8]) -> BTreeSet<usize> {
    let is_odd = |line: &&[u8]| {
        let Some(value) = branchline::json::parse(line) else { return false };
        let role = value["message"]["role"].as_str().unwrap_or_default();
        let content = value["message"].get("content").filter(|content| !content.is_string() && !content.is_array());
        let no_content = matches!(role, "user" | "assistant") && content.is_some();
        value["type"] == "message" && (no_content || value["message"].is_null())
    };
    input::lines(bytes).iter().enumerate().filter(|(_, line)| is_odd(line)).map(|(at, _)| at).collect()
}

/// Asks every named query and compares; files named in `left_out` are left out of lists. Also returns all answers.
fn compare(
    results: &Map<String, Value>,
    files: &Files,
    left_out: &BTreeSet<String>,
) -> (Vec<Mismatch>, Map<String, Value>) {
    let mut mismatches = Vec::new();
    let mut answers = Map::new();
    for (name, expected) in results {
        // Opening the most recent session may change it, so each query has its own copy.
        let root = tempfile::tempdir().expect("a temporary directory");
        let dir = tree::session_dir(root.path(), Path::new(CWD));
        std::fs::create_dir_all(&dir).expect("a writable directory");
        files.write(&dir);
        let mut comparer = Comparer::new(clock::placeholders(&dir.display().to_string()));
        let query = Query { root: root.path(), dir: &dir, name, expected };
        match query.answer(left_out) {
            Some(answer) => {
                comparer.value(&format!(".results.{name}"), expected, Some(&answer));
                let text = answer.to_string().replace(&dir.display().to_string(), "@dir");
                answers.insert(name.clone(), serde_json::from_str(&text).unwrap_or_default());
            }
            None => {
                comparer.mismatches.push(problem(name, &expected.to_string(), "the runner does not know this query"))
            }
        }
        mismatches.extend(comparer.mismatches);
    }
    (mismatches, answers)
}

struct Query<'a> {
    root: &'a Path,
    dir: &'a Path,
    name: &'a str,
    expected: &'a Value,
}

impl Query<'_> {
    fn answer(&self, left_out: &BTreeSet<String>) -> Option<Value> {
        let lower = self.name.to_lowercase();
        let cwd = if lower.contains("other") { "/work/other" } else { CWD };
        let kept = |info: &SessionInfo| {
            !left_out.contains(&info.path.file_name().unwrap_or_default().to_string_lossy().into_owned())
        };
        if lower.starts_with("list") {
            let infos = listed(self.dir, (!lower.starts_with("listall")).then_some(Path::new(cwd)));
            let first = self.expected.as_array().and_then(|list| list.first());
            return Some(infos.into_iter().filter(kept).map(|info| show(&info, first)).collect());
        }
        if lower.starts_with("byprefix") {
            return Some(self.by_prefix());
        }
        if lower.starts_with("byid") || lower.starts_with("find") {
            return Some(self.by_id());
        }
        let picks = ["picked", "recent", "mostrecent", "continue", "found"];
        picks.iter().any(|pick| lower.starts_with(pick)).then(|| self.picked(&lower, cwd))
    }

    fn options(&self) -> CreateOptions {
        // The agent directory is somewhere else, so that this directory counts as one that was chosen (S102).
        CreateOptions {
            session_dir: Some(self.dir.to_path_buf()),
            agent_dir: Some(self.root.join("elsewhere")),
            ..CreateOptions::default()
        }
    }

    fn picked(&self, lower: &str, cwd: &str) -> Value {
        let unfiltered =
            ["any", "nocwd", "without", "unfiltered", "default", "nofilter"].iter().any(|word| lower.contains(word));
        let options = match unfiltered {
            true => CreateOptions { agent_dir: Some(self.root.to_path_buf()), ..CreateOptions::default() },
            false => self.options(),
        };
        let Ok(tree) = Tree::continue_recent(cwd, options) else { return Value::Null };
        let Some(path) = tree.path().filter(|_| tree.is_saved()) else { return Value::Null };
        self.name_of(&path, Some(tree.session_id()))
    }

    /// A file as the case names it: by path, by its name, or by its session's id.
    fn name_of(&self, path: &Path, id: Option<String>) -> Value {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match self.expected.as_str() {
            Some(text) if text.starts_with('@') => path.display().to_string().into(),
            Some(text) if text == stem || text == name => text.into(),
            _ => id.unwrap_or(stem).into(),
        }
    }

    /// The corpus does not say which id was asked for. With a result, it is that file's; without one, every id of another
    /// working directory has to give nothing.
    fn by_id(&self) -> Value {
        let find = |id: &str| tree::find_by_id(Path::new(CWD), id, IdMatch::Exact, &self.options());
        let all = listed(self.dir, None);
        let wanted = self.expected.as_str().unwrap_or_default();
        let asked = |info: &&SessionInfo| match self.expected.is_null() {
            true => !listed(self.dir, Some(Path::new(CWD))).iter().any(|own| own.path == info.path),
            false => wanted.ends_with(&format!("/{}", info.path.file_name().unwrap_or_default().to_string_lossy())),
        };
        let found = all.iter().filter(asked).filter_map(|info| info.id.as_deref()).find_map(find);
        found.map_or(Value::Null, |path| self.name_of(&path, None))
    }

    /// An exact search takes no prefix of any id, nor the empty text.
    fn by_prefix(&self) -> Value {
        let ids: BTreeSet<String> = listed(self.dir, None).into_iter().filter_map(|info| info.id).collect();
        let prefixes =
            ids.iter().flat_map(|id| (0..id.len()).map(|end| &id[..end])).filter(|prefix| !ids.contains(*prefix));
        let how = if self.expected.is_null() { IdMatch::Exact } else { IdMatch::Prefix };
        let found =
            prefixes.into_iter().find_map(|prefix| tree::find_by_id(Path::new(CWD), prefix, how, &self.options()));
        found.map_or(Value::Null, |path| self.name_of(&path, None))
    }
}

/// Lists a chosen directory: for one working directory, or without a filter.
pub(super) fn listed(dir: &Path, cwd: Option<&Path>) -> Vec<SessionInfo> {
    let elsewhere = dir.join("elsewhere");
    let location =
        CreateOptions { session_dir: Some(dir.to_path_buf()), agent_dir: Some(elsewhere), ..CreateOptions::default() };
    let options = ListOptions { location, text: true, ..ListOptions::default() };
    let infos = match cwd {
        Some(cwd) => tree::list(cwd, &options),
        None => tree::list_all(&options),
    };
    infos.unwrap_or_default()
}

/// One listed session: as a whole, by path, or by id or file name.
fn show(info: &SessionInfo, like: Option<&Value>) -> Value {
    match like {
        Some(Value::Object(_)) => whole(info),
        Some(Value::String(text)) if text.starts_with('@') => info.path.display().to_string().into(),
        Some(Value::String(text)) if text.ends_with(".jsonl") => {
            info.path.file_name().unwrap_or_default().to_string_lossy().into_owned().into()
        }
        _ => info.id.clone().unwrap_or_default().into(),
    }
}

fn whole(info: &SessionInfo) -> Value {
    let mut out = json!({
            "path": info.path.display().to_string(),
            "id": info.id,
            "cwd": info.cwd,
            "name": info.name,
            "parentSessionPath": info.parent_session_path,
            "created": info.created.map(format_iso),
            "modified": format_iso(info.modified),
            "messageCount": info.message_count,
            "firstMessage": info.first_message,
            "allMessagesText": info.all_messages_text,
    });
    // A session without an id has none; it is not one whose id is null.
    if info.id.is_none() {
        out.as_object_mut().map(|out| out.shift_remove("id"));
    }
    out
}

/// The default directory of a working directory, below whatever `like` is below (S39).
pub(super) fn default_dir_name(cwd: &str, like: &str) -> String {
    let above = like.rfind('/').map_or("", |at| &like[..=at]);
    let name = tree::session_dir(Path::new("/agent"), Path::new(cwd));
    let resolved = format!("{above}{}", name.file_name().unwrap_or_default().to_string_lossy());
    // A path of another system is not resolved here.
    let literal = format!("{above}{}", tree::session_dir_name(cwd));
    if literal == like { literal } else { resolved }
}

/// A case without files maps working directories to directory names.
fn default_dirs(results: &Value) -> Outcome {
    let mut mismatches = Vec::new();
    let mut check = |cwd: &str, wanted: &str| {
        let ours = default_dir_name(cwd, wanted);
        if ours != wanted {
            mismatches.push(problem(cwd, wanted, ours));
        }
    };
    let mut rows: Vec<&Value> = results.as_array().into_iter().flatten().collect();
    for (key, value) in results.as_object().into_iter().flatten() {
        match value {
            Value::String(wanted) => check(key, wanted),
            Value::Array(list) => rows.extend(list),
            Value::Object(map) => map.iter().for_each(|(cwd, wanted)| check(cwd, wanted.as_str().unwrap_or_default())),
            other => check(key, &other.to_string()),
        }
    }
    for row in rows {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
        match row {
            Value::Array(pair) => check(&text(pair.first()), &text(pair.get(1))),
            row => {
                let cwd = text(row.get("cwd"));
                let wanted =
                    row.as_object().into_iter().flatten().find(|(key, _)| *key != "cwd").map(|(_, value)| value);
                check(&cwd, &text(wanted));
            }
        }
    }
    super::outcome(mismatches, Vec::new())
}
