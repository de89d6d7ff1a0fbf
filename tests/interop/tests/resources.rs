//! Generated texts, files and names: branchline makes of them what the real pi makes of them. Skipped, with one line, when pi
//! cannot be installed because the package registry is out of reach.
//!
//! Left out of what is generated, because we differ on purpose or pi is at odds with itself: links that lead upwards (pi does
//! not come back), tabs as YAML's indentation, empty model names.

use std::path::Path;

use branchline::providers::credentials::{Environment, config_value};
use branchline::providers::{CatalogueOptions, Key, KeyOptions, Model, StoredKey};
use branchline::resources::settings::Settings;
use branchline::resources::skills::{self, SkillSource};
use branchline::resources::templates::{self, PromptTemplate};
use branchline::resources::{context_files, frontmatter};
use branchline::{Discover, Engine, EngineOptions, ResourceOptions, Resources, block_on};
use branchline_interop::Peer;
use branchline_interop::generated::{Dice, ask, same};
use serde_json::{Value, json};

fn pi() -> Option<Peer> {
    Peer::start_script("resources.mjs")
}

/// P751–P753.
#[test]
fn prompt_templates() {
    let Some(mut peer) = pi() else { return };
    let mut dice = Dice(1);
    let blanks =
        [" ", "  ", "\t", "\n", "\u{a0}", "\u{3000}", "\u{85}", "\u{200b}", "\u{feff}", "\r", "\u{b}", "\u{2028}"];
    let words = ["a", "b", "\"", "'", "\\", "\\\"", "\\'", "é", "\"x y\"", "/fix", "$1"];
    let pieces = [&blanks[..], &words[..]].concat();
    let marks = [
        "$",
        "$1",
        "$2",
        "${",
        "}",
        ":",
        "-",
        ":-",
        "@",
        "$@",
        "$ARGUMENTS",
        "1",
        "0",
        "10",
        "x",
        "é",
        "${1:-",
        "${@:2",
        "${@:1:1}",
        "${ARGUMENTS:-",
        "\n",
        "$$",
        "${@",
        "${10:-d}",
        "${@:-",
        "01",
    ];
    let fix = PromptTemplate::new("fix", "[$1|$@]").expect("a template");
    for _ in 0..1500 {
        let text = dice.soup(&pieces, 12);
        let theirs = ask(&mut peer, json!({"do": "arguments", "text": text})).expect("pi splits");
        assert_eq!(json!(templates::split_arguments(&text)), theirs, "{text:?}");
        let prompt = if dice.roll(2) == 0 { format!("/fix{text}") } else { text };
        let request = json!({"do": "expand", "text": prompt, "name": "fix", "content": "[$1|$@]"});
        let theirs = ask(&mut peer, request).expect("pi expands");
        assert_eq!(json!(templates::expand(&prompt, std::slice::from_ref(&fix))), theirs, "{prompt:?}");
        let content = dice.soup(&marks, 10);
        let arguments: Vec<String> =
            (0..dice.roll(4)).map(|_| (*dice.pick(&["a", "", "b c", "$1", "$@", "}"])).to_owned()).collect();
        let request = json!({"do": "substitute", "text": content, "arguments": arguments});
        let theirs = ask(&mut peer, request).expect("pi substitutes");
        assert_eq!(json!(templates::substitute(&content, &arguments)), theirs, "{content:?} {arguments:?}");
    }
}

/// P722.
#[test]
fn documents() {
    let Some(mut peer) = pi() else { return };
    let mut dice = Dice(2);
    let yaml = [
        "name: x",
        "name: 'it''s'",
        "name: \"a\\tb\"",
        "description: |\n  one\n  two",
        "description: >\n  one\n  two\n\n  three",
        "n: 12",
        "n: 1.50",
        "n: 0x10",
        "n: 0o17",
        "n: 1e3",
        "n: 010",
        "n: .5",
        "b: true",
        "b: yes",
        "b: TRUE",
        "b: y",
        "z: null",
        "z:",
        "d: 2024-01-01",
        "l: [a, b]",
        "l:\n- a\n- b",
        "o: {a: 1, b: [2]}",
        "a: b: c",
        "a: b # comment",
        "a: b#c",
        "# comment",
        "key with space: v",
        "\"quoted\": v",
        "a: &x v\nb: *x",
        "s: !!str 12",
        "name: x\nname: y",
        "e: 😀",
        "big: 12345678901234567890",
        "a: @x",
        "a: *missing",
        "a: 'x",
        "- item",
        "just text",
        "n: 1_000",
        "t: 12:30",
        "hint: [file] [x]",
        "hint: <a> [b]",
        "<<: {q: 1}",
        "inf: .inf",
        "a: [ , ]",
        "m: \"two\n  lines\"",
        " name: x",
    ];
    let starts =
        ["---\n", "---\n", "---\r\n", "--- \n", "----\n", "\u{feff}---\n", "\n---\n", "---é\n", "--- #c\n", "---\r"];
    let ends = ["\n---\n", "\n---", "\r\n---\r\n", "\n--- \n", "\n----\n", "\n---x\n", "\n ---\n", "", "\r---\r"];
    let bodies = ["Body\n", "\n\nBody\n\n", "", "  x  \n", "---\nmore\n", "\u{a0}x\u{a0}", "\u{feff}B", "\u{85}"];
    for _ in 0..2000 {
        let lines: Vec<&str> = (0..dice.roll(4)).map(|_| *dice.pick(&yaml)).collect();
        let (start, end, body) = (*dice.pick(&starts), *dice.pick(&ends), *dice.pick(&bodies));
        let text = format!("{start}{}{end}{body}", lines.join(*dice.pick(&["\n", "\n\n", "\r\n"])));
        let ours = frontmatter::parse(&text);
        let ours = ours.ok().map(|document| {
            let whole = if document.other.is_null() { json!(document.fields) } else { document.other };
            json!({"frontmatter": whole, "body": document.body})
        });
        let theirs = ask(&mut peer, json!({"do": "document", "text": text})).ok();
        let equal = same(&json!(ours), &json!(theirs));
        assert!(equal, "{text:?}\n pi   {}\n ours {}", json!(theirs), json!(ours));
    }
}

/// P34.
#[test]
fn configured_values() {
    let Some(mut peer) = pi() else { return };
    let mut dice = Dice(3);
    let pieces = [
        "$", "A", "$A", "${A}", "${", "}", "$$", "$!", "x", " ", "$EMPTY", "${EMPTY}", "$MISSING", "1", "-", "é", "$1",
        "${1A}", "${A-b}", "$É",
    ];
    let environment = Environment::fixed([("A", "1"), ("EMPTY", "")]);
    for _ in 0..1500 {
        let text = dice.soup(&pieces, 9);
        let request = json!({"do": "value", "text": text, "variables": {"A": "1", "EMPTY": ""}});
        let theirs = ask(&mut peer, request).expect("pi resolves");
        assert_eq!(json!(config_value(&text, &environment, false).ok()), theirs, "{text:?}");
    }
}

fn put(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
    let _ = std::fs::write(path, text); // a folder of that name may be there
}

/// P720–P724.
#[test]
fn skills_of_a_folder() {
    let Some(mut peer) = pi() else { return };
    let mut dice = Dice(4);
    let folders = ["", "a/", "b/", "a/x/", "a/x/y/", "c/", "c/node_modules/", "c/.h/", "b/sub/", "Z/", "ä/", "a b/"];
    let files = ["SKILL.md", "SKILL.md", "skill.md", "x.md", "README.md", "x.MD", ".hid.md", "y.txt"];
    let fields = [
        "name: n1\ndescription: d",
        "name: n2\ndescription: d",
        "name: n3\ndescription: d",
        "name: n1",
        "name: n4\ndescription: ''",
        "name: n5\ndescription: 5",
        "name: n6\ndescription: '  '",
        "name: [x\n",
        "name: Up\ndescription: d",
        "name: a--b\ndescription: d",
        "name: -a\ndescription: d",
        "name: n7\ndescription: d\ndisable-model-invocation: true",
        "name: n8\ndescription: d\ndisable-model-invocation: 'true'",
        "name: n9\ndescription: |\n  two\n  lines\n",
        "name: ' n '\ndescription: d",
        "name: m1\ndescription: [a]",
        "name: é\ndescription: ' lead'",
    ];
    let patterns = [
        "a/", "*.md", "!x.md", "/b", "SKILL.md", "x", "a/x", "!a/x", "b/*", "**/y", "# c", "a/**", "Z", "/x.md", " ",
        "sub",
    ];
    for _ in 0..250 {
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path().canonicalize().expect("a folder").join("skills");
        std::fs::create_dir(&root).expect("a folder");
        for _ in 0..=dice.roll(7) {
            let path = root.join(format!("{}{}", dice.pick(&folders), dice.pick(&files)));
            put(&path, &format!("---\n{}\n---\nB\n", dice.pick(&fields)));
        }
        if dice.roll(2) == 0 {
            let name = dice.pick(&[".gitignore", ".ignore", ".fdignore"]);
            let folder = dice.pick(&["", "a/", "b/"]);
            let lines: Vec<&str> = (0..=dice.roll(2)).map(|_| *dice.pick(&patterns)).collect();
            put(&root.join(format!("{folder}{name}")), &lines.join("\n"));
        }
        let (found, diagnostics) = skills::load(&[SkillSource::new(&root)]);
        let shown: Vec<Value> =
            found.iter().map(|it| json!([it.name, it.description, it.path, it.disable_model_invocation])).collect();
        let mut problems: Vec<String> = diagnostics
            .iter()
            .map(|it| format!("{} {}", it.path.display(), json!(it.fault).as_str().unwrap_or_default()))
            .collect();
        problems.sort();
        let theirs = ask(&mut peer, json!({"do": "skills", "dir": root})).expect("pi looks");
        assert_eq!(json!({"skills": shown, "problems": problems}), theirs);
    }
}

/// P700, P701.
#[test]
fn context_files_of_folders() {
    let Some(mut peer) = pi() else { return };
    let mut dice = Dice(5);
    let names = [
        "AGENTS.override.md",
        "AGENTS.md",
        "AGENTS.MD",
        "CLAUDE.md",
        "CLAUDE.MD",
        "agents.md",
        "AGENTS.md/x",
        "CLAUDE.md/x",
    ];
    for _ in 0..250 {
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path().canonicalize().expect("a folder");
        for _ in 0..=dice.roll(8) {
            let path = root.join(dice.pick(&["agent", "", "p", "p/q", "p/q/r"])).join(dice.pick(&names));
            if path.parent().is_some_and(|parent| !parent.is_file()) {
                put(&path, "x");
            }
        }
        let (cwd, agent) = (root.join(dice.pick(&["", "agent", "p", "p/q", "p/q/r", "p/q/r/s"])), root.join("agent"));
        std::fs::create_dir_all(&cwd).expect("a folder");
        let (found, _) = context_files::load(Some(&agent), &cwd);
        let paths: Vec<_> = found.iter().map(|file| file.path.clone()).collect();
        let theirs = ask(&mut peer, json!({"do": "context", "cwd": cwd, "agentDir": agent})).expect("pi looks");
        assert_eq!(json!(paths), theirs, "{}", cwd.display());
    }
}

/// P703, P721, P750, P800: the usual places, and lists in both settings files.
#[test]
fn usual_places() {
    let Some(mut peer) = pi() else { return };
    let mut dice = Dice(8);
    let entries = [
        "extra",
        "./extra",
        "!n1",
        "!**/n2/**",
        "-skills/n3",
        "+skills/n1",
        "!*",
        "skills",
        "-skills/n1/SKILL.md",
        "!n2.md",
        "extra/n1",
        "+skills/n2/SKILL.md",
        "!group/**",
    ];
    let templates = ["more", "!p1", "-prompts/p2.md", "+prompts/p1.md", "more/p3.md", "!*", "!p2.md", "./more"];
    for _ in 0..150 {
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path().canonicalize().expect("a folder");
        let (agent, repo) = (root.join("agent"), root.join("repo"));
        let cwd = repo.join(dice.pick(&["", "sub", "sub/deep"]));
        for folder in [&agent, &cwd.join(".pi"), &repo.join(".git")] {
            std::fs::create_dir_all(folder).expect("a folder");
        }
        let places = [
            cwd.join(".pi/skills"),
            cwd.join(".agents/skills"),
            repo.join(".agents/skills"),
            root.join(".agents/skills"),
            agent.join("skills"),
            agent.join("extra"),
            cwd.join(".pi/extra"),
            cwd.join("extra"),
        ];
        for _ in 0..dice.roll(9) {
            let name = *dice.pick(&["n1", "n2", "n3", "n4"]);
            let file = *dice.pick(&["NAME/SKILL.md", "NAME.md", "group/NAME/SKILL.md", "group/NAME.md"]);
            let text = format!("---\nname: {name}\ndescription: d\n---\nB");
            put(&dice.pick(&places).join(file.replace("NAME", name)), &text);
        }
        let places = [cwd.join(".pi/prompts"), agent.join("prompts"), agent.join("more"), cwd.join(".pi/more")];
        for _ in 0..dice.roll(6) {
            put(&dice.pick(&places).join(dice.pick(&["p1.md", "p2.md", "p3.md"])), "x");
        }
        for (at, folder) in [&agent, &cwd.join(".pi")].into_iter().enumerate() {
            for name in ["SYSTEM.md", "APPEND_SYSTEM.md"] {
                if dice.roll(3) == 0 {
                    put(&folder.join(name), &format!("{name} {at}"));
                }
            }
            let mut settings = json!({});
            let mut list = |key: &str, from: &[&'static str]| {
                let entries: Vec<&str> = (0..dice.roll(3)).map(|_| *dice.pick(from)).collect();
                settings[key] = json!(entries);
            };
            list("skills", &entries);
            list("prompts", &templates);
            put(&folder.join("settings.json"), &settings.to_string());
        }
        let trusted = dice.roll(3) > 0;
        let (settings, _) = Settings::load(&agent, &cwd, trusted);
        let mut options = ResourceOptions::default();
        options.discover = if trusted { Discover::Project } else { Discover::User };
        let found = Resources::load(&options, &settings, &agent, &cwd);
        let skills: Vec<Value> = found.skills.iter().map(|it| json!([it.name, it.path])).collect();
        let templates: Vec<Value> = found.prompt_templates.iter().map(|it| json!([it.name, it.path])).collect();
        let behind: Vec<&String> = found.append_system_prompt.iter().collect();
        let ours = json!({"skills": skills, "templates": templates, "prompt": found.system_prompt, "behind": behind});
        let request = json!({"do": "discover", "cwd": cwd, "agentDir": agent, "trusted": trusted});
        let theirs = ask(&mut peer, request).expect("pi looks");
        let read = |folder: &Path| std::fs::read_to_string(folder.join("settings.json")).unwrap_or_default();
        assert_eq!(ours, theirs, "trusted {trusted}, {} {}", read(&agent), read(&cwd.join(".pi")));
    }
}

const PROVIDERS: [&str; 5] = ["alpha", "beta", "router", "Gam", "alp"];

/// An engine that knows only these models, with keys for some providers.
fn engine(models: &[(String, String, String)], usable: &[&str]) -> Engine {
    let keys = usable.iter().fold(KeyOptions::default().environment(false), |keys, name| keys.key(*name, "k"));
    let options =
        EngineOptions::default().worker_threads(1).keys(keys).catalogue(CatalogueOptions::default().builtin(false));
    let engine = Engine::new(options).expect("an engine");
    for (provider, id, name) in models {
        let mut model = Model::new(provider, id, "openai-completions");
        model.name.clone_from(name);
        model.base_url = "https://service.example/v1".to_owned();
        engine.add_model(model).expect("a model");
    }
    engine
}

/// P90, P91.
#[test]
fn models_by_text() {
    let Some(mut peer) = pi() else { return };
    let mut dice = Dice(6);
    let ids = [
        "fast",
        "fast-20260101",
        "fast-20260301",
        "fast-latest",
        "slow",
        "slow:high",
        "alpha/fast",
        "beta/slow",
        "big-2",
        "big-10",
        "Big",
        "x/y/z",
        "fast:free",
        "turbo",
        "turbo-20251111",
        "high",
        "latest",
    ];
    let texts = [
        "fast",
        "FAST",
        "beta/fa",
        "slo",
        "big",
        "2026",
        "high",
        "fast:high",
        "fast:nope",
        "slow:high:low",
        "alpha/fast:low",
        "router/alpha/fast",
        "turbo",
        "one",
        "Fast One",
        "GAM/FAST:off",
        "x/y",
        "x/y/z:minimal",
        " fast ",
        "alp/fa",
        "big-",
    ];
    let patterns = [
        "fast*",
        "alpha/*",
        "*fast*",
        "FAST*",
        "fast*:low",
        "slow",
        "[fb]*",
        "*/fast",
        "fast:free",
        "x/*",
        "nope*",
        "a*/*",
        "gam/*",
    ];
    for _ in 0..150 {
        let mut models: Vec<(String, String, String)> = Vec::new();
        for _ in 0..=dice.roll(7) {
            let (provider, id) = (*dice.pick(&PROVIDERS), *dice.pick(&ids));
            if !models.iter().any(|known| known.0 == provider && known.1 == id) {
                let name = *dice.pick(&["Fast One", "Slow", "Big Model", id]);
                models.push((provider.to_owned(), id.to_owned(), name.to_owned()));
            }
        }
        let usable: Vec<&str> = PROVIDERS.into_iter().filter(|_| dice.roll(2) == 0).collect();
        let ours = engine(&models, &usable);
        let theirs: Vec<Value> = models
            .iter()
            .map(|(provider, id, name)| json!({"provider": provider, "id": id, "name": name, "reasoning": true}))
            .collect();
        for _ in 0..6 {
            let text = if dice.roll(3) == 0 {
                format!("{}/{}", dice.pick(&PROVIDERS), dice.pick(&ids))
            } else {
                (*dice.pick(&texts)).to_owned()
            };
            let request = json!({"do": "model", "models": theirs, "usable": usable, "text": text});
            let wanted = ask(&mut peer, request).expect("pi chooses");
            let found = match ours.find_model(&text) {
                Ok(choice) => json!([choice.model.full_name(), choice.thinking_level]),
                Err(error) if error.message().contains("several providers") => json!("ambiguous"),
                Err(_) => json!("not-found"),
            };
            assert!(found == wanted, "{text:?} in {models:?}, usable {usable:?}\n pi {wanted}\n ours {found}");
        }
        let all = engine(&models, &PROVIDERS);
        let chosen: Vec<&str> = (0..=dice.roll(2)).map(|_| *dice.pick(&patterns)).collect();
        let scope = all.models_in_scope(&chosen).models;
        let found: Vec<Value> = scope.iter().map(|it| json!([it.model.full_name(), it.thinking_level])).collect();
        let request = json!({"do": "scope", "models": theirs, "patterns": chosen});
        let mut wanted = ask(&mut peer, request).expect("pi matches");
        let mut found = json!(found);
        for list in [&mut wanted, &mut found] {
            list.as_array_mut().expect("a list").sort_by_key(Value::to_string);
        }
        assert_eq!(found, wanted, "{chosen:?} in {models:?}");
    }
}

/// P31: each finds what the other stored, and loses nothing when both store at the same time.
#[test]
fn stored_keys() {
    let Some(mut peer) = pi() else { return };
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("agent/auth.json");
    let engine = Engine::new(EngineOptions::default().worker_threads(1).keys(KeyOptions::default().auth_file(&file)));
    let engine = engine.expect("an engine");
    engine.set_key("unused", Some(Key::new("k")));
    std::thread::scope(|scope| {
        let ours = scope.spawn(|| {
            for n in 0..40 {
                block_on(engine.store_key(&format!("ours-{n}"), StoredKey::new(format!("$k{n}"))))
                    .expect("ours stores");
            }
        });
        for n in 0..40 {
            let request = json!({"do": "store", "file": file, "provider": format!("pi-{n}"), "key": "k"});
            ask(&mut peer, request).expect("pi stores");
        }
        ours.join().expect("ours ends");
    });
    assert_eq!(block_on(engine.stored_keys()).expect("ours lists").len(), 80);
    let theirs = ask(&mut peer, json!({"do": "stored", "file": file, "provider": "ours-39"})).expect("pi reads");
    assert_eq!(theirs, json!({"type": "api_key", "key": "$k39"}), "a key as it is, whatever it holds");
}
