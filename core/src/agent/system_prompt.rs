//! The system prompt, in named sections (S300).

use std::path::PathBuf;

use super::toolset::Toolset;

const PREAMBLE: &str = "You are a coding agent inside a program that a person is using. You work in that person's \
project: you look at files, run commands and change code with the tools you are given, and you answer in plain words.";

const RULES: [&str; 4] = [
    "Look before you change: read the code a change touches.",
    "Do what was asked, completely and nothing beside it.",
    "Name files by their paths.",
    "Be brief. Say what you did and what is left.",
];

/// What the prompt is made of, apart from the tools.
pub(crate) struct SystemPrompt {
    /// The host's own prompt, replacing preamble, tools and rules.
    custom: Option<String>,
    cwd: PathBuf,
}

impl SystemPrompt {
    pub(crate) fn new(custom: Option<String>, cwd: PathBuf) -> SystemPrompt {
        SystemPrompt { custom, cwd }
    }

    /// The wanted sections, in order: name and text. All but the preamble stand in a tag of their name.
    pub(crate) fn sections(&self, tools: &Toolset) -> Vec<(String, String)> {
        let mut sections = Vec::new();
        let mut put = |name: &str, text: String| {
            if !text.is_empty() {
                sections.push((name.to_owned(), text));
            }
        };
        match &self.custom {
            Some(custom) => put("preamble", custom.clone()),
            None => {
                put("preamble", PREAMBLE.to_owned());
                put("tools", tagged("tools", &tool_lines(tools)));
                put("rules", tagged("rules", &rule_lines(tools)));
            }
        }
        put("cwd", tagged("cwd", &self.cwd.display().to_string()));
        sections
    }
}

fn tagged(tag: &str, text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("<{tag}>\n{text}\n</{tag}>") }
}

fn tool_lines(tools: &Toolset) -> String {
    let lines = tools.active().iter().filter_map(|tool| {
        let definition = tool.definition();
        definition.snippet.as_ref().map(|snippet| format!("- {}: {snippet}", definition.name))
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn rule_lines(tools: &Toolset) -> String {
    let mut lines: Vec<String> = RULES.iter().map(|rule| format!("- {rule}")).collect();
    for guideline in tools.active().iter().flat_map(|tool| &tool.definition().guidelines) {
        let line = format!("- {guideline}");
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines.join("\n")
}
