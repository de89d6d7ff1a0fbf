//! Drives the real pi (`peer.mjs`, run by the Node of `build/peer`) from tests.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// One pi process with one current session.
pub struct Peer {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    /// pi's settings and credentials folder: empty, and gone with the peer.
    _agent: tempfile::TempDir,
}

impl Peer {
    /// Starts pi, installing it first where needed. `None` when the package registry cannot be reached; the setup
    /// script has then said so on stderr, and the test is skipped.
    ///
    /// # Panics
    /// When the setup fails for any other reason.
    pub fn start() -> Option<Peer> {
        let root = repository();
        let setup = Command::new(root.join("tools/setup-peer.sh")).stdout(Stdio::null()).status().expect("setup-peer.sh");
        if setup.code() == Some(75) {
            return None;
        }
        assert!(setup.success(), "tools/setup-peer.sh: {setup}");
        let pi = root.join("build/peer");
        let agent = tempfile::tempdir().expect("a temporary folder");
        let mut child = Command::new(pi.join("node"))
            .arg(root.join("tests/interop/peer.mjs"))
            .env("PI_ROOT", &pi)
            .env("PI_CODING_AGENT_DIR", agent.path())
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

    /// Sends one request and returns pi's answer, or the text of its error.
    ///
    /// # Errors
    /// The message of the exception that pi threw.
    ///
    /// # Panics
    /// When the process is gone or answers something else.
    pub fn ask(&mut self, request: &Value) -> Result<Value, String> {
        let input = self.input.as_mut().expect("open until the peer is dropped");
        writeln!(input, "{request}").and_then(|()| input.flush()).expect("the peer reads");
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the peer answers");
        let mut answer: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("the peer said {line:?}: {e}"));
        match answer["ok"].as_bool() {
            Some(true) => Ok(answer["value"].take()),
            _ => Err(answer["error"].to_string()),
        }
    }

    /// Calls one method of pi's current session.
    ///
    /// # Panics
    /// When pi throws.
    pub fn call(&mut self, method: &str, args: Value) -> Value {
        self.ask(&json!({"do": "call", "method": method, "args": args})).unwrap_or_else(|e| panic!("{method}: {e}"))
    }

    /// Like [`Peer::call`], for the methods that return the id of the entry they appended.
    ///
    /// # Panics
    /// When pi throws or returns no string.
    pub fn append(&mut self, method: &str, args: Value) -> String {
        self.call(method, args).as_str().expect("an id").to_owned()
    }

    /// Opens an existing file as the current session; `dir` is where sessions derived from it go.
    ///
    /// # Panics
    /// When pi refuses the file.
    pub fn open(&mut self, path: &Path, dir: &Path) {
        self.ask(&json!({"do": "open", "path": path, "dir": dir})).expect("pi opens the file");
    }

    /// Everything a reader can see of pi's current session; see `peer.mjs`.
    ///
    /// # Panics
    /// When pi throws.
    pub fn state(&mut self) -> Value {
        self.ask(&json!({"do": "state"})).expect("pi's state")
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        drop(self.input.take()); // end of input ends the process
        let _ = self.child.wait();
    }
}
