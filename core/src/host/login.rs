//! Logins that a host written in another language makes anew: each is a [`Request`](super::Request).

use serde_json::{Value, json};

use super::queue::Asker;
use super::request::{Answer, Question, RequestKind};
use crate::message::JsonObject;
use crate::providers::{Login, LoginFuture, LoginSource};

/// A source of logins whose questions are requests to the host, of kind [`RequestKind::Login`]: one when a stored login has
/// fewer than five minutes left, by one program at a time.
///
/// [`Request::name`](super::Request::name) is the provider's name, [`Request::arguments`](super::Request::arguments) is
/// `{provider, login}`: the entry of `auth.json`, with its secrets. The answer is the entry that takes its place, an object with
/// a new `access` and `expires`, within 15 seconds. It is sent as a bearer token. A question that fails, or is dropped, fails the
/// request to the service, unless the login is good for a moment yet.
#[derive(Debug, Clone)]
pub struct HostLogins {
    asker: Asker,
    target: u64,
}

impl HostLogins {
    /// Questions go to `asker`'s queue with the number `target`, by which the host knows them.
    pub fn new(asker: Asker, target: u64) -> HostLogins {
        HostLogins { asker, target }
    }
}

impl LoginSource for HostLogins {
    fn refresh(&self, login: Login) -> LoginFuture {
        let name = login.provider.clone();
        let arguments = json!({"provider": login.provider, "login": login.entry});
        let question = Question::plain(RequestKind::Login, self.target, name, arguments);
        // Dropped when it takes too long, and at the end of the engine.
        Box::pin(self.asker.clone().ask_for(question, "the program that has the logins", |answer| match answer {
            Answer::Login(given) => Some(given),
            _ => None,
        }))
    }
}

/// Reads a login as a host gives it. It is stored, so what could not be used is refused.
///
/// Errors: what it is instead, without a word of what was given.
pub(super) fn read(value: Value) -> Result<JsonObject, String> {
    match value {
        Value::Object(entry)
            if entry.get("access").and_then(Value::as_str).is_some_and(|token| !token.trim().is_empty())
                && entry.get("expires").is_some_and(Value::is_number) =>
        {
            Ok(entry)
        }
        _ => Err("a login is an object with access, a text, and expires, in milliseconds since 1970".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logins_are_read_and_never_told() {
        let login = json!({"access": "a", "expires": 1.5e12, "refresh": "r", "more": [1]});
        assert_eq!(read(login.clone()), Ok(login.as_object().unwrap().clone()));
        let bad = [
            json!("sk-1"),
            json!(null),
            json!({"access": "sk-1"}),
            json!({"access": " ", "expires": 5}),
            json!({"access": ["sk-1"], "expires": 5}),
            json!({"access": "sk-1", "expires": "sk-1"}),
        ];
        for bad in bad {
            let problem = read(bad).unwrap_err();
            assert!(!problem.contains("sk-1"), "{problem}");
        }
    }
}
