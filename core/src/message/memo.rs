//! What is worked out from a message for each request, kept with the message for the next one.
//!
//! A conversation is sent again with every request, and all of it but the end is as it was. So the forms of a message are
//! made once for a model and live as long as the message; a long conversation costs a request little more than its bytes.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::{Message, Shape};

/// A value that was made under a key: the last one only, so that what is kept has a bound.
pub(crate) struct Memo<T>(Mutex<Option<(u64, T)>>);

impl<T: Clone> Memo<T> {
    /// The value made under `key`, or a new one. `key` stands for everything but the message that the value depends on.
    pub(crate) fn get_or(&self, key: u64, make: impl FnOnce() -> T) -> T {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, value)) = &*known
            && *of == key
        {
            return value.clone();
        }
        drop(known);
        let value = make();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((key, value.clone()));
        value
    }
}

impl<T> Default for Memo<T> {
    fn default() -> Memo<T> {
        Memo(Mutex::new(None))
    }
}

impl<T> fmt::Debug for Memo<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Memo")
    }
}

/// How a message fits a model (see `providers::repair`).
#[derive(Debug, Clone, Default)]
pub(crate) struct Fitted {
    /// What is sent in its place, if it does not fit as it is.
    pub(crate) copy: Option<Arc<Message>>,
    /// Another model's calls are in it, whose ids may have to be others.
    pub(crate) foreign_calls: bool,
}

/// The memos of a message.
#[derive(Debug, Default)]
pub(crate) struct MessageMemos {
    /// How it stands among other messages, whatever the model.
    pub(super) shape: OnceLock<Shape>,
    /// How it fits a model.
    pub(crate) fitted: Memo<Fitted>,
    /// Its JSON text in the form of a protocol; empty if it is left out.
    pub(crate) wire: Memo<Arc<[u8]>>,
}

/// The place of memos in a message, empty until they are asked for. They are no part of the message: copies begin without, and
/// a change forgets them.
#[derive(Default)]
pub(super) struct Memos(OnceLock<Box<MessageMemos>>);

impl Memos {
    pub(super) fn get(&self) -> &MessageMemos {
        self.0.get_or_init(Box::default)
    }
}

impl Clone for Memos {
    fn clone(&self) -> Memos {
        Memos::default()
    }
}

impl PartialEq for Memos {
    fn eq(&self, _: &Memos) -> bool {
        true
    }
}

impl fmt::Debug for Memos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Memos")
    }
}
