//! One test for each known fault of other implementations in the areas `tools.read`, `tools.write` and `tools.edit`.
//! The number is the record's.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

use branchline::block_on;
use branchline::tools::{ToolResult, Toolbox};
use serde_json::{Value, json};

struct Place {
    dir: tempfile::TempDir,
    tools: Toolbox,
}

impl Place {
    fn new() -> Place {
        let dir = tempfile::tempdir().unwrap();
        let tools = Toolbox::new(dir.path()).unwrap();
        Place { dir, tools }
    }

    fn with(files: &[(&str, &[u8])]) -> Place {
        let place = Place::new();
        for (name, content) in files {
            let path = place.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        place
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    fn text(&self, name: &str) -> String {
        String::from_utf8(self.bytes(name)).unwrap()
    }

    fn call(&self, tool: &str, arguments: Value) -> ToolResult {
        block_on(self.tools.call(tool, arguments))
    }

    fn edit(&self, name: &str, edits: &[(&str, &str)]) -> ToolResult {
        let edits: Vec<Value> = edits.iter().map(|(old, new)| json!({"oldText": old, "newText": new})).collect();
        self.call("edit", json!({"path": name, "edits": edits}))
    }

    fn read(&self, arguments: Value) -> ToolResult {
        self.call("read", arguments)
    }
}

fn text(result: &ToolResult) -> &str {
    result.content[0]["text"].as_str().unwrap()
}

fn ok(result: &ToolResult) -> &ToolResult {
    assert!(!result.is_error, "{}", text(result));
    result
}

fn failed(result: &ToolResult) -> &str {
    assert!(result.is_error, "{}", text(result));
    text(result)
}

#[test]
fn bug_031_line_endings_survive_an_edit() {
    let place = Place::with(&[("w.txt", b"one\r\ntwo\r\nthree\r\n"), ("u.txt", b"one\ntwo\n")]);
    for old in ["one\ntwo", "one\r\ntwo"] {
        fs::write(place.path("w.txt"), "one\r\ntwo\r\nthree\r\n").unwrap();
        let result = place.edit("w.txt", &[(old, "one\n1.5\ntwo")]);
        let details = ok(&result).details.clone().unwrap();
        assert_eq!(place.bytes("w.txt"), b"one\r\n1.5\r\ntwo\r\nthree\r\n");
        assert_eq!(details["diff"], " 1 one\n+2 1.5\n 2 two\n 3 three");
    }
    ok(&place.edit("u.txt", &[("one\n", "one\r\nmore\r\n")]));
    assert_eq!(place.text("u.txt"), "one\nmore\ntwo\n");
}

#[test]
fn bug_032_bytes_outside_of_the_edit_stay() {
    let place = Place::with(&[("m.txt", b"a\r\nb\nc"), ("cr.txt", b"x\ry\nz")]);
    ok(&place.edit("m.txt", &[("c", "C")]));
    assert_eq!(place.bytes("m.txt"), b"a\r\nb\nC");
    ok(&place.edit("cr.txt", &[("z", "Z")]));
    assert_eq!(place.bytes("cr.txt"), b"x\ry\nZ");
}

#[test]
fn bug_034_folding_is_never_written_back() {
    let old = "k = \"A\"\n\u{201c}quoted\u{201d} \u{2014} text\nnb\u{a0}sp\ntrail   ";
    let place = Place::with(&[("f.txt", format!("{old}\n").as_bytes())]);
    let result = place.edit("f.txt", &[("k = \u{201c}A\u{201d}", "k = \"B\"")]);
    assert_eq!(place.text("f.txt"), format!("{}\n", old.replace("\"A\"", "\"B\"")));
    let diff = ok(&result).details.clone().unwrap()["diff"].as_str().unwrap().to_owned();
    assert_eq!(diff.lines().filter(|line| !line.starts_with(' ')).count(), 2, "{diff}");
}

#[test]
fn bug_035_the_rest_of_a_matched_line_stays() {
    let line = "x = \u{201c}old\u{201d}; note = \u{201c}\u{2460}\u{bd}\u{ff21}\u{201d} -- end";
    let place = Place::with(&[("f.txt", line.as_bytes())]);
    ok(&place.edit("f.txt", &[("x = \"old\"", "x = \"new\"")]));
    assert_eq!(place.text("f.txt"), line.replace("\u{201c}old\u{201d}", "\"new\""));
    // Behind a character that folds to several, and ending inside one.
    ok(&place.edit("f.txt", &[("A\" -- end", "B")]));
    assert!(place.text("f.txt").ends_with("\u{2460}\u{bd}B"), "{}", place.text("f.txt"));
    let before = place.bytes("f.txt");
    failed(&place.edit("f.txt", &[("1\u{2044}", "3\u{2044}")]));
    assert_eq!(place.bytes("f.txt"), before);
}

#[test]
fn bug_037_texts_are_literal() {
    for new in ["a$&b", "$1$0", "$$", "${name}", "$`x$'", "\\1", "\\g<0>"] {
        let place = Place::with(&[("f.js", b"done(); (.*)[x]+?;")]);
        ok(&place.edit("f.js", &[("(.*)[x]+?", new)]));
        assert_eq!(place.text("f.js"), format!("done(); {new};"));
    }
}

#[test]
fn bug_038_edits_as_models_send_them() {
    let raw = "[{\"oldText\":\"a\",\"newText\":\"l1\nl2\tx\"}]";
    let good = [
        json!({"path": "f.txt", "edits": raw}),
        json!({"path": "f.txt", "edits": {"oldText": "a", "newText": "l1\nl2\tx"}}),
        json!({"path": "f.txt", "oldText": "a", "newText": "l1\nl2\tx"}),
    ];
    for arguments in good {
        let place = Place::with(&[("f.txt", b"a\n")]);
        ok(&place.call("edit", arguments));
        assert_eq!(place.text("f.txt"), "l1\nl2\tx\n");
    }
    let place = Place::with(&[("f.txt", b"a\n")]);
    let bad = [
        (json!({"path": "f.txt", "edits": "[{bad"}), "edits.0: expected object, got string"),
        (json!({"path": "f.txt", "edits": []}), "at least one"),
        (json!({"path": "f.txt"}), "edits: missing"),
    ];
    for (arguments, words) in bad {
        let result = place.call("edit", arguments);
        assert!(failed(&result).contains(words), "{}", text(&result));
        assert_eq!(place.text("f.txt"), "a\n");
    }
}

#[test]
fn bug_039_changes_of_one_file_wait_for_each_other() {
    for _ in 0..200 {
        let place = Place::with(&[("f.txt", b"A=0\nB=0\nC=0\nD=0\n")]);
        symlink(place.path("f.txt"), place.path("link.txt")).unwrap();
        fs::hard_link(place.path("f.txt"), place.path("hard.txt")).unwrap();
        let names = [("f.txt", "A"), ("./f.txt", "B"), ("link.txt", "C"), ("hard.txt", "D")];
        let calls = names.iter().map(|(name, key)| {
            let edit = json!({"oldText": format!("{key}=0"), "newText": format!("{key}=1")});
            place.tools.call("edit", json!({"path": name, "edits": [edit]}))
        });
        let failing = place.tools.call("edit", json!({"path": "f.txt", "oldText": "nowhere", "newText": ""}));
        let (failing, results) = block_on(futures::future::join(failing, futures::future::join_all(calls)));
        assert!(failing.is_error);
        for result in &results {
            ok(result);
        }
        assert_eq!(place.text("f.txt"), "A=1\nB=1\nC=1\nD=1\n");
    }
}

#[test]
fn bug_040_two_spellings_of_a_new_file_are_one() {
    use branchline::tools::mutation_queue::turn;
    use branchline::tools::operations::LocalFiles;

    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("target")).unwrap();
    symlink(dir.path().join("target"), dir.path().join("alias")).unwrap();
    for rest in ["new.txt", "sub/deep.txt"] {
        let (one, other) = (dir.path().join("target").join(rest), dir.path().join("alias").join(rest));
        block_on(async {
            let first = turn(&LocalFiles, &one).await.unwrap();
            let mut second = Box::pin(turn(&LocalFiles, &other));
            assert!(futures::poll!(second.as_mut()).is_pending());
            let elsewhere = turn(&LocalFiles, &dir.path().join("else.txt")).await.unwrap();
            drop((first, elsewhere));
            second.await.unwrap();
        });
    }
}

#[test]
fn bug_042_modes_stay_and_nothing_is_left_beside_the_file() {
    for mode in [0o755, 0o600, 0o2755] {
        let place = Place::with(&[("script.sh", b"echo old\n")]);
        fs::set_permissions(place.path("script.sh"), fs::Permissions::from_mode(mode)).unwrap();
        ok(&place.edit("script.sh", &[("old", "new")]));
        assert_eq!(fs::metadata(place.path("script.sh")).unwrap().permissions().mode() & 0o7777, mode);
        ok(&place.call("write", json!({"path": "script.sh", "content": "other"})));
        assert_eq!(fs::metadata(place.path("script.sh")).unwrap().permissions().mode() & 0o7777, mode);
        assert_eq!(fs::read_dir(place.dir.path()).unwrap().count(), 1);
    }
    // Someone who has the old file open still reads all of it.
    let place = Place::with(&[("f.txt", b"all of the old text")]);
    let mut old = fs::File::open(place.path("f.txt")).unwrap();
    ok(&place.call("write", json!({"path": "f.txt", "content": "new"})));
    let mut seen = String::new();
    std::io::Read::read_to_string(&mut old, &mut seen).unwrap();
    assert_eq!((seen.as_str(), place.text("f.txt").as_str()), ("all of the old text", "new"));
}

#[test]
fn bug_043_only_regular_files_are_read() {
    let place = Place::with(&[("empty", b"")]);
    let pipe = place.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let _socket = std::os::unix::net::UnixListener::bind(place.path("socket")).unwrap();
    let begun = Instant::now();
    for (path, word) in
        [("/dev/zero", "device"), ("/dev/urandom", "device"), ("pipe", "pipe"), ("socket", "socket"), (".", "EISDIR")]
    {
        let result = place.read(json!({"path": path}));
        assert!(failed(&result).contains(word), "{path}: {}", text(&result));
        assert!(place.edit(path, &[("a", "b")]).is_error, "{path}");
    }
    if Path::new("/proc/self/mem").exists() {
        failed(&place.read(json!({"path": "/proc/self/mem"})));
        assert!(text(ok(&place.read(json!({"path": "/proc/self/status"})))).contains("Name:"));
    }
    assert_eq!(text(ok(&place.read(json!({"path": "empty"})))), "");
    assert!(begun.elapsed() < Duration::from_secs(30));
}

#[test]
fn bug_044_names_as_models_type_them() {
    let place = Place::with(&[
        ("Capture d\u{2019}e\u{301}cran 10.54.png.txt", b"decomposed and curly"),
        ("Shot 9.22.20\u{202f}PM.txt", b"narrow"),
        ("r\u{e9}sum\u{e9}.txt", b"composed"),
        ("it's.txt", b"straight"),
        ("it\u{2019}s.txt", b"curly"),
    ]);
    let read = |name: &str| text(ok(&place.read(json!({"path": name})))).to_owned();
    assert_eq!(read("Capture d'\u{e9}cran 10.54.png.txt"), "decomposed and curly");
    assert_eq!(read("Shot 9.22.20 PM.txt"), "narrow");
    assert_eq!(read("re\u{301}sume\u{301}.txt"), "composed");
    assert_eq!(read("it's.txt"), "straight");
    ok(&place.call("write", json!({"path": "re\u{301}sume\u{301}.txt", "content": "exactly this name"})));
    assert_eq!(read("r\u{e9}sum\u{e9}.txt"), "composed");
}

#[test]
fn bug_046_sugar_in_paths() {
    let place =
        Place::with(&[("src/app.ts", b"app"), ("@types/x.d.ts", b"types"), ("~/f", b"tilde"), ("trail ", b"blank")]);
    let read = |name: &str| text(ok(&place.read(json!({"path": name})))).to_owned();
    assert_eq!(read("@src/app.ts"), "app");
    assert_eq!(read("./@types/x.d.ts"), "types");
    assert_eq!(read("@@types/x.d.ts"), "types");
    assert_eq!(read("./~/f"), "tilde");
    assert_eq!(read("trail "), "blank");
    assert_eq!(read(&format!("file://{}/src/app%2Ets", place.dir.path().display())), "app");
    assert!(failed(&place.read(json!({"path": "~user/x"}))).contains("~user/x"));
    assert!(failed(&place.read(json!({"path": ""}))).contains("EISDIR"));
}

#[test]
fn bug_047_every_hint_leads_on() {
    let long = "x".repeat(80_000);
    let place = Place::with(&[
        ("one.json", "y".repeat(120_000).as_bytes()),
        ("third.txt", format!("a\nb\n{long}\nd\ne\n").as_bytes()),
        ("fits.txt", "z".repeat(51_200).as_bytes()),
        ("over.txt", "\u{20ac}".repeat(17_067).as_bytes()),
    ]);
    assert!(text(&place.read(json!({"path": "one.json"}))).contains("117.2KB"));
    assert_eq!(text(&place.read(json!({"path": "fits.txt"}))).len(), 51_200);
    assert!(text(&place.read(json!({"path": "over.txt"}))).starts_with("[Line 1 is 50.0KB, exceeds"));
    assert!(text(&place.read(json!({"path": "third.txt"}))).ends_with("Use offset=3 to continue.]"));
    let third = place.read(json!({"path": "third.txt", "offset": 3}));
    assert!(text(&third).starts_with("[Line 3 is 78.1KB") && text(&third).contains("sed -n '3p'"), "{}", text(&third));
}

#[test]
fn bug_049_images_by_content() {
    const GIF: &[u8] = b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";
    let place = Place::with(&[
        ("fake.png", b"<svg/>"),
        ("photo.png", b"\xff\xd8\xff\xe0\0\x10JFIF\0 and nothing else"),
        ("cut.png", b"\x89PNG\r\n\x1a\n"),
        ("pic", GIF),
        ("note.png", b"a note"),
    ]);
    let kinds = |name: &str| -> Vec<String> {
        let result = place.read(json!({"path": name}));
        ok(&result).content.iter().map(|block| block["type"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(text(&place.read(json!({"path": "fake.png"}))), "<svg/>");
    assert_eq!(text(&place.read(json!({"path": "note.png"}))), "a note");
    assert_eq!(kinds("pic"), ["text", "image"]);
    assert_eq!(kinds("cut.png"), ["text"]);
    // JPEG bytes that cannot be decoded: told, and not attached.
    assert_eq!(kinds("photo.png"), ["text"]);
    assert!(text(&place.read(json!({"path": "photo.png"}))).contains("image/jpeg"));
}

#[test]
fn bug_105_numbers_of_every_kind() {
    let place = Place::with(&[("f.txt", b"1\n2\n3\n4\n5")]);
    let read = |offset: Value, limit: Value| {
        let mut arguments = json!({"path": "f.txt"});
        for (key, value) in [("offset", offset), ("limit", limit)] {
            if value != "none" {
                arguments[key] = value;
            }
        }
        let result = place.read(arguments);
        (result.is_error, text(&result).to_owned())
    };
    let none = || json!("none");
    let all = (false, "1\n2\n3\n4\n5".to_owned());
    for first in [json!(0), json!(1), json!(-1), json!(1.9), json!(null)] {
        assert_eq!(read(first.clone(), none()), all, "{first}");
    }
    assert_eq!(read(json!("3"), none()), (false, "3\n4\n5".to_owned()));
    assert_eq!(read(json!(5), none()), (false, "5".to_owned()));
    assert_eq!(read(json!(6), none()), (true, "Offset 6 is beyond end of file (5 lines total)".to_owned()));
    assert!(read(json!(9_007_199_254_740_992_u64), none()).0);
    assert!(read(json!(1e300), none()).0);
    assert_eq!(read(none(), json!(1e9)), all);
    assert_eq!(read(none(), json!(1)), (false, "1\n\n[4 more lines in file. Use offset=2 to continue.]".to_owned()));
    // Parity: a limit of nothing shows the notice alone, a negative one counts from the end.
    assert_eq!(read(none(), json!(0)), (false, "\n\n[5 more lines in file. Use offset=1 to continue.]".to_owned()));
    assert!(read(none(), json!(-1)).1.starts_with("1\n2\n3\n4\n\n"));
    // Far into a large file, twice: the second time with the places of lines known.
    let large: String = (1..=400_000).map(|n| format!("line {n}\n")).collect();
    fs::write(place.path("large.txt"), &large).unwrap();
    for _ in 0..2 {
        let result = place.read(json!({"path": "large.txt", "offset": 399_999, "limit": 1}));
        assert_eq!(text(&result), "line 399999\n\n[2 more lines in file. Use offset=400000 to continue.]");
    }
}

#[test]
fn bug_106_errors_of_write() {
    let place = Place::with(&[("d/x", b""), ("f.txt", b"file")]);
    let write = |path: &str| place.call("write", json!({"path": path, "content": "new"}));
    for (path, code) in [("d", "EISDIR"), ("f.txt/x", "mkdir"), (&"n".repeat(300), "ENAMETOOLONG"), ("a\0b", "EINVAL")]
    {
        let result = write(path);
        assert!(failed(&result).contains(code), "{path:?}: {}", text(&result));
        assert_eq!(text(&result).lines().count(), 1);
    }
    assert_eq!(fs::read_dir(place.dir.path()).unwrap().count(), 2);
    assert_eq!(place.text("f.txt"), "file");
    let content = "a\rb\0c\u{feff}";
    ok(&place.call("write", json!({"path": "raw", "content": content})));
    assert_eq!(place.bytes("raw"), content.as_bytes());
    ok(&place.call("write", json!({"path": "none", "content": ""})));
    assert_eq!(place.bytes("none"), b"");
    let call = place.tools.start("write", json!({"path": "aborted/f", "content": "x"}));
    call.cancel_token().cancel();
    assert_eq!(failed(&block_on(call.result())), "Operation aborted");
    assert!(!place.path("aborted").exists());
}
