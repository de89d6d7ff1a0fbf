//! Units of the provider corpus about what a session knows of its project: context files, frontmatter, skills, prompt
//! templates, sections of the prompt, configuration values. Other units of that corpus are another module's.

use std::path::Path;
use std::sync::Arc;

use branchline::providers::credentials::{Environment, config_value};
use branchline::resources::skills::{self, SkillSource};
use branchline::resources::system_prompt::SystemPrompt;
use branchline::resources::templates::{self, PromptTemplate};
use branchline::resources::{ResourceOptions, Resources, Section, context_files, frontmatter};
use branchline::tools::ToolDefinition;
use serde_json::{Value, json};

use crate::compare::Mismatch;
use crate::report::{Outcome, Report, problem};

/// A unit file.
#[derive(Debug, Clone)]
pub struct Case {
    /// Its id.
    pub id: String,
    /// The whole file.
    pub value: Value,
}

const IDS: [&str; 8] = [
    "command-args",
    "config-values",
    "context-files",
    "expand-template",
    "frontmatter",
    "prompt-sections",
    "skills",
    "substitute",
];

/// The unit files in a folder, and in its folder `units`, that this module knows.
pub fn find(folder: &Path) -> Vec<Case> {
    let mut cases = Vec::new();
    for folder in [folder.to_path_buf(), folder.join("units")] {
        for id in IDS {
            let Ok(text) = std::fs::read(folder.join(format!("{id}.json"))) else { continue };
            let Ok(value) = serde_json::from_slice::<Value>(&text) else { continue };
            if value["id"] == id && value["items"].is_array() {
                cases.push(Case { id: id.to_owned(), value });
            }
        }
    }
    cases
}

/// Runs one file as one case.
pub fn run(case: &Case, report: &mut Report) {
    let run =
        std::panic::AssertUnwindSafe(|| check(&case.id, case.value["items"].as_array().map_or(&[][..], Vec::as_slice)));
    let mismatches = std::panic::catch_unwind(run).unwrap_or_else(|_| vec![problem("", "an ordinary end", "a panic")]);
    let outcome = if mismatches.is_empty() { Outcome::Same } else { Outcome::Failed(mismatches) };
    report.add(&case.id, case.value["title"].as_str().unwrap_or_default(), outcome);
}

fn check(id: &str, items: &[Value]) -> Vec<Mismatch> {
    let mut mismatches = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let wanted = if item["error"].is_string() { json!("an error") } else { item["out"].clone() };
        let got = perform(id, item);
        let (wanted, got) = (in_order(wanted), in_order(got));
        if !equal(&wanted, &got) {
            mismatches.push(problem(&format!("[{at}] {}", item["in"]), &wanted.to_string(), got.to_string()));
        }
    }
    mismatches
}

/// Diagnostics in the order of files: in which order they are told is nobody's business.
fn in_order(mut value: Value) -> Value {
    if let Some(list) = value.get_mut("diagnostics").and_then(Value::as_array_mut) {
        list.sort_by_key(|diagnostic| (diagnostic["file"].to_string(), diagnostic["type"].to_string()));
    }
    value
}

/// Equal, numbers by value.
fn equal(wanted: &Value, got: &Value) -> bool {
    match (wanted, got) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| equal(a, b)))
        }
        (a, b) => a == b,
    }
}

fn perform(id: &str, item: &Value) -> Value {
    let input = &item["in"];
    let text = input.as_str().unwrap_or_default();
    match id {
        "command-args" => json!(templates::split_arguments(text)),
        "substitute" => json!(templates::substitute(input[0].as_str().unwrap_or_default(), &texts(&input[1]))),
        "expand-template" => {
            let template = PromptTemplate::new("fix", "[$1|$@]").expect("a template");
            json!(templates::expand(text, &[template]))
        }
        "frontmatter" => match frontmatter::parse(text) {
            Ok(document) => {
                let whole = if document.other.is_null() { json!(document.fields) } else { document.other };
                json!({"frontmatter": whole, "body": document.body})
            }
            Err(_) => json!("an error"),
        },
        "config-values" => {
            let environment = Environment::fixed([("A", "1"), ("EMPTY", "")]);
            json!(config_value(text, &environment, true).ok())
        }
        "prompt-sections" => json!(sections(text)),
        "context-files" => found_context_files(item),
        "skills" => found_skills(item),
        _ => Value::Null,
    }
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn sections(case: &str) -> Vec<String> {
    let mut options = ResourceOptions::default();
    let mut custom = None;
    let mut names = vec!["read", "bash", "edit", "write"];
    let dir = tempfile::tempdir().expect("a directory");
    let mut hidden = "";
    let everything = |options: &mut ResourceOptions| {
        options.append_system_prompt = Some("more".to_owned());
        options.extra_context = vec![context_files::ContextFile::new("/p/AGENTS.md", "text")];
        options.skills = vec![dir.path().to_path_buf()];
    };
    match case {
        "custom prompt" => custom = Some("mine".to_owned()),
        "all" => {
            everything(&mut options);
            options.sections = vec![Section { name: "extra".to_owned(), text: "x".to_owned() }];
        }
        "skills without read or bash" => {
            options.skills = vec![dir.path().to_path_buf()];
            names = vec!["edit"];
        }
        "skills all hidden from model" => {
            options.skills = vec![dir.path().to_path_buf()];
            hidden = "disable-model-invocation: true\n";
        }
        "custom section replaces docs" => {
            options.sections = vec![Section { name: "docs".to_owned(), text: "ours".to_owned() }];
        }
        "custom prompt + everything" => {
            custom = Some("mine".to_owned());
            everything(&mut options);
        }
        _ => {}
    }
    put(&dir.path().join("s/SKILL.md"), &format!("---\ndescription: d\n{hidden}---\nbody"));
    let resources = Resources::load(&options, &Default::default(), Path::new("/nowhere"), dir.path());
    let prompt = SystemPrompt { custom, resources: Arc::new(resources), cwd: dir.path().to_path_buf() };
    let tools: Vec<ToolDefinition> = names.iter().map(|name| ToolDefinition::new(*name, "", json!({}))).collect();
    let tools: Vec<&ToolDefinition> = tools.iter().collect();
    prompt.sections(&tools).into_iter().map(|(name, _)| name).collect()
}

fn put(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
    std::fs::write(path, text).expect("a file");
}

/// A path below `root` as the corpus writes it.
fn shown(path: &Path, root: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

fn found_context_files(item: &Value) -> Value {
    let dir = tempfile::tempdir().expect("a directory");
    let root = dir.path().canonicalize().expect("a directory");
    for file in texts(&item["files"]) {
        match file.strip_suffix("/ (a directory)") {
            Some(path) => std::fs::create_dir_all(root.join(path)).expect("a directory"),
            None => put(&root.join(&file), &file),
        }
    }
    let cwd = root.join(item["cwd"].as_str().unwrap_or_default());
    std::fs::create_dir_all(&cwd).expect("a directory");
    let (files, _) = context_files::load(Some(&root.join("agent")), &cwd);
    json!(files.iter().map(|file| shown(&file.path, &root)).collect::<Vec<_>>())
}

fn found_skills(item: &Value) -> Value {
    let dir = tempfile::tempdir().expect("a directory");
    let root = dir.path().canonicalize().expect("a directory");
    for (path, text) in item["files"].as_object().into_iter().flatten() {
        put(&root.join(path), text.as_str().unwrap_or_default());
    }
    for (path, target) in item["symlinks"].as_object().into_iter().flatten() {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::os::unix::fs::symlink(target.as_str().unwrap_or_default(), path).expect("a link");
    }
    let sources: Vec<SkillSource> = [root.clone(), root.join("missing")].into_iter().map(SkillSource::new).collect();
    let (skills, diagnostics) = skills::load(&sources);
    let skills: Vec<Value> = skills
        .iter()
        .map(|skill| {
            json!({"name": skill.name, "description": skill.description, "file": shown(&skill.path, &root),
                "disableModelInvocation": skill.disable_model_invocation})
        })
        .collect();
    let diagnostics: Vec<Value> = diagnostics
        .iter()
        .map(|diagnostic| json!({"type": diagnostic.fault, "file": shown(&diagnostic.path, &root)}))
        .collect();
    json!({"skills": skills, "diagnostics": diagnostics})
}
