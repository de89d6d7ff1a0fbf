//! Answers that hold for the rest of a session.

use std::collections::VecDeque;
use std::path::PathBuf;

use super::{Effect, RequestedPath, Scope};

/// Answers kept; the oldest are forgotten, so that the question comes again.
const MOST: usize = 1000;

/// What calls need not ask for again.
#[derive(Debug, Default)]
pub(super) struct Grants(VecDeque<Grant>);

#[derive(Debug, PartialEq, Eq)]
enum Grant {
    Same { tool: String, command: Option<String>, arguments: Option<String>, paths: Vec<PathBuf> },
    Tool(String),
    Below(Effect, PathBuf),
}

/// A call as grants see it.
pub(super) struct Seen<'a> {
    pub(super) tool: &'a str,
    pub(super) effect: Effect,
    pub(super) command: Option<&'a str>,
    /// The arguments as JSON, where neither command nor paths say what the call is about.
    pub(super) arguments: Option<String>,
    pub(super) paths: &'a [RequestedPath],
}

impl Seen<'_> {
    fn same(&self) -> Grant {
        Grant::Same {
            tool: self.tool.to_owned(),
            command: self.command.map(str::to_owned),
            arguments: self.arguments.clone(),
            paths: self.paths.iter().map(|path| path.real.clone()).collect(),
        }
    }
}

impl Grants {
    pub(super) fn add(&mut self, scope: Scope, call: &Seen<'_>) {
        let grant = match scope {
            Scope::Same => call.same(),
            Scope::Tool => Grant::Tool(call.tool.to_owned()),
            // Links in it are followed now, as those of the paths are that it is compared with.
            Scope::Below(directory) => {
                Grant::Below(call.effect, super::target::prospective(&directory).unwrap_or(directory))
            }
        };
        if self.0.contains(&grant) {
            return;
        }
        if self.0.len() == MOST {
            self.0.pop_front();
        }
        self.0.push_back(grant);
    }

    pub(super) fn covers(&self, call: &Seen<'_>) -> bool {
        let same = call.same();
        self.0.iter().any(|grant| match grant {
            Grant::Tool(tool) => tool == call.tool,
            Grant::Below(effect, directory) => {
                // A call that names no path may go anywhere.
                call.effect <= *effect
                    && !call.paths.is_empty()
                    && call.paths.iter().all(|path| path.real.starts_with(directory))
            }
            grant => *grant == same,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_grants_are_forgotten() {
        let mut grants = Grants::default();
        let names: Vec<String> = (0..=MOST).map(|number| format!("t{number}")).collect();
        let seen = |tool| Seen { tool, effect: Effect::Execute, command: None, arguments: None, paths: &[] };
        names.iter().for_each(|name| grants.add(Scope::Tool, &seen(name)));
        assert!(!grants.covers(&seen("t0")) && grants.covers(&seen("t1")));
        assert_eq!(grants.0.len(), MOST);
    }
}
