//! What an asynchronous call came to, and how it becomes a JavaScript value.

use branchline::{Error, ErrorCode, Result};
use napi::bindgen_prelude::{Buffer, JsObjectValue, Null, Object, ToNapiValue};
use napi::{Env, sys};

use crate::feed::Feed;
use crate::replay::Replay;
use crate::session::Session;
use crate::siblings::Exploration;
use crate::tree::Tree;

/// Native memory a session holds, told to the garbage collector, which sees only a small object. Measured: an empty
/// session is about 20 KiB; this counts some entries too.
pub(crate) const SESSION_WEIGHT: i64 = 64 << 10;

/// The result of a call with a ticket.
pub enum Outcome {
    Nothing,
    Null,
    Text(String),
    Texts(Vec<String>),
    Session(Session),
    /// A session and the text of the user message it was forked before.
    Fork(Session, Option<String>),
    Tree(Tree),
    Bytes(Vec<u8>),
    Feed(Feed),
    Exploration(Exploration),
    Replay(Replay),
    /// Sessions, and JSON about each.
    Explored(Vec<(Session, String)>),
}

impl Outcome {
    /// Fails where a text could not become a JavaScript string.
    pub(crate) fn checked(self, limit: usize) -> Result<Outcome> {
        match &self {
            Outcome::Text(text) => check_text(text, limit)?,
            Outcome::Texts(texts) => texts.iter().try_for_each(|text| check_text(text, limit))?,
            Outcome::Fork(_, Some(text)) => check_text(text, limit)?,
            Outcome::Explored(rows) => rows.iter().try_for_each(|(_, text)| check_text(text, limit))?,
            _ => {}
        }
        Ok(self)
    }
}

/// A JavaScript string counts UTF-16 units, of which a UTF-8 text never has more than bytes.
pub(crate) fn check_text(text: &str, limit: usize) -> Result<()> {
    if text.len() <= limit || text.encode_utf16().count() <= limit {
        return Ok(());
    }
    let message = format!(
        "a text of {} bytes is longer than a JavaScript string can be ({limit} characters); \
         ask for less of it, or read an entry as bytes with tree.raw(id)",
        text.len()
    );
    Err(Error::new(ErrorCode::TooLarge, message))
}

impl ToNapiValue for Outcome {
    unsafe fn to_napi_value(env: sys::napi_env, outcome: Self) -> napi::Result<sys::napi_value> {
        // SAFETY: the caller vouches for `env`, which is all these need.
        unsafe {
            match outcome {
                Outcome::Nothing => ToNapiValue::to_napi_value(env, ()),
                Outcome::Null => ToNapiValue::to_napi_value(env, Null),
                Outcome::Text(text) => ToNapiValue::to_napi_value(env, text),
                Outcome::Texts(texts) => ToNapiValue::to_napi_value(env, texts),
                Outcome::Tree(tree) => ToNapiValue::to_napi_value(env, tree),
                Outcome::Bytes(bytes) => ToNapiValue::to_napi_value(env, Buffer::from(bytes)),
                Outcome::Feed(feed) => ToNapiValue::to_napi_value(env, feed),
                Outcome::Exploration(exploration) => ToNapiValue::to_napi_value(env, exploration),
                Outcome::Replay(replay) => ToNapiValue::to_napi_value(env, replay),
                Outcome::Explored(rows) => {
                    let mut list = Vec::with_capacity(rows.len());
                    for (session, text) in rows {
                        Env::from_raw(env).adjust_external_memory(SESSION_WEIGHT)?;
                        let mut row = Object::new(&Env::from_raw(env))?;
                        row.set_named_property("session", session)?;
                        row.set_named_property("facts", text)?;
                        list.push(row);
                    }
                    ToNapiValue::to_napi_value(env, list)
                }
                Outcome::Session(session) => {
                    Env::from_raw(env).adjust_external_memory(SESSION_WEIGHT)?;
                    ToNapiValue::to_napi_value(env, session)
                }
                Outcome::Fork(session, text) => {
                    Env::from_raw(env).adjust_external_memory(SESSION_WEIGHT)?;
                    let mut fork = Object::new(&Env::from_raw(env))?;
                    fork.set_named_property("session", session)?;
                    fork.set_named_property("editorText", text)?;
                    ToNapiValue::to_napi_value(env, fork)
                }
            }
        }
    }
}
