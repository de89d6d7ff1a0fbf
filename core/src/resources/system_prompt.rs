//! The system prompt, in named sections (S300, P770–P776).
//!
//! The words are ours; names, order and conditions are the format's. It is sent with every request, so each line has to
//! earn its place: what a model does by itself is not said. Nothing in it changes with time, so that prompt caches hold.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use super::load::Resources;
use crate::tools::ToolDefinition;

const PREAMBLE: &str = "\
You are a coding agent. You work inside a program that a person is using, on that person's project: you look at files, run \
commands and change code with the tools you are given.

How to work:
- Look before you change. Read the code that a change touches, and follow the conventions you find there.
- Do what was asked, all of it, and nothing beside it. If you see something else that is wrong, say so and leave it.
- Check what you did: run the tests or the build that cover it and read their output. Say that something works only if you \
have seen it work, and say plainly what you could not check.
- When something fails, find out why before you try again. Do not weaken a test, hide an error or skip a check to get past it.
- Changes in the working tree that are not yours belong to the person. Commit, push, delete or reach outside of the project \
only when asked to.
- If a request can be read in several ways and a wrong guess would cost much, ask. Otherwise decide, and say what you decided.";

/// The rules that end the list (P773).
const LAST_RULES: [&str; 2] = [
    "Be brief: say what you did and what is left, without repeating what can be seen in the files.",
    "Name files by their paths, with the line where that helps.",
];

const SHELL_RULE: &str = "Use the shell to list and search files.";

/// What the prompt is made of, apart from the tools.
#[derive(Debug, Clone, Default)]
pub struct SystemPrompt {
    /// The host's own prompt, in the place of preamble, tools, rules and docs (P772).
    pub custom: Option<String>,
    /// What the session knows.
    pub resources: Arc<Resources>,
    /// The working directory.
    pub cwd: PathBuf,
}

impl SystemPrompt {
    /// The wanted sections, in order: name and text. All but the preamble stand in a tag of their name.
    ///
    /// `tools` are the active ones, in their order.
    pub fn sections(&self, tools: &[&ToolDefinition]) -> Vec<(String, String)> {
        let resources = &*self.resources;
        let mut sections = Vec::new();
        match self.custom.as_ref().or(resources.system_prompt.as_ref()) {
            Some(custom) if custom.is_empty() => {}
            Some(custom) => sections.push(("preamble".to_owned(), custom.clone())),
            None => {
                sections.push(("preamble".to_owned(), PREAMBLE.to_owned()));
                put(&mut sections, "tools", &tool_lines(tools));
                put(&mut sections, "rules", &rule_lines(tools, &resources.guidelines));
                put(&mut sections, "docs", &docs(resources.documentation.as_deref()));
            }
        }
        put(&mut sections, "addendum", resources.append_system_prompt.as_deref().unwrap_or_default());
        put(&mut sections, "project_context", &project_context(resources));
        if tools.iter().any(|tool| tool.name == "read" || tool.name == "bash") {
            put(&mut sections, "skills", &skills(resources));
        }
        put(&mut sections, "cwd", &self.cwd.display().to_string().replace('\\', "/"));
        for section in &resources.sections {
            put(&mut sections, &section.name, &section.text);
        }
        sections
    }
}

/// Adds a section, or replaces the one of that name; an empty one is none (P771).
fn put(sections: &mut Vec<(String, String)>, name: &str, text: &str) {
    let tagged = format!("<{name}>\n{text}\n</{name}>");
    match sections.iter().position(|(known, _)| known == name) {
        Some(at) if text.is_empty() => drop(sections.remove(at)),
        Some(at) => sections[at].1 = tagged,
        None if text.is_empty() => {}
        None => sections.push((name.to_owned(), tagged)),
    }
}

fn tool_lines(tools: &[&ToolDefinition]) -> String {
    let line = |tool: &&ToolDefinition| tool.snippet.as_ref().map(|snippet| format!("- {}: {snippet}", tool.name));
    let mut lines: Vec<String> = tools.iter().filter_map(line).collect();
    if lines.is_empty() {
        lines.push("- (none)".to_owned());
    }
    lines.push("There may be more tools than these; their declarations say what they do.".to_owned());
    lines.join("\n")
}

fn rule_lines(tools: &[&ToolDefinition], guidelines: &[String]) -> String {
    let active = |names: &[&str]| tools.iter().any(|tool| names.contains(&tool.name.as_str()));
    let shell_only = active(&["bash", "powershell"]) && !active(&["grep", "find", "ls"]);
    let first = shell_only.then_some(SHELL_RULE);
    let theirs = tools.iter().flat_map(|tool| &tool.guidelines).chain(guidelines).map(String::as_str);
    let mut lines: Vec<&str> = Vec::new();
    for rule in first.into_iter().chain(theirs).chain(LAST_RULES) {
        let rule = rule.trim();
        if !rule.is_empty() && !lines.contains(&rule) {
            lines.push(rule);
        }
    }
    lines.iter().map(|rule| format!("- {rule}")).collect::<Vec<_>>().join("\n")
}

fn docs(documentation: Option<&str>) -> String {
    match documentation.map(str::trim).filter(|place| !place.is_empty()) {
        Some(place) => format!(
            "The documentation of the program you work in: {place}\nRead it only when you are asked about that program."
        ),
        None => "You are not told how the program you work in is used. If you are asked about it, say so instead of guessing."
            .to_owned(),
    }
}

fn project_context(resources: &Resources) -> String {
    if resources.context_files.is_empty() {
        return String::new();
    }
    let intro = "What this project and its people ask of you, from the most general to the nearest. Where two differ, the \
                 later one counts.";
    let mut parts = vec![intro.to_owned()];
    parts.extend(resources.context_files.iter().map(|file| {
        let path = file.path.display().to_string();
        format!(
            "<project_instructions path=\"{}\">\n{}\n</project_instructions>",
            escaped(&path),
            file.content.trim_end()
        )
    }));
    parts.join("\n\n")
}

fn skills(resources: &Resources) -> String {
    let mut visible = resources.skills.iter().filter(|skill| !skill.disable_model_invocation).peekable();
    if visible.peek().is_none() {
        return String::new();
    }
    let mut lines = vec![
        "Skills are instructions for one kind of work. When what you are asked fits a description below, read that skill's \
         file first and follow it. Paths in a skill are relative to the directory its file is in."
            .to_owned(),
        "<available_skills>".to_owned(),
    ];
    for skill in visible {
        lines.push("<skill>".to_owned());
        lines.push(format!("<name>{}</name>", escaped(&skill.name)));
        lines.push(format!("<description>{}</description>", escaped(skill.description.trim())));
        lines.push(format!("<location>{}</location>", escaped(&skill.path.display().to_string())));
        lines.push("</skill>".to_owned());
    }
    lines.push("</available_skills>".to_owned());
    lines.join("\n")
}

fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(['&', '<', '>', '"', '\'']) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            c => out.push(c),
        }
    }
    out.into()
}
