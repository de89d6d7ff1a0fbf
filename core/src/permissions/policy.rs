//! What a host allows: presets, and rules of its own on top of them.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::Effect;
use super::handler::PermissionHandler;
use crate::error::{Error, ErrorCode, Result};

/// How long a handler may take unless told otherwise: a person who is asked may be away for a while.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(600);

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// It runs.
    Allow,
    /// The handler decides. Without one it does not run.
    Ask,
    /// It does not run; the model reads why.
    Deny,
}

/// A policy by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Preset {
    /// Reading below the root is allowed, everything else denied.
    ReadOnly,
    /// Reading below the working directory is allowed, everything else asks. What a session has that chooses nothing.
    #[default]
    Ask,
    /// Reading and writing below the root are allowed, commands ask, paths outside of it are denied.
    Workspace,
    /// Everything is allowed, anywhere, without a word: as `pi` does.
    Allow,
}

impl Preset {
    /// Every preset, strictest first.
    pub const ALL: [Preset; 4] = [Preset::ReadOnly, Preset::Ask, Preset::Workspace, Preset::Allow];

    /// The word for it in every language: `read-only`, `ask`, `workspace` or `allow`.
    pub fn name(self) -> &'static str {
        match self {
            Preset::ReadOnly => "read-only",
            Preset::Ask => "ask",
            Preset::Workspace => "workspace",
            Preset::Allow => "allow",
        }
    }

    /// The preset of that name.
    ///
    /// Errors: `invalid_argument` for another word.
    pub fn from_name(name: &str) -> Result<Preset> {
        Preset::ALL.into_iter().find(|preset| preset.name() == name).ok_or_else(|| {
            let known = Preset::ALL.map(Preset::name).join(", ");
            Error::new(ErrorCode::InvalidArgument, format!("{name:?} is no permissions preset; use one of {known}"))
        })
    }

    /// What it says of a call. `inside`: everything the call names lies below the root.
    pub(super) fn action(self, effect: Effect, inside: bool) -> Action {
        use {Action::*, Effect::*};
        match (self, effect) {
            (Preset::Allow, _) => Allow,
            (_, Read) if inside => Allow,
            (Preset::ReadOnly, _) => Deny,
            (Preset::Workspace, Write) if inside => Allow,
            (Preset::Workspace, Read | Write) => Deny,
            _ => Ask,
        }
    }
}

/// One policy for all tools of a session or toolbox: built-in ones and the host's own.
///
/// A call is judged by the first of these that says anything: the [root](Permissions::root), a rule for its
/// [tool](Permissions::tool), a rule for its [effect](Permissions::effect), the [preset](Preset). Cheap to clone.
///
/// ```
/// use branchline::permissions::{Action, Effect, Permissions};
/// let policy = Permissions::workspace().tool("bash", Action::Deny).effect(Effect::Write, Action::Ask);
/// assert_eq!(policy, policy.clone());
/// ```
#[derive(Clone, Default)]
pub struct Permissions {
    pub(super) preset: Preset,
    pub(super) tools: Vec<(String, Action)>,
    pub(super) effects: Vec<(Effect, Action)>,
    pub(super) roots: Vec<PathBuf>,
    pub(super) handler: Option<Arc<dyn PermissionHandler>>,
    pub(super) timeout: Option<Duration>,
}

impl Permissions {
    /// A preset without rules.
    pub fn preset(preset: Preset) -> Permissions {
        Permissions { preset, ..Permissions::default() }
    }

    /// The preset of a name.
    ///
    /// Errors: `invalid_argument` for a word that names none.
    pub fn named(name: &str) -> Result<Permissions> {
        Preset::from_name(name).map(Permissions::preset)
    }

    /// [`Preset::ReadOnly`].
    pub fn read_only() -> Permissions {
        Permissions::preset(Preset::ReadOnly)
    }

    /// [`Preset::Ask`].
    pub fn ask() -> Permissions {
        Permissions::preset(Preset::Ask)
    }

    /// [`Preset::Workspace`].
    pub fn workspace() -> Permissions {
        Permissions::preset(Preset::Workspace)
    }

    /// [`Preset::Allow`].
    pub fn allow() -> Permissions {
        Permissions::preset(Preset::Allow)
    }

    /// Sets what happens to the calls of one tool, wherever they go below the [root](Permissions::root). Of two rules
    /// for a tool the later counts.
    pub fn tool(mut self, name: impl Into<String>, action: Action) -> Self {
        let name = name.into();
        self.tools.retain(|(known, _)| *known != name);
        self.tools.push((name, action));
        self
    }

    /// Sets what happens to the calls of all tools with one effect, wherever they go below the
    /// [root](Permissions::root). Rules for their tool come first.
    pub fn effect(mut self, effect: Effect, action: Action) -> Self {
        self.effects.retain(|(known, _)| *known != effect);
        self.effects.push((effect, action));
        self
    }

    /// Adds a directory outside of which every path is refused, whatever rules and handler say. Several directories are
    /// one root with several parts. A relative path is below the working directory.
    ///
    /// Without a root `read-only` and `workspace` have the working directory, `ask` and `allow` the whole disk.
    /// Links and `..` are followed to where they lead before anything is compared; the root itself is looked up once,
    /// when the session or toolbox is made.
    pub fn root(mut self, directory: impl Into<PathBuf>) -> Self {
        self.roots.push(directory.into());
        self
    }

    /// Sets who is asked. A closure from [`PermissionRequest`](super::PermissionRequest) to a future is a handler.
    pub fn handler(mut self, handler: impl PermissionHandler + 'static) -> Self {
        self.handler = Some(Arc::new(handler));
        self
    }

    /// Sets how long the handler may take; after that the call is denied. Ten minutes unless set.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    pub(super) fn handler_timeout(&self) -> Duration {
        self.timeout.unwrap_or(DEFAULT_TIMEOUT)
    }

    /// Nothing is ever asked or refused, so nothing need be looked at.
    pub(crate) fn is_unrestricted(&self) -> bool {
        self.preset == Preset::Allow && self.tools.is_empty() && self.effects.is_empty() && self.roots.is_empty()
    }
}

impl From<Preset> for Permissions {
    fn from(preset: Preset) -> Permissions {
        Permissions::preset(preset)
    }
}

/// Equal rules; handlers are equal when they are the same one.
impl PartialEq for Permissions {
    fn eq(&self, other: &Permissions) -> bool {
        let handlers = match (&self.handler, &other.handler) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (a, b) => a.is_none() && b.is_none(),
        };
        handlers
            && self.preset == other.preset
            && self.tools == other.tools
            && self.effects == other.effects
            && self.roots == other.roots
            && self.timeout == other.timeout
    }
}

impl fmt::Debug for Permissions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permissions")
            .field("preset", &self.preset)
            .field("tools", &self.tools)
            .field("effects", &self.effects)
            .field("roots", &self.roots)
            .field("handler", &self.handler.is_some())
            .finish_non_exhaustive()
    }
}
