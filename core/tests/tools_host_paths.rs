//! Paths and files that are the host's: `~`, unsaved buffers beside files on disk, and what paths that lead nowhere say.

mod tool_support;

use std::future::ready;
use std::path::{Path, PathBuf};

use branchline::tools::Operations;
use branchline::tools::operations::{FileOperations, LocalFiles, Operation, Replaced};
use serde_json::json;

use tool_support::{failure, new_call, ok, run, text, tool, write};

/// A host with a home of its own, and one buffer that was never saved.
#[derive(Clone)]
struct Host {
    home: PathBuf,
    buffer: PathBuf,
}

impl FileOperations for Host {
    fn read(&self, path: &Path) -> Operation<Vec<u8>> {
        match path == self.buffer {
            true => Box::pin(ready(Ok(b"unsaved word\n".to_vec()))),
            false => LocalFiles.read(path),
        }
    }

    fn home(&self) -> Option<PathBuf> {
        Some(self.home.clone())
    }

    fn replaced(&self) -> Operation<Replaced> {
        Box::pin(ready(Ok(Replaced::Files(vec![self.buffer.clone()]))))
    }
}

#[test]
fn every_tool_knows_the_hosts_home() {
    let (home, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write(home.path(), "notes/a.txt", "a word\n");
    let host = Host { home: home.path().to_path_buf(), buffer: home.path().join("notes/new.txt") };
    let operations = Operations::local().files(host);
    let call = |name: &str, arguments| {
        let mut call = new_call(name, arguments, elsewhere.path());
        call.operations = operations.clone();
        text(&run(&tool(name), call).unwrap()).to_owned()
    };
    assert_eq!(call("ls", json!({"path": "~/notes"})), "a.txt\nnew.txt");
    assert_eq!(call("ls", json!({"path": "~"})), "notes/");
    assert_eq!(call("find", json!({"path": "~", "pattern": "*.txt"})), "notes/a.txt\nnotes/new.txt");
    let both = "a.txt:1: a word\nnew.txt:1: unsaved word";
    assert_eq!(call("grep", json!({"path": "~/notes", "pattern": "word"})), both);
    assert_eq!(call("read", json!({"path": "~/notes/a.txt"})), "a word\n");
    call("write", json!({"path": "~/made.txt", "content": "x"}));
    assert!(home.path().join("made.txt").exists());
    call("edit", json!({"path": "~/made.txt", "edits": [{"oldText": "x", "newText": "y"}]}));
    assert_eq!(std::fs::read(home.path().join("made.txt")).unwrap(), b"y");
}

/// T302, T327, T352: below a file there is nothing, as if the path did not exist.
#[test]
fn a_path_below_a_file_is_not_found() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "f", "x\n");
    for (name, mut arguments) in
        [("ls", json!({})), ("find", json!({"pattern": "*"})), ("grep", json!({"pattern": "x"}))]
    {
        arguments["path"] = "f/below".into();
        assert_eq!(failure(name, arguments, dir.path()), format!("Path not found: {}/f/below", dir.path().display()));
    }
}

/// A file that is named is searched though it is binary; found on a walk it is passed over (T351, T352, T366).
#[test]
fn binary_files_are_searched_by_name_only() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "data.bin", "no\nhit\0bytes\nhit later\n");
    assert_eq!(ok("grep", json!({"pattern": "hit"}), dir.path()), "No matches found");
    let named = ok("grep", json!({"pattern": "hit", "path": "data.bin"}), dir.path());
    assert_eq!(named, "data.bin:2: hit\0bytes\ndata.bin:3: hit later");
}

/// T304: names that differ in case alone come in the order of their bytes, whatever the disk's order is.
#[test]
fn equal_names_have_an_order() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["b", "B", "a", "A", "ä", "Ä"] {
        write(dir.path(), name, "");
    }
    assert_eq!(ok("ls", json!({}), dir.path()), "A\na\nÄ\nä\nB\nb");
}

/// T331: no path ends with a separator.
#[test]
fn patterns_that_end_with_a_separator_match_nothing() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "src/a.ts", "");
    for pattern in ["src/", "**/", "*/"] {
        assert_eq!(ok("find", json!({"pattern": pattern}), dir.path()), "No files found matching pattern", "{pattern}");
    }
}
