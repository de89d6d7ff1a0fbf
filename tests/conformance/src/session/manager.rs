//! The reference's session manager on top of branchline: one cursor, replaced when the session is.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use branchline::message::Message;
use branchline::tree::{self, BranchSummaryEntry, CompactionEntry, CreateOptions, Cursor, Entry, OpenOptions, Tree};
use branchline::{ErrorCode, Result};
use serde_json::{Value, json};

use super::clock::{self, Clock};
use super::input::Input;
use super::state;
use crate::compare::Comparer;

/// Working directory of all cases.
pub(super) const CWD: &str = "/work/demo";

/// The arguments of one step, placeholders resolved.
pub(super) struct Args(pub(super) Vec<Value>);

impl Args {
    fn get(&self, at: usize) -> Option<&Value> {
        self.0.get(at).filter(|value| *value != "@undefined")
    }

    /// `undefined` and `null` both count as not given.
    fn some(&self, at: usize) -> Option<&Value> {
        self.get(at).filter(|value| !value.is_null())
    }

    fn str(&self, at: usize) -> Option<&str> {
        self.get(at).and_then(Value::as_str)
    }

    fn text(&self, at: usize) -> &str {
        self.str(at).unwrap_or_default()
    }

    fn option(&self, at: usize, key: &str) -> Option<String> {
        let value = self.get(at)?.get(key)?.as_str().filter(|text| *text != "@undefined")?;
        Some(value.to_owned())
    }
}

/// Why a step gave no result.
pub(super) enum Refusal {
    /// The library refused.
    Code(ErrorCode),
    /// The runner cannot do it.
    Unknown(String),
}

impl From<branchline::Error> for Refusal {
    fn from(error: branchline::Error) -> Self {
        Refusal::Code(error.code())
    }
}

/// Runs operations under the reference's names.
pub(super) struct Manager {
    dir: PathBuf,
    clock: Arc<Clock>,
    /// The session, once there is one.
    pub(super) cursor: Option<Cursor>,
}

impl Manager {
    /// No session yet; `dir` is the case's directory.
    pub(super) fn new(dir: &Path) -> Manager {
        Manager { dir: dir.to_path_buf(), clock: Arc::new(Clock::default()), cursor: None }
    }

    /// The same with other ids than every other run draws.
    pub(super) fn apart(dir: &Path) -> Manager {
        Manager { clock: Arc::new(Clock::apart()), ..Manager::new(dir) }
    }

    /// Opens a session file.
    pub(super) fn open(&mut self, path: &Path, session_dir: Option<PathBuf>, cwd: Option<PathBuf>) -> Result<()> {
        let options = OpenOptions { cwd, session_dir, ids: self.clock.clone(), ..OpenOptions::default() };
        let tree = match Tree::open(path, options.clone()) {
            // The old session holds the same file: it has to let go first.
            Err(error) if error.code() == ErrorCode::SessionLocked => {
                self.cursor = None;
                Tree::open(path, options)
            }
            result => result,
        };
        self.cursor = Some(Cursor::new(tree?));
        Ok(())
    }

    fn create_options(&self, args: &Args, at: usize, session_dir: Option<PathBuf>) -> CreateOptions {
        CreateOptions {
            session_dir,
            id: args.option(at, "id"),
            parent_session: args.option(at, "parentSession"),
            ids: self.clock.clone(),
            ..CreateOptions::default()
        }
    }

    fn start(&mut self, tree: Tree) -> Option<Value> {
        self.cursor = Some(Cursor::new(tree));
        self.path().map(Value::from)
    }

    /// The session file's path as text.
    pub(super) fn path(&self) -> Option<String> {
        self.cursor.as_ref().and_then(|cursor| cursor.tree().path()).map(|path| path.display().to_string())
    }

    /// Lines of the session file; `null` when it is not on the disk.
    pub(super) fn file_lines(&self) -> Value {
        let bytes = self.path().and_then(|path| std::fs::read(path).ok());
        bytes.map_or(Value::Null, |bytes| state::file_value(&bytes)["lines"].as_array().map_or(0, Vec::len).into())
    }

    /// Binds ids that only arguments name, because no result showed them yet: `@n` is the n-th that was drawn.
    pub(super) fn name_drawn_ids(&self, args: &Value, comparer: &mut Comparer) {
        match args {
            Value::String(text) => {
                let number = text.strip_prefix('@').and_then(|digits| digits.parse::<usize>().ok());
                if let (true, Some(number)) = (comparer.resolve(text) == *text, number)
                    && let Some(id) = self.clock.drawn(number)
                {
                    comparer.text(text, &id);
                }
            }
            Value::Array(list) => list.iter().for_each(|value| self.name_drawn_ids(value, comparer)),
            _ => {}
        }
    }

    /// Performs one operation. `wanted` is the expected result: it only decides whether an entry is shown as its id or
    /// as a whole.
    pub(super) fn perform(&mut self, op: &str, args: &Args, wanted: Option<&Value>) -> Result<Option<Value>, Refusal> {
        if let Some(result) = self.replace_session(op, args)? {
            return Ok(result);
        }
        if let Some(result) = self.without_session(op, args)? {
            return Ok(Some(result));
        }
        let Some(cursor) = &mut self.cursor else { return Err(Refusal::Unknown(format!("{op} without a session"))) };
        if let Some(id) = append(cursor, op, args)? {
            return Ok(Some(id.into()));
        }
        match op {
            "branch" => cursor.move_to(args.text(0))?,
            "resetLeaf" => cursor.reset(),
            _ => return query(cursor, op, args, wanted),
        }
        Ok(None)
    }

    /// Operations that end in another session.
    fn replace_session(&mut self, op: &str, args: &Args) -> Result<Option<Option<Value>>, Refusal> {
        let done = match op {
            "open" => {
                let path = args.str(0).map_or_else(|| self.dir.join("session.jsonl"), PathBuf::from);
                let cwd = args.str(2).unwrap_or(CWD);
                self.open(&path, args.str(1).map(PathBuf::from), Some(cwd.into()))?;
                None
            }
            "reopen" | "setSessionFile" => {
                let tree = self.cursor.as_ref().map(|cursor| cursor.tree().clone());
                let (cwd, session_dir) = tree.map_or((PathBuf::from(CWD), None), |tree| {
                    (tree.cwd().to_path_buf(), tree.session_dir().map(Path::to_path_buf))
                });
                let path = args.str(0).map(str::to_owned).or_else(|| self.path()).unwrap_or_default();
                // A file that is opened anew has its successors beside it.
                let session_dir = session_dir.filter(|_| op == "setSessionFile");
                self.open(Path::new(&path), session_dir, Some(cwd))?;
                None
            }
            "create" => {
                let options = self.create_options(args, 0, Some(self.dir.clone()));
                self.start(Tree::create(CWD, options)?)
            }
            "inMemory" => {
                let options = CreateOptions { in_memory: true, ..self.create_options(args, 0, None) };
                let tree = match args.get(1).and_then(Value::as_array).filter(|entries| !entries.is_empty()) {
                    None => Tree::create(CWD, options)?,
                    Some(entries) => {
                        let lines: Vec<Vec<u8>> = entries.iter().map(branchline::json::to_vec).collect();
                        Tree::in_memory_from(&lines.join(&b'\n'), CWD, options)?
                    }
                };
                self.start(tree)
            }
            "newSession" => {
                let tree = self.cursor.as_ref().map(|cursor| cursor.tree().clone());
                let cwd = tree.as_ref().map_or(PathBuf::from(CWD), |tree| tree.cwd().to_path_buf());
                let session_dir = tree.as_ref().and_then(|tree| tree.session_dir()).map(Path::to_path_buf);
                let in_memory = session_dir.is_none();
                let options = CreateOptions { in_memory, ..self.create_options(args, 0, session_dir) };
                self.start(Tree::create(cwd, options)?)
            }
            "forkFrom" => {
                let source = args.str(0).map_or_else(|| self.dir.join("session.jsonl"), PathBuf::from);
                let options = self.create_options(args, 2, Some(self.dir.join("forked")));
                self.start(Tree::fork_from(source, args.text(1), options)?)
            }
            "continueRecent" => {
                let session_dir = args.str(1).map_or_else(|| self.dir.clone(), PathBuf::from);
                let options = self.create_options(args, 9, Some(session_dir));
                // It may be the one that is open.
                self.cursor = None;
                self.start(Tree::continue_recent(args.str(0).unwrap_or(CWD), options)?)
            }
            "createBranchedSession" => {
                let Some(cursor) = &self.cursor else {
                    return Err(Refusal::Unknown(format!("{op} without a session")));
                };
                let tree = cursor.tree().extract_branch(args.text(0))?;
                self.start(tree)
            }
            _ => return Ok(None),
        };
        Ok(Some(done))
    }

    /// Operations on files, on the clock, and on texts.
    fn without_session(&mut self, op: &str, args: &Args) -> Result<Option<Value>, Refusal> {
        let path = || args.str(0).map(str::to_owned).or_else(|| self.path()).unwrap_or_default();
        Ok(Some(match op {
            "fileExists" => Path::new(&path()).exists().into(),
            "writeFile" => {
                let path = PathBuf::from(path());
                let written = path
                    .parent()
                    .map_or(Ok(()), std::fs::create_dir_all)
                    .and_then(|()| std::fs::write(&path, args.text(1)));
                written.map_err(|error| Refusal::Unknown(format!("{}: {error}", path.display())))?;
                Value::Null
            }
            "forceUuids" => {
                let list = args.get(0).and_then(Value::as_array).cloned().unwrap_or_else(|| args.0.clone());
                self.clock.force(list.iter().filter_map(Value::as_str).map(clock::uuid_like));
                Value::Null
            }
            "parseSessionEntries" => parsed_ids(args.text(0))?,
            "findById" => {
                let dir = args.str(2).map_or_else(|| self.dir.clone(), PathBuf::from);
                let options = self.create_options(args, 9, Some(dir));
                tree::find_by_id(Path::new(args.text(0)), args.text(1), tree::IdMatch::Exact, &options)
                    .map(|path| path.display().to_string())
                    .into()
            }
            "list" | "listAll" => {
                let at = usize::from(op == "list");
                let dir = args.str(at).map_or_else(|| self.dir.clone(), PathBuf::from);
                let cwd = (op == "list").then(|| PathBuf::from(args.str(0).unwrap_or(CWD)));
                super::dir::listed(&dir, cwd.as_deref())
                    .into_iter()
                    .map(|info| Value::from(info.id.unwrap_or_default()))
                    .collect()
            }
            _ => return Ok(None),
        }))
    }
}

fn append(cursor: &mut Cursor, op: &str, args: &Args) -> Result<Option<String>, Refusal> {
    let flag = |at: usize| args.get(at).and_then(Value::as_bool);
    Ok(Some(match op {
        "appendMessage" => {
            let message = args.get(0).cloned().and_then(Message::from_value);
            cursor.append_message(&message.ok_or_else(|| Refusal::Unknown("a message must be an object".into()))?)?
        }
        "appendThinkingLevelChange" => cursor.append_thinking_level(args.text(0))?,
        "appendModelChange" => cursor.append_model(args.text(0), args.text(1))?,
        "appendUsage" => {
            let usage = args.get(3).cloned().unwrap_or_default();
            cursor.append_usage(args.text(0), args.text(1), args.text(2), &usage, args.str(4))?
        }
        "appendCustomEntry" => cursor.append_custom(args.text(0), args.get(1))?,
        "appendCustomMessageEntry" => {
            let content = args.get(1).cloned().unwrap_or_default();
            cursor.append_custom_message(args.text(0), &content, flag(2).unwrap_or(false), args.get(3))?
        }
        "appendSessionInfo" => cursor.append_name(args.text(0))?,
        "appendLabelChange" => cursor.append_label(args.text(0), args.str(1))?,
        "appendContextEdit" => {
            // `undefined` is not `null`: it is no replacement at all (S76).
            let none = json!({});
            cursor.append_context_edit(args.text(0), args.get(1).unwrap_or(&none))?
        }
        "appendCompaction" => cursor.append_compaction(&CompactionEntry {
            summary: args.text(0).to_owned(),
            first_kept_entry_id: args.str(1).map(str::to_owned),
            tokens_before: args.get(2).and_then(Value::as_u64).unwrap_or(0),
            details: args.get(3).cloned(),
            from_hook: flag(4),
            usage: args.get(5).cloned(),
        })?,
        "branchWithSummary" => {
            let entry = BranchSummaryEntry {
                summary: args.text(1).to_owned(),
                details: args.get(2).cloned(),
                from_hook: flag(3),
                usage: args.get(4).cloned(),
            };
            cursor.move_with_summary(args.str(0), &entry)?
        }
        _ => return Ok(None),
    }))
}

/// An entry as the case shows it: its id, or all of it.
fn shown(entry: &Entry, wanted: Option<&Value>) -> Value {
    if wanted.is_some_and(Value::is_object) { entry.value() } else { entry.id().into() }
}

fn query(cursor: &Cursor, op: &str, args: &Args, wanted: Option<&Value>) -> Result<Option<Value>, Refusal> {
    let tree = cursor.tree();
    let each = wanted.and_then(Value::as_array).and_then(|list| list.first());
    let entries = |ids: Vec<String>| -> Result<Value, Refusal> {
        let mut out = Vec::with_capacity(ids.len());
        for id in ids {
            out.extend(tree.entry(&id)?.map(|entry| shown(&entry, each)));
        }
        Ok(Value::Array(out))
    };
    Ok(Some(match op {
        "getBranch" => entries(tree.branch(args.str(0).or(cursor.leaf())).ids().collect())?,
        "getChildren" => entries(tree.children(args.some(0).and_then(Value::as_str)))?,
        "getEntry" => match tree.entry(args.text(0))? {
            Some(entry) => shown(&entry, wanted),
            None => return Ok(None),
        },
        "getLeafEntry" => match cursor.leaf().map(|leaf| tree.entry(leaf)).transpose()?.flatten() {
            Some(entry) => shown(&entry, wanted),
            None => return Ok(None),
        },
        "getLeafId" => cursor.leaf().into(),
        "getEntries" => {
            let all: Result<Vec<Entry>> = tree.entries().collect();
            all?.iter().map(|entry| shown(entry, each)).collect()
        }
        "getEntryCount" => tree.entry_count().into(),
        "getTree" => state::nested(tree),
        "getHeader" => branchline::json::parse(tree.header_json().as_bytes()).unwrap_or_default(),
        "getLabel" => return Ok(tree.label(args.text(0)).map(|label| label.text.into())),
        "getSessionName" => return Ok(tree.name().map(Value::from)),
        "getSessionId" => tree.session_id().into(),
        "getSessionFile" => return Ok(tree.path().map(|path| path.display().to_string().into())),
        "getSessionDir" => tree.session_dir().map_or_else(String::new, |dir| dir.display().to_string()).into(),
        "getCwd" => tree.cwd().display().to_string().into(),
        "isPersisted" => tree.path().is_some().into(),
        "buildSessionContext" => state::context_value(&tree.context(cursor.leaf())?),
        "buildSessionProjection" => state::projection_value(&tree.context(cursor.leaf())?, wanted),
        "usesDefaultSessionDir" => {
            let default = tree::session_dir(&tree::agent_dir(), tree.cwd());
            tree.session_dir().is_some_and(|dir| dir == default).into()
        }
        "buildContextEntries" => state::context_entries(&tree.context(cursor.leaf())?),
        "contextAt" => state::context_value(&tree.context(context_leaf(args, tree).as_deref())?),
        "contextEntriesAt" => state::context_entries(&tree.context(context_leaf(args, tree).as_deref())?),
        "exportBranch" => {
            let mut text = Vec::new();
            tree.export_branch(cursor.leaf(), &mut text)?;
            String::from_utf8_lossy(&text).split('\n').collect()
        }
        _ => return Err(Refusal::Unknown(format!("the runner does not know the operation {op}"))),
    }))
}

/// S118: `null` is no entry at all, nothing given is the last entry.
fn context_leaf(args: &Args, tree: &Tree) -> Option<String> {
    match args.get(0) {
        Some(Value::Null) => None,
        Some(Value::String(id)) => Some(id.clone()),
        _ => tree.last_id(),
    }
}

/// Ids of the parsed objects of a text, headers included, and without migrating it. The library has no such function of
/// its own; what it takes for entries has to agree.
fn parsed_ids(text: &str) -> Result<Value, Refusal> {
    let objects: Vec<Value> = text
        .trim_start_matches('\u{feff}')
        .split('\n')
        .filter_map(|line| branchline::json::parse(line.as_bytes()))
        // JSON that stands for nothing is dropped (S55).
        .filter(|value| !(value.is_null() || *value == false || value == "" || value.as_f64() == Some(0.0)))
        .collect();
    let options = CreateOptions { in_memory: true, ..CreateOptions::default() };
    let tree = Tree::in_memory_from(text.as_bytes(), CWD, options)?;
    let entries: Result<Vec<Entry>> = tree.entries().collect();
    let entries: Vec<String> = entries?.iter().map(|entry| entry.id().to_owned()).collect();
    let stated = objects
        .iter()
        .filter(|object| object.is_object() && object["type"] != "session")
        .filter_map(|object| object["id"].as_str());
    let migrated = Input::read(text.as_bytes()).version < 3.0;
    if !migrated && !stated.eq(entries.iter().map(String::as_str)) {
        return Err(Refusal::Unknown(format!("the library sees the entries {entries:?}")));
    }
    Ok(objects.iter().map(|object| object["id"].clone()).collect())
}
