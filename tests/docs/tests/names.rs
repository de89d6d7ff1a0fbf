//! What the pages name is there: links, headings, targets of make, source files, functions of the code.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn below(directory: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            below(&path, ending, found);
        } else if path.to_string_lossy().ends_with(ending) {
            found.push(path);
        }
    }
}

/// The pages for people, with their texts.
fn pages() -> Vec<(PathBuf, String)> {
    let root = root();
    let mut found: Vec<PathBuf> =
        ["README.md", "CHANGELOG.md", "bench/README.md", "tests/conformance/README.md", "tests/interop/README.md"]
            .map(|name| root.join(name))
            .into();
    below(&root.join("docs"), ".md", &mut found);
    found.into_iter().map(|path| (path.clone(), fs::read_to_string(path).expect("a page"))).collect()
}

/// The text outside of fenced blocks.
fn prose(text: &str) -> String {
    let mut inside = false;
    let kept = text.lines().filter(|line| {
        let fence = line.starts_with("```");
        inside ^= fence;
        !fence && !inside
    });
    kept.collect::<Vec<_>>().join("\n")
}

fn anchors(text: &str) -> HashSet<String> {
    let headings = prose(text);
    let headings =
        headings.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let letters =
        |text: &str| text.to_lowercase().chars().filter(|c| c.is_alphanumeric() || "- _".contains(*c)).collect();
    headings.map(letters).map(|text: String| text.replace(' ', "-")).collect()
}

fn texts(pattern: &str, text: &str) -> Vec<String> {
    let pattern = Regex::new(pattern).expect("a pattern");
    pattern.captures_iter(text).map(|found| found[1].to_owned()).collect()
}

fn none(faults: Vec<String>) {
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn links_lead_somewhere() {
    let mut faults = Vec::new();
    for (page, text) in pages() {
        for link in texts(r"\]\(([^)\s]+)\)", &prose(&text)) {
            if link.starts_with("http") {
                continue;
            }
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = if path.is_empty() { page.clone() } else { page.parent().expect("a parent").join(path) };
            let there = target.exists()
                && (anchor.is_empty() || anchors(&fs::read_to_string(&target).expect("text")).contains(anchor));
            if !there {
                faults.push(format!("{}: {link}", page.display()));
            }
        }
    }
    none(faults);
}

#[test]
fn targets_of_make_exist() {
    let makefile = fs::read_to_string(root().join("Makefile")).expect("the Makefile");
    let targets: HashSet<String> = texts(r"(?m)^([a-z][a-z-]*):", &makefile).into_iter().collect();
    let said = texts(r"(?m)^#   make ([a-z-]+)", &makefile);
    assert!(said.len() > 10, "make help");
    let mut faults: Vec<String> =
        said.into_iter().filter(|name| !targets.contains(name)).map(|name| format!("Makefile: {name}")).collect();
    for (page, text) in pages() {
        for name in texts(r"(?m)(?:`|^ +|^)make ([a-z]+(?:-[a-z]+)*)", &text) {
            if !targets.contains(&name) {
                faults.push(format!("{}: make {name}", page.display()));
            }
        }
    }
    none(faults);
}

#[test]
fn source_files_exist() {
    let root = root();
    let mut sources = Vec::new();
    for directory in ["core", "ffi", "bindings", "tests", "bench", "tools", "examples", "fuzz"] {
        for ending in [".rs", ".py", ".mjs", ".sh", ".c", ".cpp"] {
            below_sources(&root.join(directory), ending, &mut sources);
        }
    }
    let mut faults = Vec::new();
    for (page, text) in pages() {
        for name in texts(r"`([a-z_0-9/]+\.(?:rs|py|mjs|sh|cpp))`", &prose(&text)) {
            let ending = format!("/{name}");
            if !sources.iter().any(|path| path.ends_with(&ending)) {
                faults.push(format!("{}: {name}", page.display()));
            }
        }
    }
    none(faults);
}

/// As `below`, as texts, without what builds and installations left.
fn below_sources(directory: &Path, ending: &str, found: &mut Vec<String>) {
    let mut all = Vec::new();
    if directory.exists() {
        for entry in fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() && !["node_modules", "target", "data", "results"].contains(&&*name) {
                below_sources(&path, ending, found);
            } else if name.ends_with(ending) {
                all.push(path.to_string_lossy().into_owned());
            }
        }
    }
    found.extend(all);
}

/// `tree::open::load` is something called `load` in core/src/tree/open.rs, or below core/src/tree/open.
#[test]
fn functions_and_types_exist() {
    let core = root().join("core/src");
    let mut files = Vec::new();
    below(&core, ".rs", &mut files);
    let sources: Vec<(String, String)> = files
        .iter()
        .map(|path| {
            let module = path.strip_prefix(&core).expect("below core").with_extension("");
            let module = module.to_string_lossy().replace('/', "::");
            let module = module.strip_suffix("::mod").unwrap_or(&module).to_owned();
            (module, fs::read_to_string(path).expect("a source"))
        })
        .collect();
    let tops: HashSet<&str> = sources.iter().map(|(module, _)| module.split("::").next().unwrap_or_default()).collect();
    let mut faults = Vec::new();
    for (page, text) in pages() {
        for name in texts(r"`([A-Za-z_]+(?:::[A-Za-z_]+)+)(?:\([^`)]*\))?`", &prose(&text)) {
            let parts: Vec<&str> = name.split("::").filter(|part| *part != "branchline").collect();
            let modules = parts.iter().take_while(|part| part.chars().all(|c| c.is_lowercase() || c == '_')).count();
            if modules > 0 && !tops.contains(parts[0]) {
                continue; // another crate's, or of the standard library
            }
            // The longest beginning that is a module; what follows must be in it.
            let known = (0..=modules).rev().find(|count| {
                let module = parts[..*count].join("::");
                *count == 0 || sources.iter().any(|(known, _)| *known == module)
            });
            let module = parts[..known.unwrap_or(0)].join("::");
            let inside =
                |known: &str| module.is_empty() || known == module || known.starts_with(&format!("{module}::"));
            let there = parts[known.unwrap_or(0)..].iter().all(|part| {
                let word = Regex::new(&format!(
                    r"(?:fn|struct|enum|trait|const|static|type|mod) {part}\b|\b{part}(?:: |,| \{{|\()"
                ));
                let word = word.expect("a pattern");
                sources.iter().any(|(known, text)| inside(known) && word.is_match(text))
            });
            if !there {
                faults.push(format!("{}: {name}", page.display()));
            }
        }
    }
    none(faults);
}
