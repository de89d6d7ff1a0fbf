//! The real pi (`peer.mjs`, `resources.mjs` and `protocols.mjs`, run by the Node of `build/peer`) as a partner in tests, and what a reader sees of a session
//! in either implementation.

pub mod generated;
mod op;
mod state;

pub use op::{Op, Ops};
pub use state::State;

use branchline::json;
use serde_json::json;
use state::{canonical, elements, member, settings};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// Where pi is, installed where needed; `None` when the package registry cannot be reached.
fn installed() -> Option<PathBuf> {
    let root = repository();
    let setup = Command::new(root.join("tools/setup-peer.sh")).stdout(Stdio::null()).status().expect("setup-peer.sh");
    if setup.code() == Some(75) {
        return None;
    }
    assert!(setup.success(), "tools/setup-peer.sh: {setup}");
    Some(root.join("build/peer"))
}

/// Runs a script of this folder with pi to its end. `None` as for [`Peer::start`].
///
/// # Panics
/// As [`Peer::start`].
pub fn script(name: &str, arguments: &[&OsStr]) -> Option<ExitStatus> {
    let pi = installed()?;
    let mut script = Command::new(pi.join("node"));
    script.arg(repository().join("tests/interop").join(name)).args(arguments).env("PI_ROOT", &pi);
    Some(script.status().expect("the peer's node"))
}

/// One pi process with one current session.
pub struct Peer {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    /// pi's settings and credentials folder, and its temporary one: empty, and gone with the peer.
    _agent: tempfile::TempDir,
}

impl Peer {
    /// Starts pi, installing it first where needed. `None` when the package registry cannot be reached; the setup
    /// script has then said so on stderr, and the test is skipped.
    ///
    /// # Panics
    /// When the setup fails for any other reason.
    pub fn start() -> Option<Peer> {
        Peer::start_script("peer.mjs")
    }

    /// The same for another script of this folder.
    ///
    /// # Panics
    /// As [`Peer::start`].
    pub fn start_script(name: &str) -> Option<Peer> {
        let (root, pi) = (repository(), installed()?);
        let agent = tempfile::tempdir().expect("a temporary folder");
        let mut child = Command::new(pi.join("node"))
            .arg(root.join("tests/interop").join(name))
            .env("PI_ROOT", &pi)
            .env("PI_CODING_AGENT_DIR", agent.path())
            // pi leaves its files with long output where they are.
            .env("TMPDIR", agent.path())
            .env("PI_OFFLINE", "1")
            .env("PI_SKIP_VERSION_CHECK", "1")
            .env("PI_TELEMETRY", "0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the peer's node");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("piped"));
        Some(Peer { child, input, output, _agent: agent })
    }

    /// Sends one request, a JSON object on one line, and returns the JSON text of pi's answer. Texts, not parsed values:
    /// they keep the order of members, lone surrogates and the digits of numbers.
    ///
    /// # Errors
    /// The message of the exception that pi threw, as a JSON string.
    ///
    /// # Panics
    /// When the process is gone or answers something else.
    pub fn ask(&mut self, request: &str) -> Result<String, String> {
        let input = self.input.as_mut().expect("open until the peer is dropped");
        writeln!(input, "{request}").and_then(|()| input.flush()).expect("the peer reads");
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the peer answers");
        match json::get(line.as_bytes(), "ok") {
            Some(b"true") => Ok(member(&line, "value").to_owned()),
            Some(b"false") => Err(member(&line, "error").to_owned()),
            _ => panic!("the peer said {line:?} to {request}"),
        }
    }

    /// Calls a method of pi's current session with JSON texts as arguments.
    ///
    /// # Errors
    /// As for [`Peer::ask`].
    pub fn call(&mut self, method: &str, args: &[&str]) -> Result<String, String> {
        self.ask(&format!(r#"{{"do":"call","method":"{method}","args":[{}]}}"#, args.join(",")))
    }

    /// Starts a new session for a working directory, with its file in `dir`.
    pub fn create(&mut self, cwd: &str, dir: &Path) {
        let request = json!({"do": "create", "cwd": cwd, "dir": dir});
        self.ask(&request.to_string()).expect("pi creates a session");
    }

    /// Opens an existing file; `dir` is where sessions derived from it go.
    ///
    /// # Panics
    /// When pi refuses the file.
    pub fn open(&mut self, path: &Path, dir: &Path) {
        let request = json!({"do": "open", "path": path, "dir": dir});
        self.ask(&request.to_string()).expect("pi opens the file");
    }

    /// What pi shows of its current session, at its present leaf.
    ///
    /// # Panics
    /// When pi throws.
    pub fn state(&mut self) -> State {
        let text = self.ask(r#"{"do":"state"}"#).expect("pi's state");
        let context = member(&text, "context");
        let list = |name| elements(member(&text, name));
        State {
            header: canonical(member(&text, "header")),
            leaf: canonical(member(&text, "leaf")),
            name: canonical(member(&text, "name")),
            count: member(&text, "count").parse().expect("a number"),
            settings: settings(member(context, "model"), member(context, "thinkingLevel")),
            entries: list("entries"),
            branch: list("branch"),
            tree: list("tree"),
            sources: list("sources"),
            messages: elements(member(context, "messages")),
        }
    }

    /// The file of pi's current session.
    ///
    /// # Panics
    /// When pi throws or the session is in memory only.
    pub fn file(&mut self) -> PathBuf {
        let text = self.ask(r#"{"do":"state"}"#).expect("pi's state");
        json::decode_string(member(&text, "file").as_bytes()).expect("a path").into()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        drop(self.input.take()); // end of input ends the process
        let _ = self.child.wait();
    }
}
