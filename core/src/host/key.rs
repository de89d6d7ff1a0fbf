//! Keys that a host written in another language hands out: each question is a [`Request`](super::Request).

use std::path::PathBuf;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::request::{Answer, Asker, NoAnswer, Question, RequestKind};
use crate::providers::{Key, KeyFuture, KeyRequest, KeySource};

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
        let asker = self.asker.clone();
        let question = Question {
            kind: RequestKind::Key,
            target: self.target,
            name: request.provider.clone(),
            call_id: String::new(),
            session_id: String::new(),
            cwd: PathBuf::new(),
            arguments: json!({"provider": request.provider, "model": request.model, "baseUrl": request.base_url}),
            progress: None,
            response: None,
        };
        Box::pin(async move {
            // Whoever needs the key drops this future when the request is aborted.
            match asker.ask(question, CancellationToken::new()).await {
                Ok(Answer::Key(key)) => Ok(key),
                Err(NoAnswer::Failed(message)) => Err(message),
                Ok(_) | Err(NoAnswer::Dropped | NoAnswer::Cancelled) => {
                    Err("the program that has the keys gave no answer".to_owned())
                }
                Err(NoAnswer::Closed) => Err("the program that has the keys takes no more questions".to_owned()),
            }
        })
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
}
