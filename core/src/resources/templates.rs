//! Prompt templates: `/name arguments` becomes a longer text (P750–P753).

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::diagnostic::ResourceDiagnostic;
use super::{frontmatter, read};
use crate::blank::{self, is_blank_or_break as is_blank};

/// Most bytes of a template's file that are read.
const FILE_LIMIT: usize = 1024 * 1024;
/// Characters of a description that is taken from the text, in UTF-16.
const DESCRIPTION_LENGTH: usize = 60;

/// One template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PromptTemplate {
    /// What stands behind the `/`.
    pub name: String,
    /// What it is for, for people.
    pub description: String,
    /// Which arguments it takes, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argument_hint: Option<String>,
    /// The text with its placeholders.
    pub content: String,
    /// Its file; `None` when the host gave the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
}

impl PromptTemplate {
    /// A template of the host's. The text may have frontmatter.
    ///
    /// Errors: what is wrong with the frontmatter.
    pub fn new(name: impl Into<String>, text: &str) -> Result<PromptTemplate, String> {
        let document = frontmatter::parse(text)?;
        let description = document.text("description").filter(|text| !blank::trim(text).is_empty());
        Ok(PromptTemplate {
            name: name.into(),
            description: description.map_or_else(|| first_line(&document.body), str::to_owned),
            argument_hint: document.text("argument-hint").filter(|hint| !hint.is_empty()).map(str::to_owned),
            content: document.body,
            path: None,
        })
    }
}

/// The first line with something in it, shortened (P750).
fn first_line(body: &str) -> String {
    let line = body.lines().find(|line| !blank::trim(line).is_empty()).unwrap_or_default();
    let mut length = 0;
    let beyond = line.char_indices().find(|(_, c)| {
        length += c.len_utf16();
        length > DESCRIPTION_LENGTH
    });
    beyond.map_or_else(|| line.to_owned(), |(end, _)| format!("{}...", &line[..end]))
}

/// A place where templates are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateSource {
    /// A directory, whose `*.md` files count but not those of directories in it; or one file.
    pub path: PathBuf,
    /// It is reported when it does not exist.
    pub required: bool,
}

/// Loads templates. Of equal names the first wins, and the other is reported (P750).
pub fn load(sources: &[TemplateSource]) -> (Vec<PromptTemplate>, Vec<ResourceDiagnostic>) {
    load_some(sources, |_, _| true)
}

/// The same, without files that `keep` does not want: it gets the number of the source, and the file.
pub(super) fn load_some(
    sources: &[TemplateSource],
    keep: impl Fn(usize, &Path) -> bool,
) -> (Vec<PromptTemplate>, Vec<ResourceDiagnostic>) {
    let mut templates: Vec<PromptTemplate> = Vec::new();
    let mut diagnostics = Vec::new();
    for (at, source) in sources.iter().enumerate() {
        let files = match files(&source.path) {
            Ok(files) => files,
            Err(error) => {
                if source.required {
                    let text = format!("cannot look for prompt templates here: {error}");
                    diagnostics.push(ResourceDiagnostic::warning(&source.path, text));
                }
                continue;
            }
        };
        for path in files.into_iter().filter(|path| keep(at, path)) {
            if templates.iter().any(|known| known.path.as_ref() == Some(&path)) {
                continue;
            }
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let text = read::text(&path, FILE_LIMIT).map_err(|error| format!("cannot read it: {error}"));
            let template = match text.and_then(|read| PromptTemplate::new(name, &read.text)) {
                Ok(template) => PromptTemplate { path: Some(path.clone()), ..template },
                Err(problem) => {
                    let text = format!("the prompt template is not loaded: {problem}");
                    diagnostics.push(ResourceDiagnostic::warning(&path, text));
                    continue;
                }
            };
            match templates.iter().find(|known| known.name == template.name) {
                Some(winner) => {
                    let winner = winner.path.as_deref().unwrap_or(Path::new(""));
                    diagnostics.push(ResourceDiagnostic::collision("prompt template", &template.name, winner, &path));
                }
                None => templates.push(template),
            }
        }
    }
    (templates, diagnostics)
}

fn files(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    if !std::fs::metadata(path)?.is_dir() {
        return Ok(vec![path.to_path_buf()]);
    }
    let mut files: Vec<PathBuf> = std::fs::read_dir(path)?.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "md") && path.is_file());
    files.sort();
    Ok(files)
}

/// A text as it is sent: with the template it calls, or itself (P751).
pub fn expand<'a>(text: &'a str, templates: &[PromptTemplate]) -> Cow<'a, str> {
    let Some(rest) = text.strip_prefix('/') else { return text.into() };
    let (name, arguments) = rest.split_once(is_blank).unwrap_or((rest, ""));
    match templates.iter().find(|template| template.name == name) {
        Some(template) => substitute(&template.content, &split_arguments(arguments)).into(),
        None => text.into(),
    }
}

/// Splits arguments at blanks; a quote at the start of one holds it together (P752).
pub fn split_arguments(text: &str) -> Vec<String> {
    let mut arguments = Vec::new();
    let mut rest = text.trim_start_matches(is_blank);
    while !rest.is_empty() {
        let mut argument = String::new();
        let quoted = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
        if let Some((inside, after)) = quoted.and_then(|quote| quoted_part(&rest[1..], quote)) {
            argument = inside;
            rest = after;
        }
        let end = rest.find(is_blank).unwrap_or(rest.len());
        argument.push_str(&rest[..end]);
        arguments.push(argument);
        rest = rest[end..].trim_start_matches(is_blank);
    }
    arguments
}

/// The text up to the closing quote, and what follows. `None` if there is none: then the quote is a letter like others.
fn quoted_part(text: &str, quote: char) -> Option<(String, &str)> {
    let mut inside = String::new();
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' if chars.peek().is_some_and(|(_, next)| *next == quote) => {
                inside.push(quote);
                chars.next();
            }
            c if c == quote => return Some((inside, &text[at + 1..])),
            c => inside.push(c),
        }
    }
    None
}

/// Puts arguments in the place of placeholders, in one pass: what was put in is not looked at again (P753).
pub fn substitute(content: &str, arguments: &[String]) -> String {
    let mut out = String::with_capacity(content.len());
    let mut rest = content;
    // Without this a text of nothing but "${1:-" would be searched for a "}" at every place.
    let last_brace = content.rfind('}').unwrap_or(0);
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let braces = content.len() - rest.len() < last_brace;
        match placeholder(&rest[1..], arguments, braces) {
            Some((value, length)) => {
                out.push_str(&value);
                rest = &rest[1 + length..];
            }
            None => {
                out.push('$');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// What stands behind a `$`: its value and its length. `braces` is false when no `}` follows.
fn placeholder(text: &str, arguments: &[String], braces: bool) -> Option<(String, usize)> {
    let digits = leading_digits(text);
    if !digits.is_empty() {
        return Some((positional(digits, arguments), digits.len()));
    }
    for name in ["@", "ARGUMENTS"] {
        if text.starts_with(name) {
            return Some((arguments.join(" "), name.len()));
        }
    }
    let inside = text.strip_prefix('{').filter(|_| braces)?;
    let (value, rest) = braced(inside, arguments)?;
    Some((value, text.len() - rest.len()))
}

fn leading_digits(text: &str) -> &str {
    &text[..text.bytes().take_while(u8::is_ascii_digit).count()]
}

fn positional(digits: &str, arguments: &[String]) -> String {
    let number: usize = digits.parse().unwrap_or(0); // one that is too large has no argument
    number.checked_sub(1).and_then(|at| arguments.get(at)).cloned().unwrap_or_default()
}

/// `N:-default}`, `@:-default}`, `ARGUMENTS:-default}`, `@:N}` or `@:N:L}`: the value and what follows.
fn braced<'a>(text: &'a str, arguments: &[String]) -> Option<(String, &'a str)> {
    let name = match ["@", "ARGUMENTS"].into_iter().find(|name| text.starts_with(name)) {
        Some(name) => name,
        None => Some(leading_digits(text)).filter(|digits| !digits.is_empty())?,
    };
    let rest = text[name.len()..].strip_prefix(':')?;
    if let Some(rest) = rest.strip_prefix('-') {
        let (default, rest) = rest.split_once('}')?;
        let value = match name {
            "@" | "ARGUMENTS" => arguments.join(" "),
            digits => positional(digits, arguments),
        };
        return Some((if value.is_empty() { default.to_owned() } else { value }, rest));
    }
    if name != "@" {
        return None;
    }
    let number = |digits: &str| digits.parse::<usize>().unwrap_or(usize::MAX);
    let from = Some(leading_digits(rest)).filter(|digits| !digits.is_empty())?;
    let rest = &rest[from.len()..];
    let (length, rest) = match rest.strip_prefix(':') {
        Some(rest) => {
            let digits = Some(leading_digits(rest)).filter(|digits| !digits.is_empty())?;
            (number(digits), &rest[digits.len()..])
        }
        None => (usize::MAX, rest),
    };
    let rest = rest.strip_prefix('}')?;
    let slice = arguments.iter().skip(number(from).saturating_sub(1)).take(length);
    Some((slice.map(String::as_str).collect::<Vec<_>>().join(" "), rest))
}
