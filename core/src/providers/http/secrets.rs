//! Keeping keys out of texts.

use secrecy::{ExposeSecret, SecretString};

/// What stands for a secret.
const REMOVED: &str = "[secret]";
/// Shorter ones would be found in ordinary words.
const SHORTEST: usize = 6;

/// The secrets of one request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Secrets(Vec<SecretString>);

impl Secrets {
    /// Remembers one.
    pub(crate) fn add(&mut self, secret: &SecretString) {
        let text = secret.expose_secret();
        if text.len() >= SHORTEST {
            self.0.push(secret.clone());
        }
    }

    /// The text without the secrets: services repeat keys in their errors.
    pub(crate) fn redact(&self, text: String) -> String {
        self.0.iter().fold(text, |text, secret| {
            let secret = secret.expose_secret();
            if text.contains(secret) { text.replace(secret, REMOVED) } else { text }
        })
    }

    /// A number that tells accounts apart without revealing their keys.
    pub(crate) fn account(&self) -> u64 {
        use std::hash::{BuildHasher, Hasher};
        let mut hasher = foldhash::fast::FixedState::default().build_hasher();
        self.0.iter().for_each(|secret| hasher.write(secret.expose_secret().as_bytes()));
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_removed() {
        let mut secrets = Secrets::default();
        secrets.add(&"k-secret-1".into());
        secrets.add(&"a".into());
        assert_eq!(secrets.redact("bad key k-secret-1, again k-secret-1".into()), "bad key [secret], again [secret]");
    }
}
