//! The environment of commands the model runs: the host's, without what looks like a secret (T207).

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Where the environment of commands begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Base {
    /// The host's, whole.
    Inherit,
    /// The host's, without names that look like secrets.
    #[default]
    Scrubbed,
    /// Only what most programs cannot do without: `PATH`, `HOME`, the user, language, terminal, time zone and temporary
    /// directory.
    Clean,
}

/// What commands see of the host's environment.
///
/// In the lists a name may end in `*`, which stands for anything. `drop` is stronger than `keep`, `set` than both.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EnvironmentPolicy {
    /// Where it begins.
    pub base: Base,
    /// Names that are passed on although the base leaves them out.
    pub keep: Vec<String>,
    /// Names that are never passed on.
    pub drop: Vec<String>,
    /// Names and values of the host's own.
    pub set: Vec<(String, String)>,
    /// A directory of programs, put first in the `PATH` that is passed on unless it is in it (T207). `None` is `bin` in
    /// the agent directory, where the host named one for the engine. It changes no `PATH` of `set` and makes none.
    pub program_dir: Option<PathBuf>,
}

impl EnvironmentPolicy {
    /// A policy with empty lists.
    pub fn new(base: Base) -> EnvironmentPolicy {
        EnvironmentPolicy { base, ..EnvironmentPolicy::default() }
    }

    /// Adds to [`keep`](Self::keep).
    pub fn keep(mut self, name: impl Into<String>) -> Self {
        self.keep.push(name.into());
        self
    }

    /// Adds to [`drop`](Self::drop).
    pub fn drop(mut self, name: impl Into<String>) -> Self {
        self.drop.push(name.into());
        self
    }

    /// Adds to [`set`](Self::set).
    pub fn set(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.set.push((name.into(), value.into()));
        self
    }

    /// Sets [`program_dir`](Self::program_dir).
    pub fn program_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.program_dir = Some(dir.into());
        self
    }

    fn passes(&self, name: &OsStr) -> bool {
        let name = name.to_string_lossy();
        let listed = |list: &[String]| list.iter().any(|pattern| matches(pattern, &name));
        if SESSION.contains(&&*name) || listed(&self.drop) {
            return false;
        }
        let basic = match self.base {
            Base::Inherit => true,
            Base::Scrubbed => !is_secret(&name),
            Base::Clean => NEEDED.iter().any(|pattern| matches(pattern, &name)),
        };
        basic || listed(&self.keep)
    }

    /// The environment of a command: what passes, with a directory of programs (`usual` unless the host chose one), then
    /// facts about the session, then the host's own.
    pub(super) fn build(&self, usual: Option<&Path>, session: &[(&'static str, String)]) -> Vec<(OsString, OsString)> {
        let mut out: Vec<(OsString, OsString)> = std::env::vars_os().filter(|(name, _)| self.passes(name)).collect();
        // Without a `PATH` shells look in places of their own; one of this directory alone would hide those.
        if let Some(dir) = self.program_dir.as_deref().or(usual)
            && let Some((_, path)) = out.iter_mut().find(|(name, _)| is_path(name))
        {
            put_first(path, dir);
        }
        let session = session.iter().map(|(name, value)| (*name, value.as_str()));
        let own = self.set.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in session.chain(own) {
            out.retain(|(known, _)| known != name);
            out.push((name.into(), value.into()));
        }
        out
    }
}

/// Removed always; set again from the session where they apply.
const SESSION: [&str; 5] = ["PI_SESSION_ID", "PI_SESSION_FILE", "PI_PROVIDER", "PI_MODEL", "PI_REASONING_LEVEL"];

/// What [`Base::Clean`] passes on.
const NEEDED: [&str; 13] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TERM",
    "COLORTERM",
    "TZ",
    "TMPDIR",
    "PWD",
];

fn is_path(name: &OsStr) -> bool {
    name == "PATH" || cfg!(windows) && name.eq_ignore_ascii_case("PATH")
}

/// Puts a directory first in a `PATH`, unless it is in it or its name has a character that cannot be.
fn put_first(path: &mut OsString, dir: &Path) {
    if std::env::split_paths(path).any(|known| known == dir) {
        return;
    }
    // What is there stays as it is, byte for byte.
    if let Ok(mut first) = std::env::join_paths([dir]) {
        if !path.is_empty() {
            first.push(if cfg!(windows) { ";" } else { ":" });
            first.push(&*path);
        }
        *path = first;
    }
}

/// A word that ends so makes a name a secret's. Broad on purpose: a command that misses a variable says so, a leaked key
/// does not.
const SECRET_WORDS: [&str; 17] = [
    "TOKEN",
    "TOKENS",
    "SECRET",
    "SECRETS",
    "PASSWORD",
    "PASSWORDS",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "CREDENTIALS",
    "AUTHORIZATION",
    "COOKIE",
    "COOKIES",
    "APIKEY",
    "APIKEYS",
    "PRIVATEKEY",
    "ACCESSKEY",
];
/// The same for the last of several words.
const SECRET_ENDS: [&str; 5] = ["KEY", "KEYS", "PAT", "PWD", "AUTH"];

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let mut words = name.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| !word.is_empty());
    let count = words.clone().count();
    let last = words.clone().next_back().unwrap_or_default();
    (count > 1 && SECRET_ENDS.contains(&last))
        || words.any(|word| SECRET_WORDS.iter().any(|end| word.ends_with(end)))
        || has_key_inside(&name)
}

/// `AWS_ACCESS_KEY_ID`, `API_KEY_2`: the key is not the last word.
fn has_key_inside(name: &str) -> bool {
    ["API_KEY", "ACCESS_KEY", "PRIVATE_KEY", "SIGNING_KEY", "ENCRYPTION_KEY"].iter().any(|part| name.contains(part))
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => pattern == name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_secret() {
        for name in [
            "ANTHROPIC_API_KEY",
            "GITHUB_TOKEN",
            "aws_secret_access_key",
            "DB_PASSWORD",
            "NPM_TOKEN",
            "AWS_ACCESS_KEY_ID",
            "OPENAI_KEY",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "AWS_BEARER_TOKEN_BEDROCK",
            "MYAPIKEY",
            "GH_PAT",
            "DB_PWD",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in [
            "PATH",
            "HOME",
            "SSH_AUTH_SOCK",
            "LANG",
            "KEYMAP",
            "PWD",
            "OLDPWD",
            "TOKENIZERS_PARALLELISM",
            "XAUTHORITY",
            "HOTKEY",
            "KEEP_ME",
            "EDITOR",
        ] {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn t207_a_directory_comes_first_once() {
        let with = |path: &str, dir: &str| {
            let mut path = OsString::from(path);
            put_first(&mut path, Path::new(dir));
            path.into_string().unwrap()
        };
        assert_eq!(with("/usr/bin:/bin", "/a/bin"), "/a/bin:/usr/bin:/bin");
        assert_eq!(with("/usr/bin::/a/bin/", "/a/bin"), "/usr/bin::/a/bin/");
        assert_eq!(with("", "/a/bin"), "/a/bin");
        assert_eq!(with("/bin", "/a:b/bin"), "/bin");
    }

    #[test]
    fn lists_are_stronger_than_the_base() {
        let passes = |policy: &EnvironmentPolicy, name: &str| policy.passes(OsStr::new(name));
        let policy = EnvironmentPolicy::default().keep("CI_TOKEN").drop("SSH_*");
        assert!(passes(&policy, "CI_TOKEN") && !passes(&policy, "NPM_TOKEN") && !passes(&policy, "SSH_AUTH_SOCK"));
        assert!(passes(&EnvironmentPolicy::new(Base::Inherit), "NPM_TOKEN"));
        assert!(!passes(&EnvironmentPolicy::new(Base::Inherit), "PI_MODEL"));
        let clean = EnvironmentPolicy::new(Base::Clean).keep("CARGO_*");
        assert!(passes(&clean, "LC_ALL") && passes(&clean, "CARGO_HOME") && !passes(&clean, "EDITOR"));
    }
}
