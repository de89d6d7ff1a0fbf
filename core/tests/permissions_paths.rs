//! Paths that try to leave the root: links, `..`, names that only look alike, and swaps between look and use. One test
//! for each kind of fault that programs like this one had.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use branchline::permissions::{Action, PermissionAnswer, PermissionRequest};
use branchline::tools::operations::{FileOperations, LocalFiles, Metadata, Operation, Replaced};
use branchline::tools::{Operations, ToolError, ToolResult, Toolbox};
use branchline::{Permissions, block_on};
use serde_json::{Value, json};

struct Place {
    _dir: tempfile::TempDir,
    base: PathBuf,
    root: PathBuf,
    tools: Toolbox,
}

/// `root` to stay in, and `rootx` beside it with a secret.
fn place() -> Place {
    let dir = tempfile::tempdir().unwrap();
    let base = fs::canonicalize(dir.path()).unwrap();
    let root = base.join("root");
    fs::create_dir_all(root.join("sub")).unwrap();
    fs::create_dir(base.join("rootx")).unwrap();
    fs::write(base.join("rootx/secret"), "SECRET\n").unwrap();
    fs::write(root.join("a.txt"), "plain\n").unwrap();
    let tools = Toolbox::new(&root).unwrap();
    tools.set_permissions(Permissions::allow().root(&root));
    Place { _dir: dir, base, root, tools }
}

impl Place {
    fn call(&self, name: &str, arguments: Value) -> ToolResult {
        block_on(self.tools.call(name, arguments))
    }

    fn refused(&self, name: &str, arguments: Value) {
        let result = self.call(name, arguments.clone());
        let text = result.content[0]["text"].as_str().unwrap();
        assert!(result.is_error && text.contains("outside"), "{name} {arguments}: {text}");
        assert!(!text.contains("SECRET"));
    }

    fn works(&self, name: &str, arguments: Value) -> String {
        let result = self.call(name, arguments.clone());
        let text = result.content[0]["text"].as_str().unwrap();
        assert!(!result.is_error, "{name} {arguments}: {text}");
        text.to_owned()
    }

    /// Every file tool on a path, none of which may get through.
    fn all_refused(&self, path: &str) {
        self.refused("read", json!({"path": path}));
        self.refused("write", json!({"path": path, "content": "x"}));
        self.refused("edit", json!({"path": path, "edits": [{"oldText": "SECRET", "newText": "x"}]}));
        self.refused("grep", json!({"pattern": "SECRET", "path": path}));
        self.refused("find", json!({"pattern": "*", "path": path}));
        self.refused("ls", json!({"path": path}));
        assert_eq!(fs::read_to_string(self.base.join("rootx/secret")).unwrap(), "SECRET\n");
    }
}

#[test]
fn dots_do_not_lead_out() {
    let place = place();
    let absolute = place.base.join("rootx/secret").display().to_string();
    for path in
        ["../rootx/secret", "sub/../../rootx/secret", &absolute, &format!("file://{absolute}"), &format!("@{absolute}")]
    {
        place.all_refused(path);
    }
    assert_eq!(place.works("read", json!({"path": "sub/../a.txt"})), "plain\n");
}

/// CVE-2026-34451: a prefix of the text is not a directory above.
#[test]
fn names_are_compared_whole() {
    let place = place();
    place.all_refused(&place.base.join("rootx/secret").display().to_string());
    place.refused("write", json!({"path": place.base.join("root.txt"), "content": "x"}));
    assert!(!place.base.join("root.txt").exists());
}

/// CVE-2026-39861, CVE-2026-25724: a link inside leads outside.
#[test]
fn links_are_followed_before_anything_is_compared() {
    let place = place();
    symlink(place.base.join("rootx"), place.root.join("absolute")).unwrap();
    symlink("../../rootx", place.root.join("sub/relative")).unwrap();
    symlink("sub/relative/secret", place.root.join("twice")).unwrap();
    for path in ["absolute/secret", "sub/relative/secret", "twice"] {
        place.all_refused(path);
    }
    // Those that stay inside are fine, also absolute ones.
    symlink(place.root.join("sub"), place.root.join("inside")).unwrap();
    place.works("write", json!({"path": "inside/n.txt", "content": "n"}));
    assert_eq!(place.works("read", json!({"path": "inside/n.txt"})), "n");
    place.works("edit", json!({"path": "inside/n.txt", "edits": [{"oldText": "n", "newText": "m"}]}));
    assert_eq!(fs::read_to_string(place.root.join("sub/n.txt")).unwrap(), "m");
    assert!(place.works("grep", json!({"pattern": "m", "path": "inside"})).contains("n.txt:1: m"));
    assert!(place.works("ls", json!({"path": "inside"})).contains("n.txt"));
}

/// CVE-2026-32055: writing through a link to nothing makes its target.
#[test]
fn links_to_nothing_are_followed_too() {
    let place = place();
    symlink(place.base.join("rootx/new"), place.root.join("dangling")).unwrap();
    symlink("../rootx/dir", place.root.join("dangling-dir")).unwrap();
    place.refused("write", json!({"path": "dangling", "content": "x"}));
    place.refused("write", json!({"path": "dangling-dir/deep/file", "content": "x"}));
    assert!(!place.base.join("rootx/new").exists() && !place.base.join("rootx/dir").exists());
    symlink("sub/made", place.root.join("harmless")).unwrap();
    place.works("write", json!({"path": "harmless", "content": "x"}));
    assert_eq!(fs::read_to_string(place.root.join("sub/made")).unwrap(), "x");
}

/// Files of a host that look innocent when the policy looks and turn into a link right after.
struct Swapping {
    path: PathBuf,
    target: PathBuf,
    armed: Arc<AtomicBool>,
}

impl FileOperations for Swapping {
    fn replaced(&self) -> Operation<Replaced> {
        let (path, target, armed) = (self.path.clone(), self.target.clone(), self.armed.clone());
        Box::pin(async move {
            // Asked first by the policy, then by the tool.
            if armed.swap(false, Ordering::SeqCst) {
                return Ok(Replaced::None);
            }
            let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
            symlink(&target, &path).unwrap();
            Ok(Replaced::None)
        })
    }

    fn metadata(&self, path: &Path) -> Operation<Metadata> {
        LocalFiles.metadata(path)
    }
}

/// CVE-2026-88968 and its like: what was judged is what is opened.
#[test]
fn a_swap_after_the_look_gains_nothing() {
    for (tool, arguments) in [
        ("read", json!({"path": "file"})),
        ("write", json!({"path": "file", "content": "x"})),
        ("edit", json!({"path": "file", "edits": [{"oldText": "SECRET", "newText": "x"}]})),
        ("grep", json!({"pattern": "SECRET", "path": "file"})),
        ("read", json!({"path": "dir/secret"})),
        ("write", json!({"path": "dir/secret", "content": "x"})),
        ("write", json!({"path": "dir/deeper/new", "content": "x"})),
        ("grep", json!({"pattern": "SECRET", "path": "dir"})),
        ("find", json!({"pattern": "*", "path": "dir"})),
        ("ls", json!({"path": "dir"})),
    ] {
        let place = place();
        fs::write(place.root.join("file"), "innocent\n").unwrap();
        fs::create_dir(place.root.join("dir")).unwrap();
        fs::write(place.root.join("dir/secret"), "innocent\n").unwrap();
        let is_file = arguments["path"] == "file";
        let files = Swapping {
            path: place.root.join(if is_file { "file" } else { "dir" }),
            target: place.base.join(if is_file { "rootx/secret" } else { "rootx" }),
            armed: Arc::new(AtomicBool::new(true)),
        };
        let tools = Toolbox::with_operations(&place.root, Operations::local().files(files)).unwrap();
        tools.set_permissions(Permissions::allow().root(&place.root));
        let result = block_on(tools.call(tool, arguments.clone()));
        let text = result.content[0]["text"].as_str().unwrap();
        assert!(result.is_error, "{tool} {arguments}: {text}");
        assert!(!text.contains("SECRET") && !text.contains("secret\n"), "{tool}: {text}");
        assert_eq!(fs::read_to_string(place.base.join("rootx/secret")).unwrap(), "SECRET\n");
        assert!(!place.base.join("rootx/deeper").exists());
    }
}

/// The root is what it was when the toolbox was made.
#[test]
fn a_root_that_becomes_a_link_is_refused() {
    let place = place();
    fs::rename(&place.root, place.base.join("old")).unwrap();
    symlink("rootx", &place.root).unwrap();
    let result = place.call("read", json!({"path": "secret"}));
    assert!(result.is_error, "{result:?}");
    assert!(!result.content[0]["text"].as_str().unwrap().contains("SECRET"));
    let result = place.call("bash", json!({"command": "cat secret"}));
    assert!(result.is_error, "commands run inside as well: {result:?}");
}

/// A root that is named through a link is where that led.
#[test]
fn a_root_behind_a_link_works_by_both_names() {
    let place = place();
    let link = place.base.join("link");
    symlink("root", &link).unwrap();
    let tools = Toolbox::new(&link).unwrap();
    tools.set_permissions(Permissions::workspace());
    for path in [link.join("a.txt"), place.root.join("a.txt"), PathBuf::from("a.txt")] {
        let result = block_on(tools.call("read", json!({"path": path})));
        assert_eq!(result.content[0]["text"], "plain\n");
    }
    assert!(block_on(tools.call("read", json!({"path": "../rootx/secret"}))).is_error);
}

/// CVE-2025-59532: the model does not choose the root.
#[test]
fn commands_run_below_the_root_only() {
    let place = place();
    let tools = Toolbox::new(place.base.join("rootx")).unwrap();
    tools.set_permissions(Permissions::allow().root(&place.root));
    let result = block_on(tools.call("bash", json!({"command": "cat secret", "cwd": place.root})));
    assert!(result.is_error && result.content[0]["text"].as_str().unwrap().contains("outside"), "{result:?}");
    assert!(place.works("bash", json!({"command": "pwd"})).contains("root"));
}

#[test]
fn a_walk_shows_nothing_through_links() {
    let place = place();
    symlink(place.base.join("rootx"), place.root.join("sub/out")).unwrap();
    symlink(place.base.join("rootx/secret"), place.root.join("sub/file")).unwrap();
    assert_eq!(place.works("grep", json!({"pattern": "SECRET"})), "No matches found");
    assert!(!place.works("find", json!({"pattern": "**/secret"})).contains("secret"));
    let listed = place.works("ls", json!({"path": "sub"}));
    assert_eq!(listed, "file\nout");
}

/// Rules of git in directories above the root still say what a search passes over.
#[test]
fn ignore_files_above_the_root_count() {
    let place = place();
    fs::create_dir(place.base.join(".git")).unwrap();
    fs::write(place.base.join(".gitignore"), "*.log\n").unwrap();
    fs::write(place.root.join("x.log"), "plain\n").unwrap();
    assert_eq!(place.works("grep", json!({"pattern": "plain"})), "a.txt:1: plain");
}

/// What was allowed by name is that file, not what its name leads to later.
#[test]
fn an_allowed_path_is_the_one_that_was_shown() {
    let place = place();
    let (link, other) = (place.base.join("link"), place.base.join("other"));
    fs::write(&other, "other\n").unwrap();
    symlink(&other, &link).unwrap();
    let target = place.base.join("rootx/secret");
    let swap = link.clone();
    let handler = move |request: PermissionRequest| {
        assert!(request.paths[0].real.ends_with("other"));
        fs::remove_file(&swap).unwrap();
        symlink(&target, &swap).unwrap();
        async { Ok::<_, ToolError>(PermissionAnswer::Allow) }
    };
    place.tools.set_permissions(Permissions::ask().handler(handler));
    assert_eq!(place.works("read", json!({"path": link})), "other\n");
}

#[test]
fn an_allowed_new_file_outside_is_made_with_its_directories() {
    let place = place();
    let allow = |_: PermissionRequest| async { Ok::<_, ToolError>(PermissionAnswer::Allow) };
    place.tools.set_permissions(Permissions::ask().handler(allow));
    let path = place.base.join("fresh/deep/file.txt");
    place.works("write", json!({"path": path, "content": "x"}));
    assert_eq!(fs::read_to_string(&path).unwrap(), "x");
    place.works("edit", json!({"path": path, "edits": [{"oldText": "x", "newText": "y"}]}));
    assert_eq!(fs::read_to_string(&path).unwrap(), "y");
    assert!(place.works("ls", json!({"path": place.base.join("fresh")})).contains("deep/"));
    assert!(place.works("grep", json!({"pattern": "y", "path": place.base.join("fresh")})).contains("file.txt:1: y"));
}

#[test]
fn several_roots_are_one() {
    let place = place();
    place.tools.set_permissions(Permissions::allow().root(".").root("../rootx"));
    symlink(place.base.join("rootx"), place.root.join("across")).unwrap();
    for path in ["../rootx/secret", "across/secret"] {
        assert_eq!(place.works("read", json!({"path": path})), "SECRET\n");
    }
    place.refused("ls", json!({"path": ".."}));
}

/// Pages of a large file behind a fence are found as without.
#[test]
fn pages_and_modes_are_kept() {
    use std::os::unix::fs::PermissionsExt;
    let place = place();
    let text: String = (1..=5000).map(|line| format!("line {line}\n")).collect();
    let file = place.root.join("big.txt");
    fs::write(&file, text).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    assert!(place.works("read", json!({"path": "big.txt", "offset": 4999})).starts_with("line 4999\nline 5000"));
    place.works("edit", json!({"path": "big.txt", "edits": [{"oldText": "line 4999\n", "newText": "changed\n"}]}));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(place.works("read", json!({"path": "big.txt", "offset": 4999})).starts_with("changed\nline 5000"));
    let left: Vec<_> = fs::read_dir(&place.root).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().contains("branchline")), "{left:?}");
    place.tools.set_permissions(Permissions::allow().root(".").tool("write", Action::Deny));
    assert!(place.call("write", json!({"path": "big.txt", "content": ""})).is_error);
}
