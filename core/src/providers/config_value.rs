//! Values of configuration files: texts with environment variables in them, or the output of a command (P34, P35).

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::system::process::{self, End};
use crate::system::spawn::Program;

/// How long a command may take.
const COMMAND_LIMIT: Duration = Duration::from_secs(10);
/// Most bytes of its output.
const OUTPUT_LIMIT: usize = 64 * 1024;

/// Where variables are looked up. Its `Debug` form shows no values.
#[derive(Clone, Default)]
pub struct Environment {
    /// Looked at first.
    own: Arc<BTreeMap<String, String>>,
    /// And then this process's.
    process: bool,
}

impl Environment {
    /// This process's.
    pub fn process() -> Environment {
        Environment { own: Arc::default(), process: true }
    }

    /// These variables and no others.
    pub fn fixed<N: Into<String>, V: Into<String>>(variables: impl IntoIterator<Item = (N, V)>) -> Environment {
        let own = variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Environment { own: Arc::new(own), process: false }
    }

    /// The same with further variables in front.
    pub fn with<N: Into<String>, V: Into<String>>(&self, variables: impl IntoIterator<Item = (N, V)>) -> Environment {
        let mut own = BTreeMap::clone(&self.own);
        own.extend(variables.into_iter().map(|(name, value)| (name.into(), value.into())));
        Environment { own: Arc::new(own), process: self.process }
    }

    /// A variable; a blank one counts as unset (P33).
    pub fn get(&self, name: &str) -> Option<String> {
        let value = self.own.get(name).cloned();
        let value = value.or_else(|| std::env::var(name).ok().filter(|_| self.process));
        value.filter(|value| !value.trim().is_empty())
    }

    /// The whole environment of a command.
    fn for_command(&self) -> Vec<(OsString, OsString)> {
        let mut all: BTreeMap<OsString, OsString> =
            if self.process { std::env::vars_os().collect() } else { BTreeMap::new() };
        all.extend(self.own.iter().map(|(name, value)| (name.into(), value.into())));
        all.into_iter().collect()
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment").field("names", &self.own.keys()).field("process", &self.process).finish()
    }
}

/// Why a value is not there. Holds names and the text of commands, no values.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unresolved {
    /// Variables that are unset or empty.
    Variables(Vec<String>),
    /// A command failed, took too long or printed nothing.
    Command(String),
    /// The value is a command, and the host did not allow commands.
    CommandsNotAllowed,
}

impl fmt::Display for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unresolved::Variables(names) if names.len() == 1 => {
                write!(f, "the environment variable {} is not set", names[0])
            }
            Unresolved::Variables(names) => write!(f, "the environment variables {} are not set", names.join(", ")),
            Unresolved::Command(command) => write!(f, "the shell command {command:?} failed or printed nothing"),
            Unresolved::CommandsNotAllowed => f.write_str("it is a shell command, and the host does not allow those"),
        }
    }
}

/// The value of a configured text. One that begins with `!` is a shell command, run only if `commands` allows it; it blocks
/// then, for 10 seconds at the most.
///
/// Errors: why there is no value.
pub fn config_value(text: &str, environment: &Environment, commands: bool) -> Result<String, Unresolved> {
    match text.strip_prefix('!') {
        Some(command) if commands => {
            run(command, environment).ok_or_else(|| Unresolved::Command(command.trim().to_owned()))
        }
        Some(_) => Err(Unresolved::CommandsNotAllowed),
        None => fill(text, environment),
    }
}

/// Whether a text is a value without running anything: variables are set, commands are assumed to work (P36).
pub(super) fn seems_resolvable(text: &str, environment: &Environment, commands: bool) -> bool {
    if text.starts_with('!') { commands } else { fill(text, environment).is_ok_and(|value| !value.is_empty()) }
}

fn fill(text: &str, environment: &Environment) -> Result<String, Unresolved> {
    let mut out = String::with_capacity(text.len());
    let mut missing = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(literal) = rest.chars().next().filter(|c| matches!(c, '$' | '!')) {
            out.push(literal);
            rest = &rest[1..];
            continue;
        }
        let Some((name, after)) = variable(rest) else {
            // Braces around something else stand for themselves, with all that is in them.
            let braces = rest.starts_with('{').then(|| rest.find('}')).flatten().map_or(0, |end| end + 1);
            out.push('$');
            out.push_str(&rest[..braces]);
            rest = &rest[braces..];
            continue;
        };
        match environment.get(name) {
            Some(value) => out.push_str(&value),
            None if missing.iter().any(|known| known == name) => {}
            None => missing.push(name.to_owned()),
        }
        rest = after;
    }
    out.push_str(rest);
    if missing.is_empty() { Ok(out) } else { Err(Unresolved::Variables(missing)) }
}

/// The name of a variable behind a `$`, with or without braces, and what follows.
fn variable(text: &str) -> Option<(&str, &str)> {
    let braced = text.strip_prefix('{');
    let inside = braced.unwrap_or(text);
    if inside.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let length = inside.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
    let (name, after) = inside.split_at(length);
    let after = if braced.is_some() { after.strip_prefix('}')? } else { after };
    (!name.is_empty()).then_some((name, after))
}

fn run(command: &str, environment: &Environment) -> Option<String> {
    let program = Program {
        path: "/bin/sh".into(),
        // What it says on stderr is no part of the value.
        arguments: vec!["-c".into(), format!("exec 2>/dev/null\n{command}").into()],
        cwd: "/".into(),
        environment: Some(environment.for_command()),
    };
    let mut output = Vec::new();
    let take = |bytes: &[u8]| output.extend_from_slice(&bytes[..bytes.len().min(OUTPUT_LIMIT + 1 - output.len())]);
    let ended = process::run(&program, &CancellationToken::new(), Some(COMMAND_LIMIT), take).ok()?;
    let succeeded = ended.end == End::Finished && ended.code == Some(0);
    let text = String::from_utf8(output).ok().filter(|text| succeeded && text.len() <= OUTPUT_LIMIT)?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
