//! Keys that a host written in another language hands out: each question is a [`Request`](super::Request).

use serde_json::{Value, json};

use super::queue::Asker;
use super::request::{Answer, Question, RequestKind};
use crate::providers::{Key, KeyFuture, KeyRequest, KeySource, StoredKey};

/// A source of keys whose questions are requests to the host, of kind [`RequestKind::Key`], one before each request to a
/// service.
///
/// [`Request::name`](super::Request::name) is the provider's name, [`Request::arguments`](super::Request::arguments) is
/// `{provider, model, baseUrl}`. The answer is the key as a text, `{key, bearer?}`, or `null` for "look elsewhere". A question
/// that fails, or is dropped, fails the request to the service.
#[derive(Debug, Clone)]
pub struct HostKeys {
    asker: Asker,
    target: u64,
}

impl HostKeys {
    /// Questions go to `asker`'s queue with the number `target`, by which the host knows them.
    pub fn new(asker: Asker, target: u64) -> HostKeys {
        HostKeys { asker, target }
    }
}

impl KeySource for HostKeys {
    fn key(&self, request: KeyRequest) -> KeyFuture {
        let name = request.provider.clone();
        let arguments = json!({"provider": request.provider, "model": request.model, "baseUrl": request.base_url});
        let question = Question::plain(RequestKind::Key, self.target, name, arguments);
        // Whoever needs the key drops this future when the request is aborted.
        Box::pin(self.asker.clone().ask_for(question, "the program that has the keys", |answer| match answer {
            Answer::Key(given) => Some(given),
            _ => None,
        }))
    }
}

impl Key {
    /// Reads a key as hosts of other languages give it: a text, `{key, bearer?}`, or `null` for none.
    ///
    /// Errors: what a key is instead, without a word of what was given.
    pub fn from_host_value(value: Value) -> Result<Option<Key>, String> {
        let wrong = || "a key is a text, {key, bearer?} or null".to_owned();
        let (key, bearer) = match value {
            Value::Null => return Ok(None),
            Value::String(key) => (key, false),
            Value::Object(mut object) => {
                let Some(Value::String(key)) = object.remove("key") else { return Err(wrong()) };
                let bearer = match object.remove("bearer") {
                    None | Some(Value::Null) => false,
                    Some(Value::Bool(bearer)) => bearer,
                    Some(_) => return Err("bearer is true or false".to_owned()),
                };
                if !object.is_empty() {
                    return Err(wrong());
                }
                (key, bearer)
            }
            _ => return Err(wrong()),
        };
        if key.trim().is_empty() {
            return Err("the key is empty; for none give null".to_owned());
        }
        Ok(Some(if bearer { Key::bearer(key) } else { Key::new(key) }))
    }
}

impl StoredKey {
    /// Reads what is stored as hosts of other languages give it: a text, which is a key as it is, or `{key?, configured?,
    /// variables?: {NAME: text}}`. With `configured` the key is in the form with variables and commands.
    ///
    /// Errors: what it is instead, without a word of what was given.
    pub fn from_host_value(value: Value) -> Result<StoredKey, String> {
        let wrong = || "what is stored is a key as a text, or {key?, configured?, variables?}".to_owned();
        let mut object = match value {
            Value::String(key) => return stored(Some(Value::String(key)), false),
            Value::Object(object) => object,
            _ => return Err(wrong()),
        };
        let configured = match object.remove("configured") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(configured)) => configured,
            Some(_) => return Err("configured is true or false".to_owned()),
        };
        let mut key = stored(object.remove("key"), configured)?;
        match object.remove("variables") {
            None | Some(Value::Null) => {}
            Some(Value::Object(variables)) => {
                for (name, value) in variables {
                    let Value::String(value) = value else { return Err(format!("variables.{name} is a text")) };
                    key = key.variable(name, value);
                }
            }
            Some(_) => return Err("variables is an object of texts".to_owned()),
        }
        if object.is_empty() { Ok(key) } else { Err(wrong()) }
    }
}

fn stored(key: Option<Value>, configured: bool) -> Result<StoredKey, String> {
    match key {
        None | Some(Value::Null) => Ok(StoredKey::variables()),
        Some(Value::String(key)) if key.trim().is_empty() => Err("the key is empty; for none leave it out".to_owned()),
        Some(Value::String(key)) => Ok(if configured { StoredKey::configured(key) } else { StoredKey::new(key) }),
        Some(_) => Err("a key that is stored is a text".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn keys_are_read_and_never_told() {
        let read = |value| {
            Key::from_host_value(value).map(|key| key.map(|key| (key.secret.expose_secret().to_owned(), key.bearer)))
        };
        assert_eq!(read(json!("a")), Ok(Some(("a".to_owned(), false))));
        assert_eq!(read(json!({"key": "a"})), Ok(Some(("a".to_owned(), false))));
        assert_eq!(read(json!({"key": "a", "bearer": true})), Ok(Some(("a".to_owned(), true))));
        assert_eq!(read(json!(null)), Ok(None));
        let bad = [
            json!(" "),
            json!({"token": "sk-1"}),
            json!({"key": "sk-1", "Bearer": true}),
            json!(["sk-1"]),
            json!({"key": "sk-1", "bearer": "sk-1"}),
            json!({"key": ""}),
            json!(5),
        ];
        for bad in bad {
            let problem = read(bad.clone()).unwrap_err();
            assert!(!problem.contains("sk-1"), "{problem}");
        }
    }

    #[test]
    fn what_is_stored_is_read_and_never_told() {
        let read = |value| StoredKey::from_host_value(value).map(|stored| stored.entry());
        assert_eq!(read(json!("$a")), Ok(json!({"type": "api_key", "key": "$$a"})));
        assert_eq!(read(json!({"key": "$A", "configured": true})), Ok(json!({"type": "api_key", "key": "$A"})));
        let variables = json!({"key": null, "variables": {"A": "b"}});
        assert_eq!(read(variables), Ok(json!({"type": "api_key", "env": {"A": "b"}})));
        let bad = [
            json!(null),
            json!(["sk-1"]),
            json!(" "),
            json!({"key": ["sk-1"]}),
            json!({"key": "sk-1", "bearer": true}),
            json!({"key": "sk-1", "configured": "sk-1"}),
            json!({"variables": ["sk-1"]}),
            json!({"variables": {"A": ["sk-1"]}}),
        ];
        for bad in bad {
            let problem = read(bad.clone()).unwrap_err();
            assert!(!problem.contains("sk-1"), "{problem}");
        }
    }
}
