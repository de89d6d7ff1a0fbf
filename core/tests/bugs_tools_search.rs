//! Faults of coding agents, each a test: listing, finding and searching. The numbers are those of the list of bugs.

#[path = "tool_support/mod.rs"]
mod support;

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use branchline::tools::Operations;
use branchline::tools::operations::{FileOperations, Operation, Replaced};
use serde_json::json;
use support::*;

fn find(pattern: &str, cwd: &Path) -> Vec<String> {
    let shown = ok("find", json!({"pattern": pattern}), cwd);
    if shown == "No files found matching pattern" {
        return Vec::new();
    }
    lines(&shown).into_iter().map(str::to_owned).collect()
}

/// Links that lead nowhere are left out, as the reference does (rule T305); nothing else is.
#[test]
fn bug_059_entries_are_not_hidden_by_errors() {
    use std::os::unix::ffi::OsStrExt;
    let dir = tempfile::tempdir().unwrap();
    for name in ["real.txt", "sub/a.txt", ".hidden", "new\nline"] {
        write(dir.path(), name, "");
    }
    std::fs::write(dir.path().join(std::ffi::OsStr::from_bytes(b"odd\xff")), "").unwrap();
    symlink("/nowhere", dir.path().join("broken")).unwrap();
    symlink("loop", dir.path().join("loop")).unwrap();
    symlink("sub", dir.path().join("to-sub")).unwrap();
    let shown = ok("ls", json!({}), dir.path());
    assert_eq!(shown, ".hidden\nnew\\nline\nodd\u{fffd}\nreal.txt\nsub/\nto-sub/");
    assert_eq!(ok("ls", json!({}), dir.path()), shown, "the order is stable");
    assert_eq!(ok("ls", json!({"path": "sub"}), dir.path()), "a.txt");
    assert!(failure("ls", json!({"path": "real.txt"}), dir.path()).starts_with("Not a directory: /"));
    assert!(failure("ls", json!({"path": "none"}), dir.path()).starts_with("Path not found: /"));
    for number in 0..600 {
        write(dir.path(), &format!("many/{number:03}"), "");
    }
    let many = ok("ls", json!({"path": "many"}), dir.path());
    assert!(
        many.starts_with("000\n001\n")
            && many.contains("\n499\n\n[500 entries limit reached. Use limit=1000 for more]")
    );
}

#[test]
fn bug_060_globs_with_directories() {
    let dir = tempfile::tempdir().unwrap();
    for name in [
        "src/a.spec.ts",
        "src/x/y/b.spec.ts",
        "pkg/one/src/c.spec.ts",
        "some/parent/child/f.ext",
        ".github/w.yml",
        "src/m.ts",
    ] {
        write(dir.path(), name, "");
    }
    let find = |pattern: &str| find(pattern, dir.path());
    // A pattern with a slash begins at the searched directory (rule T331).
    assert_eq!(find("src/**/*.spec.ts"), ["src/a.spec.ts", "src/x/y/b.spec.ts"]);
    assert_eq!(find("**/src/**/*.spec.ts"), ["pkg/one/src/c.spec.ts", "src/a.spec.ts", "src/x/y/b.spec.ts"]);
    assert_eq!(find("**/parent/child/*"), ["some/parent/child/f.ext"]);
    assert_eq!(find("some/parent/child/**"), ["some/parent/child/f.ext"]);
    assert_eq!(find("*.spec.ts").len(), 3);
    assert_eq!(find("./src/*.ts"), ["src/a.spec.ts", "src/m.ts"]);
    assert!(find("SRC/*").is_empty());
    assert_eq!(find("{src,pkg}/**").len(), 8);
    assert_eq!(find("[ab].spec.ts"), ["src/a.spec.ts", "src/x/y/b.spec.ts"]);
    assert!(find("missing/**").is_empty());
    assert_eq!(find("**").len(), 16);
    assert_eq!(find("*.yml"), [".github/w.yml"]);
    assert_eq!(find(&format!("{}/src/**", dir.path().display())).len(), 5);
    for bad in ["", "["] {
        assert!(call("find", json!({"pattern": bad}), dir.path()).is_err(), "{bad:?}");
    }
}

#[test]
fn bug_061_ignore_files_end_at_a_repository() {
    let dir = tempfile::tempdir().unwrap();
    let outer = dir.path().join("outer");
    write(&outer, ".gitignore", "*\n!.gitignore\n");
    write(&outer, "inner/NOTES.md", "word\n");
    std::fs::create_dir_all(outer.join(".git")).unwrap();
    // A repository, or a linked work tree of one.
    for linked in [false, true] {
        let git = outer.join("inner/.git");
        let _ = std::fs::remove_dir_all(&git);
        match linked {
            false => std::fs::create_dir(&git).unwrap(),
            true => std::fs::write(&git, "gitdir: ../elsewhere\n").unwrap(),
        }
        assert_eq!(find("**/NOTES*.md", &outer.join("inner")), ["NOTES.md"]);
        assert_eq!(ok("grep", json!({"pattern": "word"}), &outer.join("inner")), "NOTES.md:1: word");
        assert!(find("NOTES*.md", &outer).is_empty());
        assert_eq!(ok("grep", json!({"pattern": "word"}), &outer), "No matches found");
        let _ = std::fs::remove_file(&git);
    }
    // A file that is named is searched whatever ignore files say.
    let named = ok("grep", json!({"pattern": "word", "path": "inner/NOTES.md"}), &outer);
    assert_eq!(named, "NOTES.md:1: word");
    // Without any repository: find honours .gitignore, grep does not (rules T323, T351).
    std::fs::remove_dir(outer.join(".git")).unwrap();
    assert!(find("NOTES*.md", &outer).is_empty());
    assert_eq!(ok("grep", json!({"pattern": "word"}), &outer), "inner/NOTES.md:1: word");
    // The repository's own list.
    let repository = dir.path().join("repo");
    write(&repository, ".git/info/exclude", "secret.txt\n");
    write(&repository, "secret.txt", "word\n");
    write(&repository, "open.txt", "word\n");
    assert_eq!(find("*.txt", &repository), ["open.txt"]);
    assert_eq!(ok("grep", json!({"pattern": "word"}), &repository), "open.txt:1: word");
}

#[test]
fn bug_063_links_in_circles() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    write(root, "d/x.txt", "x\n");
    symlink(".", root.join("d/self")).unwrap();
    write(root, "a/y.txt", "x\n");
    symlink("../a", root.join("a/b")).unwrap();
    symlink("l2", root.join("l1")).unwrap();
    symlink("l1", root.join("l2")).unwrap();
    symlink("/", root.join("everything")).unwrap();
    let mut chain = "d".to_owned();
    for number in 0..40 {
        symlink(&chain, root.join(format!("c{number}"))).unwrap();
        chain = format!("c{number}");
    }
    let begun = Instant::now();
    assert_eq!(find("**/*.txt", root), ["a/y.txt", "d/x.txt"]);
    assert_eq!(lines(&ok("grep", json!({"pattern": "x"}), root)), ["a/y.txt:1: x", "d/x.txt:1: x"]);
    assert_eq!(ok("ls", json!({"path": "d"}), root), "self/\nx.txt");
    assert_eq!(find("l?", root), ["l1", "l2"]);
    assert!(begun.elapsed() < Duration::from_secs(2));
}

#[test]
fn bug_064_patterns_are_no_options() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "f.txt", "a -77\nx->y\n--pre=cat /etc/passwd\n-e\n");
    write(dir.path(), "-dir/-x1", "a -77\n");
    for literal in [true, false] {
        let grep =
            |pattern: &str| ok("grep", json!({"pattern": pattern, "literal": literal, "path": "f.txt"}), dir.path());
        assert_eq!(grep("-77"), "f.txt:1: a -77");
        assert_eq!(grep("->"), "f.txt:2: x->y");
        assert_eq!(grep("--flag"), "No matches found");
        assert_eq!(grep("-e"), "f.txt:4: -e");
        assert_eq!(grep("--pre=cat"), "f.txt:3: --pre=cat /etc/passwd");
    }
    assert_eq!(ok("grep", json!({"pattern": "-77", "path": "-dir/", "glob": "-x*"}), dir.path()), "-x1:1: a -77");
}

#[test]
fn bug_065_errors_are_not_empty_results() {
    let dir = tempfile::tempdir().unwrap();
    let bad = ["(", "[a-", "foo(?=bar)", "\\1", "*abc"];
    write(dir.path(), "f.txt", bad.join("\n"));
    for (number, pattern) in bad.into_iter().enumerate() {
        let error = failure("grep", json!({"pattern": pattern}), dir.path());
        assert!(error.contains("error:"), "{error}");
        assert!(pattern != "foo(?=bar)" || error.contains("look-around"), "{error}");
        let found = ok("grep", json!({"pattern": pattern, "literal": true}), dir.path());
        assert!(found.lines().any(|line| line == format!("f.txt:{}: {pattern}", number + 1)), "{found}");
    }
    assert!(failure("grep", json!({"pattern": "a\nb", "literal": true}), dir.path()).contains("\\n"));
    assert_eq!(
        failure("grep", json!({"pattern": "x", "path": "none"}), dir.path()),
        format!("Path not found: {}/none", dir.path().display())
    );
    // The empty pattern is in every line.
    assert_eq!(ok("grep", json!({"pattern": ""}), dir.path()).lines().count(), 5);
    assert_eq!(ok("grep", json!({"pattern": "zzz"}), dir.path()), "No matches found");
}

#[test]
fn bug_067_lines_and_results_are_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let mut line = "x".repeat(3_000_000);
    line.replace_range(2_000_000..2_000_006, "needle");
    write(dir.path(), "min.js", &line);
    // The start of the line is shown (rule T363).
    let shown = ok("grep", json!({"pattern": "needle"}), dir.path());
    assert_eq!(
        shown,
        format!(
            "min.js:1: {}... [truncated]\n\n[Some lines truncated to 500 chars. Use read tool to see full lines]",
            "x".repeat(500)
        )
    );
    write(dir.path(), "many/n.txt", "hit\n".repeat(10_000));
    let many = dir.path().join("many");
    let shown = call("grep", json!({"pattern": "hit", "limit": 9000}), &many).unwrap();
    assert!(text(&shown).ends_with(
        "\n\n[9000 matches limit reached. Use limit=18000 for more, or refine pattern. 50.0KB limit reached]"
    ));
    assert!(text(&shown).len() < 51_400);
    assert_eq!(shown.details.unwrap()["truncation"]["totalLines"], 9000);
    write(dir.path(), "around/c.txt", format!("a\r\n{}\r\nhit\r\nb\r\n", "日".repeat(700_000)));
    let shown = ok("grep", json!({"pattern": "hit", "context": 5}), &dir.path().join("around"));
    let expected = format!("c.txt-1- a\nc.txt-2- {}... [truncated]\nc.txt:3: hit\nc.txt-4- b\n", "日".repeat(500));
    assert!(shown.starts_with(&expected), "{}", &shown[shown.len() - 200..]);
    assert!(!shown.contains('\r'));
}

#[test]
fn bug_110_names_are_text() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["-rf", "$(id)", "`id`", "\u{1b}]0;x\u{7}", "<script>", "a\nb", "..\\x"] {
        write(dir.path(), name, "word\n");
    }
    let shown = ok("ls", json!({}), dir.path());
    assert_eq!(shown.lines().count(), 7, "{shown}");
    assert!(!shown.contains(|c: char| c.is_control() && c != '\n'));
    for name in ["-rf", "$(id)", "`id`", "\\u001b]0;x\\u0007", "<script>", "a\\nb", "..\\x"] {
        assert!(shown.lines().any(|line| line == name), "{name} in {shown}");
    }
    assert_eq!(find("*", dir.path()).len(), 7);
    assert_eq!(lines(&ok("grep", json!({"pattern": "word"}), dir.path())).len(), 7);
    assert!(find("--exec=id", dir.path()).is_empty());
}

/// The same answer every time, though several threads look for it.
#[test]
fn limits_take_the_first_in_order() {
    let dir = tempfile::tempdir().unwrap();
    for number in 0..2000 {
        write(dir.path(), &format!("{}/{}/f{number}.txt", number % 7, number % 31), "hit\nno\nhit\n");
    }
    let all = ok("find", json!({"pattern": "*.txt", "limit": 5000}), dir.path());
    let all: Vec<&str> = all.lines().collect();
    assert_eq!(all.len(), 2000);
    for limit in [1, 10, 100, 700] {
        let shown = ok("find", json!({"pattern": "*.txt", "limit": limit}), dir.path());
        let shown: Vec<&str> = shown.split("\n\n[").next().unwrap().lines().collect();
        assert_eq!(shown, all[..limit]);
        let shown = ok("grep", json!({"pattern": "hit", "limit": limit}), dir.path());
        let shown: Vec<&str> = shown.split("\n\n[").next().unwrap().lines().collect();
        let wanted: Vec<String> =
            all.iter().flat_map(|path| [format!("{path}:1: hit"), format!("{path}:3: hit")]).take(limit).collect();
        assert_eq!(shown, wanted);
    }
}

/// A huge tree: an abort is answered at once, and the threads stop.
#[test]
fn aborts_end_searches() {
    let dir = tempfile::tempdir().unwrap();
    for number in 0..20_000 {
        write(dir.path(), &format!("{}/f{number}", number % 100), "text\n");
    }
    for arguments in [json!({"pattern": "nothing-*"}), json!({"pattern": "absent"})] {
        let name = if arguments["pattern"] == "absent" { "grep" } else { "find" };
        for delay in [0, 1, 5, 20] {
            let call = new_call(name, arguments.clone(), dir.path());
            let cancel = call.cancel.clone();
            let aborted = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(delay));
                cancel.cancel();
                Instant::now()
            });
            let result = run(&tool(name), call);
            let at = aborted.join().unwrap();
            match result {
                Err(error) => assert_eq!(error.0, "Operation aborted"),
                Ok(result) => assert!(text(&result).starts_with("No ")),
            }
            assert!(at.elapsed() < Duration::from_secs(1));
        }
    }
}

struct Editor {
    files: Vec<(PathBuf, &'static str)>,
}

impl FileOperations for Editor {
    fn read(&self, path: &Path) -> Operation<Vec<u8>> {
        let text = self.files.iter().find(|(known, _)| known == path).unwrap().1;
        Box::pin(async move { Ok(text.as_bytes().to_vec()) })
    }

    fn replaced(&self) -> Operation<Replaced> {
        let files = self.files.iter().map(|(path, _)| path.clone()).collect();
        Box::pin(async move { Ok(Replaced::Files(files)) })
    }
}

/// Unsaved buffers of an editor count, not what is on the disk.
#[test]
fn unsaved_buffers_are_searched() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "saved.txt", "old word\n");
    write(dir.path(), "other.txt", "word\n");
    let editor = Editor {
        files: vec![(dir.path().join("saved.txt"), "changed\n"), (dir.path().join("new/unsaved.txt"), "a\nnew word\n")],
    };
    let operations = Operations::local().files(editor);
    let call = |name: &str, arguments| {
        let mut call = new_call(name, arguments, dir.path());
        call.operations = operations.clone();
        text(&run(&tool(name), call).unwrap()).to_owned()
    };
    let found = call("grep", json!({"pattern": "word"}));
    assert_eq!(found, "new/unsaved.txt:2: new word\nother.txt:1: word");
    assert_eq!(call("grep", json!({"pattern": "changed"})), "saved.txt:1: changed");
    assert_eq!(call("grep", json!({"pattern": "new", "path": "new/unsaved.txt"})), "unsaved.txt:2: new word");
    assert_eq!(call("find", json!({"pattern": "*.txt"})), "new/unsaved.txt\nother.txt\nsaved.txt");
}

/// A host that serves all files: nothing is taken from the disk.
struct Remote;

impl FileOperations for Remote {
    fn read(&self, path: &Path) -> Operation<Vec<u8>> {
        let content = match path.to_str().unwrap() {
            "/far/.gitignore" => "skipped\n",
            "/far/a.txt" => "remote word\n",
            "/far/dir/b.txt" => "another word\n",
            _ => return Box::pin(async { Err(std::io::ErrorKind::NotFound.into()) }),
        };
        Box::pin(async move { Ok(content.as_bytes().to_vec()) })
    }

    fn read_dir(&self, path: &Path) -> Operation<Vec<branchline::tools::operations::DirEntry>> {
        use branchline::tools::operations::{DirEntry, FileKind};
        let entry = |name: &str, kind| DirEntry { name: name.into(), kind };
        let (file, directory) = (FileKind::File, FileKind::Directory);
        let entries = match path.to_str().unwrap() {
            "/far" => vec![
                entry("dir", directory),
                entry(".git", directory),
                entry("a.txt", file),
                entry("skipped", file),
                entry(".gitignore", file),
            ],
            "/far/dir" => vec![entry("b.txt", file)],
            _ => Vec::new(),
        };
        Box::pin(async move { Ok(entries) })
    }

    fn metadata(&self, path: &Path) -> Operation<branchline::tools::operations::Metadata> {
        use branchline::tools::operations::{FileKind, Metadata};
        let kind = match path.to_str().unwrap() {
            "/far" | "/far/dir" | "/far/.git" => FileKind::Directory,
            "/far/a.txt" | "/far/dir/b.txt" | "/far/skipped" | "/far/.gitignore" => FileKind::File,
            _ => return Box::pin(async { Err(std::io::ErrorKind::NotFound.into()) }),
        };
        Box::pin(async move { Ok(Metadata::new(kind, 0)) })
    }
}

#[test]
fn remote_trees_are_searched_through_the_host() {
    let operations = Operations::local().files(Remote);
    let call = |name: &str, arguments| {
        let mut call = new_call(name, arguments, Path::new("/far"));
        call.operations = operations.clone();
        text(&run(&tool(name), call).unwrap()).to_owned()
    };
    assert_eq!(call("ls", json!({})), ".git/\n.gitignore\na.txt\ndir/\nskipped");
    assert_eq!(call("find", json!({"pattern": "*"})), ".git/\n.gitignore\na.txt\ndir/\ndir/b.txt");
    assert_eq!(call("grep", json!({"pattern": "word"})), "a.txt:1: remote word\ndir/b.txt:1: another word");
}
