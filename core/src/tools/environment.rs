//! The environment of commands the model runs: the host's, without what looks like a secret.

use std::process::Command;

/// A name with one of these in it is not passed on. Broad on purpose: a command that misses a variable says so, a
/// leaked key does not.
const SECRET: [&str; 12] = [
    "API_KEY",
    "APIKEY",
    "ACCESS_KEY",
    "PRIVATE_KEY",
    "SECRET",
    "TOKEN",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "AUTHORIZATION",
    "COOKIE",
];

/// Removed always; set again from the session where they apply (T207).
const SESSION: [&str; 5] = ["PI_SESSION_ID", "PI_SESSION_FILE", "PI_PROVIDER", "PI_MODEL", "PI_REASONING_LEVEL"];

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET.iter().any(|part| name.contains(part))
}

/// Takes secrets out of what `command` inherits.
pub(super) fn scrub(command: &mut Command, session_id: &str) {
    for (name, _) in std::env::vars_os() {
        if is_secret(&name.to_string_lossy()) {
            command.env_remove(&name);
        }
    }
    for name in SESSION {
        command.env_remove(name);
    }
    if !session_id.is_empty() {
        command.env("PI_SESSION_ID", session_id);
    }
}

#[cfg(test)]
mod tests {
    use super::is_secret;

    #[test]
    fn names_that_look_secret() {
        for name in ["ANTHROPIC_API_KEY", "GITHUB_TOKEN", "aws_secret_access_key", "DB_PASSWORD", "NPM_TOKEN"] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["PATH", "HOME", "SSH_AUTH_SOCK", "LANG", "KEYMAP"] {
            assert!(!is_secret(name), "{name}");
        }
    }
}
