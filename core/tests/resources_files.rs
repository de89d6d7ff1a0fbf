//! Context files, skills and prompt templates as they are found on disk (P700–P753, P800).

use std::path::{Path, PathBuf};

use branchline::resources::settings::Settings;
use branchline::resources::skills::{self, SkillSource};
use branchline::resources::templates::{split_arguments, substitute};
use branchline::resources::{ResourceFault, ResourceOptions, Resources, context_files};
use serde_json::json;

fn put(path: impl AsRef<Path>, text: &str) {
    let path = path.as_ref();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn temp() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    (dir, root)
}

fn skill(description: &str) -> String {
    format!("---\ndescription: {description}\n---\nDo it.\n")
}

fn options(json: serde_json::Value) -> ResourceOptions {
    ResourceOptions::from_json(&json.to_string()).unwrap()
}

/// The context files below `root`, as paths relative to it.
fn context(root: &Path, cwd: &Path) -> Vec<String> {
    let (files, _) = context_files::load(Some(&root.join("agent")), cwd);
    files.iter().filter_map(|file| file.path.strip_prefix(root).ok()).map(|path| path.display().to_string()).collect()
}

/// P700: odd files are passed over and the next name has its chance; nothing waits for a pipe.
#[test]
fn p700_only_regular_files_count() {
    let (_dir, root) = temp();
    std::fs::create_dir(root.join("AGENTS.override.md")).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(root.join("AGENTS.md")).status().unwrap().success());
    put(root.join("CLAUDE.md"), "\u{feff}rules");
    assert_eq!(context(&root, &root), ["CLAUDE.md"]);
    let (files, _) = context_files::load(None, &root);
    assert_eq!(files.last().unwrap().content, "rules", "without the byte order mark");
}

/// P701: the same file is there once, also when the working directory is the agent directory.
#[test]
fn p701_each_path_once() {
    let (_dir, root) = temp();
    put(root.join("agent/AGENTS.md"), "a");
    put(root.join("AGENTS.md"), "b");
    assert_eq!(context(&root, &root.join("agent")), ["agent/AGENTS.md", "AGENTS.md"]);
}

/// P702: a worktree inside its repository has its own copy of the root's file.
#[test]
fn p702_a_worktree_replaces_the_file_of_its_repository() {
    let (_dir, root) = temp();
    let tree = root.join("repo/trees/one");
    put(root.join("repo/.git/worktrees/one/commondir"), "../..\n");
    put(tree.join(".git"), "gitdir: ../../.git/worktrees/one\n");
    put(root.join("repo/AGENTS.md"), "main");
    put(root.join("repo/trees/AGENTS.md"), "between");
    assert_eq!(context(&root, &tree), ["repo/AGENTS.md", "repo/trees/AGENTS.md"]);
    put(tree.join("CLAUDE.md"), "another name");
    assert_eq!(context(&root, &tree).len(), 3);
    put(tree.join("AGENTS.md"), "mine");
    assert_eq!(context(&root, &tree.join("src")), ["repo/trees/AGENTS.md", "repo/trees/one/AGENTS.md"]);
}

/// A file that is too long is cut and reported.
#[test]
fn a_huge_context_file_is_cut_and_reported() {
    let (_dir, root) = temp();
    put(root.join("AGENTS.md"), &"é".repeat(200_000));
    let (files, diagnostics) = context_files::load(None, &root);
    let file = files.last().unwrap();
    assert_eq!((file.path.clone(), file.content.len()), (root.join("AGENTS.md"), 128 * 1024));
    assert_eq!(diagnostics.last().unwrap().path, root.join("AGENTS.md"));
}

/// P720: links in circles end, ignore files count, and a directory with SKILL.md is not searched further.
#[test]
fn p720_links_and_ignore_files() {
    let (_dir, root) = temp();
    put(root.join("a/SKILL.md"), &skill("a"));
    put(root.join("b/c/SKILL.md"), &skill("c"));
    put(root.join("b/.ignore"), "drop*\n!dropped-not\n");
    put(root.join("b/dropped/SKILL.md"), &skill("x"));
    put(root.join("b/dropped-not/SKILL.md"), &skill("kept"));
    std::os::unix::fs::symlink(&root, root.join("b/circle")).unwrap();
    let (found, diagnostics) = skills::load(&[SkillSource::new(&root)]);
    let names: Vec<&str> = found.iter().map(|skill| skill.name.as_str()).collect();
    assert_eq!((names, diagnostics.len()), (vec!["a", "c", "dropped-not"], 0));
}

/// P722: YAML that is no scalar where a text is wanted does no harm; long folded descriptions are joined.
#[test]
fn p722_descriptions_of_several_lines() {
    let (_dir, root) = temp();
    put(root.join("a/SKILL.md"), "---\nname: a\ndescription: >\n  one\n  two\n---\n");
    put(root.join("b/SKILL.md"), "---\nname: b\ndescription: [x]\n---\n");
    let (found, diagnostics) = skills::load(&[SkillSource::new(&root)]);
    assert_eq!((found.len(), found[0].description.as_str(), diagnostics.len()), (1, "one two\n", 1));
}

/// P720: below the root of a search a pattern means its own directory; case does not count.
#[test]
fn p720_patterns_are_relative_to_their_directory() {
    let (_dir, root) = temp();
    put(root.join("a/.gitignore"), "SKILL.md\n# x\ndeep/\n");
    put(root.join("a/x/SKILL.md"), &skill("x"));
    put(root.join("a/x/deep/y/SKILL.md"), &skill("not reached"));
    put(root.join("a/deep/SKILL.md"), &skill("left out"));
    put(root.join("b/SKILL.md"), &skill("left out"));
    put(root.join(".ignore"), "B\n!c\n");
    put(root.join("c/SKILL.md"), &skill("c"));
    let (found, _) = skills::load(&[SkillSource::new(&root)]);
    assert_eq!(found.iter().map(|skill| skill.name.as_str()).collect::<Vec<_>>(), ["x", "c"]);
}

/// P722, P723: only texts are names and descriptions; what is wrong with the name of a skill that is not loaded is told, too.
#[test]
fn p723_names_and_descriptions_are_texts() {
    let (_dir, root) = temp();
    put(root.join("number/SKILL.md"), "---\nname: 7\ndescription: d\n---\n");
    put(root.join("empty/SKILL.md"), "---\nname: ''\ndescription: ' lead'\n---\n");
    put(root.join("Both/SKILL.md"), "---\ndescription: 5\n---\n");
    put(root.join("yes/SKILL.md"), "---\ndescription: d\ndisable-model-invocation: yes\n---\n");
    put(root.join("loose.md"), "---\ndescription: true\n---\n");
    let (found, diagnostics) = skills::load(&[SkillSource::new(&root)]);
    let found: Vec<_> = found.iter().map(|it| (it.name.as_str(), it.description.as_str())).collect();
    assert_eq!(found, [("empty", " lead"), ("number", "d"), ("yes", "d")]);
    let both: Vec<_> = diagnostics.iter().map(|it| it.path == root.join("Both/SKILL.md")).collect();
    assert_eq!(both, [true, true], "no description, and a name with a capital: {diagnostics:?}");
}

/// P721, P750: nothing is discovered unless asked; the project's counts before the user's, and what the host names first.
#[test]
fn p721_places_and_their_order() {
    let (_dir, root) = temp();
    let (agent, cwd) = (root.join("agent"), root.join("repo/sub"));
    std::fs::create_dir_all(&cwd).unwrap();
    put(root.join("repo/.git/HEAD"), "");
    put(root.join(".agents/skills/outside/SKILL.md"), &skill("outside of the repository"));
    put(root.join("repo/.agents/skills/plain.md"), &skill("a plain file in the root of .agents does not count"));
    put(root.join("repo/.agents/skills/up/plain.md"), "---\nname: plain\ndescription: below it does\n---\n");
    put(cwd.join(".pi/skills/one/SKILL.md"), &skill("project"));
    put(cwd.join(".pi/SYSTEM.md"), "project prompt");
    put(cwd.join(".pi/prompts/fix.md"), "project $1");
    put(agent.join("skills/one/SKILL.md"), &skill("user"));
    put(agent.join("skills/two/SKILL.md"), &skill("user"));
    put(agent.join("prompts/fix.md"), "user $1");
    put(agent.join("APPEND_SYSTEM.md"), "user addendum");
    put(root.join("mine/two/SKILL.md"), &skill("named by the host"));

    let load = |json| Resources::load(&options(json), &Settings::default(), &agent, &cwd);
    let inside = |resources: &Resources| -> Vec<String> {
        let ours = resources.skills.iter().filter(|skill| skill.path.starts_with(&root));
        ours.map(|skill| format!("{}: {}", skill.name, skill.description)).collect()
    };
    let nothing = load(json!({}));
    assert!(nothing.skills.is_empty() && nothing.prompt_templates.is_empty() && nothing.diagnostics.is_empty());

    let user = load(json!({"discover": "user"}));
    assert_eq!(inside(&user), ["one: user", "two: user"]);
    assert_eq!((user.system_prompt.as_deref(), user.append_system_prompt.as_deref()), (None, Some("user addendum")));
    assert_eq!(user.expand("/fix a b").unwrap(), "user a");

    let project = load(json!({"discover": "project", "skills": ["../../mine"]}));
    assert_eq!(inside(&project), ["two: named by the host", "one: project", "plain: below it does"]);
    assert_eq!(project.system_prompt.as_deref(), Some("project prompt"));
    assert_eq!(project.expand("/fix a b").unwrap(), "project a");
    let collisions =
        project.diagnostics.iter().filter(|it| it.fault == ResourceFault::Collision && it.path.starts_with(&root));
    assert_eq!(collisions.count(), 3);
}

/// P721, P800: lists in the settings add places and leave things out.
#[test]
fn p721_settings_lists() {
    let (_dir, root) = temp();
    let (agent, cwd) = (root.join("agent"), root.join("project"));
    std::fs::create_dir_all(&cwd).unwrap();
    for name in ["one", "two", "three"] {
        put(agent.join(format!("skills/{name}/SKILL.md")), &skill(name));
    }
    put(agent.join("more/four/SKILL.md"), &skill("four"));
    put(agent.join("prompts/a.md"), "a");
    put(agent.join("prompts/b.md"), "b");
    let names = |skills: serde_json::Value| -> Vec<String> {
        let settings =
            Settings::from_values(json!({"skills": skills, "prompts": ["!b.md"]}).as_object().unwrap().clone());
        let found = Resources::load(&options(json!({"discover": "user"})), &settings, &agent, &cwd);
        assert_eq!(found.prompt_templates.len(), 1);
        let ours = found.skills.into_iter().filter(|skill| skill.path.starts_with(&root));
        ours.map(|skill| skill.name).collect()
    };
    assert_eq!(names(json!(["more"])), ["four", "one", "three", "two"]);
    assert_eq!(names(json!(["!t*"])), ["one"]);
    assert_eq!(names(json!(["!t*", "+skills/two", "-skills/one"])), ["two"]);
}

/// P800: lists of places are combined, the project's first; other lists replace.
#[test]
fn p800_resource_lists_are_combined() {
    let mut settings = Settings::default();
    settings.merge(json!({"skills": ["a"], "enabledModels": ["x"]}).as_object().unwrap().clone());
    settings.merge(json!({"skills": ["b"], "enabledModels": ["y"]}).as_object().unwrap().clone());
    assert_eq!(settings.values().get("skills"), Some(&json!(["b", "a"])));
    assert_eq!(settings.values().get("enabledModels"), Some(&json!(["y"])));
}

/// P721: what a settings file says of places holds for its own side, and what it leaves out hides nothing behind it.
#[test]
fn p721_lists_hold_for_their_own_side() {
    let (_dir, root) = temp();
    let (agent, cwd) = (root.join("agent"), root.join("project"));
    put(agent.join("skills/one/SKILL.md"), &skill("user's"));
    put(agent.join("extra/two/SKILL.md"), &skill("user's"));
    put(cwd.join(".pi/skills/one/SKILL.md"), &skill("project's"));
    put(cwd.join(".pi/extra/two/SKILL.md"), &skill("project's"));
    put(cwd.join(".agents/skills/three/SKILL.md"), &skill("project's"));
    put(agent.join("prompts/a.md"), "user's");
    put(cwd.join(".pi/prompts/a.md"), "project's");
    let found = |user: serde_json::Value, project: serde_json::Value| {
        put(agent.join("settings.json"), &user.to_string());
        put(cwd.join(".pi/settings.json"), &project.to_string());
        let (settings, problems) = Settings::load(&agent, &cwd, true);
        assert!(problems.is_empty());
        let found = Resources::load(&options(json!({"discover": "project"})), &settings, &agent, &cwd);
        let skills = found.skills.iter().filter(|skill| skill.path.starts_with(&root));
        let skills: Vec<String> = skills.map(|it| format!("{} {}", it.description, it.name)).collect();
        (skills, found.prompt_templates.into_iter().map(|it| it.content).collect::<Vec<_>>())
    };
    let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let plain = found(json!({}), json!({}));
    assert_eq!(plain, (texts(&["project's one", "project's three"]), texts(&["project's"])));
    let hidden = found(json!({}), json!({"skills": ["!one", "-skills/three"], "prompts": ["!a.md"]}));
    assert_eq!(hidden, (texts(&["user's one"]), texts(&["user's"])), "the user's are not meant");
    let extra = found(json!({"skills": ["extra", "!one"]}), json!({}));
    assert_eq!(extra.0, ["project's one", "project's three", "user's two"]);
    let extra = found(json!({"skills": ["!*"]}), json!({"skills": ["extra", "!*", "+skills/one"]}));
    assert_eq!(extra.0, ["project's one"], "the project's `extra` is the project's, and left out");
}

/// P726: the file is read when the skill is called, frontmatter left out, paths told.
#[test]
fn p726_calling_a_skill() {
    let (_dir, root) = temp();
    put(root.join("s/deploy/SKILL.md"), "---\ndescription: d\n---\n\nRun it.\n");
    put(root.join("p/skill:deploy.md"), "a template of that name loses");
    let load = |settings: serde_json::Value| {
        let settings = Settings::from_values(settings.as_object().unwrap().clone());
        Resources::load(&options(json!({"skills": ["s"], "promptTemplates": ["p"]})), &settings, &root, &root)
    };
    let resources = load(json!({}));
    let text = resources.expand("/skill:deploy to  prod").unwrap().into_owned();
    let file = root.join("s/deploy/SKILL.md");
    assert!(text.starts_with(&format!("<skill name=\"deploy\" location=\"{}\">\n", file.display())), "{text}");
    assert!(
        text.contains(&format!("relative to {}.\n\nRun it.\n</skill>\n\nto  prod", root.join("s/deploy").display())),
        "{text}"
    );
    assert!(resources.expand("/skill:deploy").unwrap().ends_with("</skill>"));
    assert_eq!(resources.expand("/skill:other x").unwrap(), "/skill:other x");
    assert_eq!(
        load(json!({"enableSkillCommands": false})).expand("/skill:deploy").unwrap(),
        "a template of that name loses"
    );
    std::fs::remove_file(&file).unwrap();
    assert_eq!(resources.expand("/skill:deploy").unwrap_err().code(), branchline::ErrorCode::StorageFailed);
}

/// P750: descriptions of templates.
#[test]
fn p750_descriptions() {
    let (_dir, root) = temp();
    put(root.join("a.md"), &format!("\n\n{}\nmore", "é".repeat(70)));
    put(root.join("b.md"), "---\ndescription: what\nargument-hint: <file>\n---\n\nBody\n");
    put(root.join("sub/c.md"), "not looked for");
    put(root.join("d.md"), "---\nx: [\n---\n");
    let found = Resources::load(&options(json!({"promptTemplates": ["."]})), &Settings::default(), &root, &root);
    let shown: Vec<_> = found.prompt_templates.iter().map(|it| (it.name.as_str(), it.description.as_str())).collect();
    assert_eq!(shown, [("a", format!("{}...", "é".repeat(60)).as_str()), ("b", "what")]);
    let second = &found.prompt_templates[1];
    assert_eq!((second.argument_hint.as_deref(), second.content.as_str()), (Some("<file>"), "Body"));
    assert_eq!(found.diagnostics.len(), 1);
}

/// P750: only texts describe, sixty characters as JavaScript counts them.
#[test]
fn p750_odd_descriptions() {
    let template = |text: &str| branchline::resources::templates::PromptTemplate::new("x", text).unwrap();
    let odd = template("---\ndescription: 5\nargument-hint: [file]\n---\n\u{a0}\nBody");
    assert_eq!((odd.description.as_str(), odd.argument_hint), ("Body", None));
    assert_eq!(template(&"😀".repeat(40)).description, "😀".repeat(30) + "...");
    assert_eq!(template(&"x".repeat(60)).description, "x".repeat(60));
    assert_eq!(template("---\ndescription: |\n  one\n  two\n---\nB").description, "one\ntwo\n");
}

/// P751, P752: blank is what JavaScript has for it.
#[test]
fn p752_blanks() {
    assert_eq!(
        split_arguments("a\u{a0}b\u{feff}\u{3000}c\u{2028}d\u{85}e\u{200b}"),
        ["a", "b", "c", "d\u{85}e\u{200b}"]
    );
    assert_eq!(split_arguments("\"a\u{feff}b\"c\u{feff}"), ["a\u{feff}bc"]);
    let fix = branchline::resources::templates::PromptTemplate::new("fix", "[$1|$@]").unwrap();
    let expand = |text: &str| branchline::resources::templates::expand(text, std::slice::from_ref(&fix)).into_owned();
    assert_eq!(expand("/fix\u{feff}a"), "[a|a]");
    assert_eq!(expand("/fix\u{85}a"), "/fix\u{85}a");
}

/// P752, P753: hostile texts cost what they are long.
#[test]
fn p753_hostile_texts_are_linear() {
    let open = "${1:-".repeat(200_000);
    assert_eq!(substitute(&open, &[]), open);
    let quotes = "\"a ".repeat(200_001);
    assert!(split_arguments(&quotes).len() > 100_000);
    let almost = "${@:1".repeat(200_000) + "}";
    assert!(substitute(&almost, &["x".to_owned()]).ends_with('x'));
    assert_eq!(substitute("$99999999999999999999999 ${@:99999999999999999999999}", &["x".to_owned()]), " ");
}
