//! Where ids and times come from: replaceable, so that tests and replays are exact (S13, S15).

use std::fmt;
use std::sync::{Mutex, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use uuid::{ContextV7, Timestamp, Uuid};

/// A source of ids and of the current time. Called from any thread.
pub trait IdSource: Send + Sync + fmt::Debug {
    /// A fresh random UUID, version 4; entry ids are cut from it (S13).
    fn random_uuid(&self) -> Uuid;
    /// A fresh session id, UUID version 7 (S15).
    fn session_uuid(&self) -> Uuid;
    /// Now, in milliseconds since the Unix epoch.
    fn now_ms(&self) -> i64;
}

/// The system's clock and random numbers.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemIds;

impl IdSource for SystemIds {
    fn random_uuid(&self) -> Uuid {
        Uuid::new_v4()
    }

    /// Strictly increasing within the process, whatever the clock does (S15).
    fn session_uuid(&self) -> Uuid {
        static CONTEXT: OnceLock<Mutex<ContextV7>> = OnceLock::new();
        let context = CONTEXT.get_or_init(|| Mutex::new(ContextV7::new()));
        let context = context.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Uuid::new_v7(Timestamp::from_unix(&*context, now.as_secs(), now.subsec_nanos()))
    }

    fn now_ms(&self) -> i64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_millis() as i64)
    }
}

/// Whether a caller may use `id` for a session (S16).
pub fn is_valid_session_id(id: &str) -> bool {
    let bytes = id.as_bytes();
    let inner = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let edge = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    edge(bytes.first()) && edge(bytes.last()) && bytes.iter().all(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s15_session_ids_increase() {
        let mut last = SystemIds.session_uuid();
        for _ in 0..10_000 {
            let next = SystemIds.session_uuid();
            assert!(next > last);
            assert_eq!(next.get_version_num(), 7);
            last = next;
        }
    }

    #[test]
    fn s16_chosen_session_ids() {
        for good in ["a", "my-id.1", "A_b", "0"] {
            assert!(is_valid_session_id(good), "{good}");
        }
        for bad in ["", "-bad", "bad-", ".", "a b", "ä", "a/b", "_a"] {
            assert!(!is_valid_session_id(bad), "{bad}");
        }
    }
}
