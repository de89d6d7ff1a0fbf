//! What a call does to the world.

use std::fmt;

/// What the calls of a tool do, at most. A later one includes the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Effect {
    /// They look at things and change nothing.
    Read,
    /// They change files.
    Write,
    /// Anything: they run programs, talk to services, or nobody knows. What a tool has that does not say.
    #[default]
    Execute,
}

impl Effect {
    /// Every effect, weakest first.
    pub const ALL: [Effect; 3] = [Effect::Read, Effect::Write, Effect::Execute];

    /// The word for it in every language: `read`, `write` or `execute`.
    pub fn name(self) -> &'static str {
        match self {
            Effect::Read => "read",
            Effect::Write => "write",
            Effect::Execute => "execute",
        }
    }

    /// The effect of that name.
    pub fn from_name(name: &str) -> Option<Effect> {
        Effect::ALL.into_iter().find(|effect| effect.name() == name)
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
