//! What is worked out from a message for each request, kept with the message for the next one.
//!
//! A conversation is sent again with every request, and all of it but the end is as it was. So the forms of a message are
//! made once for a model and live as long as the message; a long conversation costs a request little more than its bytes.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::Message;

/// A value that was made under a key: the last one only, so that what is kept has a bound. It is no part of the message:
/// copies begin without, and a change of the message forgets it.
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

impl<T> Clone for Memo<T> {
    fn clone(&self) -> Memo<T> {
        Memo::default()
    }
}

impl<T> PartialEq for Memo<T> {
    fn eq(&self, _: &Memo<T>) -> bool {
        true
    }
}

impl<T> fmt::Debug for Memo<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Memo")
    }
}

/// How a message fits a model (see `providers::repair`).
#[derive(Debug, Clone)]
pub(crate) struct Fitted {
    /// What is sent in its place, if it does not fit as it is.
    pub(crate) copy: Option<Arc<Message>>,
    /// Another model's calls are in it, whose ids may have to be others.
    pub(crate) foreign_calls: bool,
}

/// The memos of a message.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Memos {
    /// How it fits a model.
    pub(crate) fitted: Memo<Fitted>,
    /// Its JSON text in the form of a protocol; empty if it is left out.
    pub(crate) wire: Memo<Arc<[u8]>>,
}
