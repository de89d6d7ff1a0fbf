//! A clock that stands still and ids that are the same in every run, so that two runs can be compared.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use branchline::tree::{IdSource, format_iso};
use uuid::Uuid;

/// The one moment of a run: later than everything in the corpus.
pub(super) const NOW_MS: i64 = 1_893_456_000_123;

/// Times and ids of one run of one case.
#[derive(Debug, Default)]
pub(super) struct Clock {
    entries: AtomicU64,
    sessions: AtomicU64,
    forced: Mutex<VecDeque<Uuid>>,
    drawn: Mutex<Vec<Uuid>>,
}

impl Clock {
    /// One whose ids no other run draws.
    pub(super) fn apart() -> Clock {
        Clock { entries: AtomicU64::new(1 << 40), sessions: AtomicU64::new(1 << 40), ..Clock::default() }
    }

    /// The n-th entry id, counted from 1.
    pub(super) fn drawn(&self, number: usize) -> Option<String> {
        let drawn = self.drawn.lock().expect("no panic while held");
        drawn.get(number.checked_sub(1)?).map(|uuid| uuid.to_string().chars().take(8).collect())
    }

    /// The next random UUIDs (`forceUuids`).
    pub(super) fn force(&self, uuids: impl IntoIterator<Item = Uuid>) {
        self.forced.lock().expect("no panic while held").extend(uuids);
    }
}

/// A well mixed number for the n-th draw (splitmix64).
fn draw(counter: &AtomicU64) -> u64 {
    let mut z = (counter.fetch_add(1, Ordering::Relaxed) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl IdSource for Clock {
    fn random_uuid(&self) -> Uuid {
        if let Some(forced) = self.forced.lock().expect("no panic while held").pop_front() {
            return forced;
        }
        let bytes = ((u128::from(draw(&self.entries)) << 64) | u128::from(draw(&self.entries))).to_be_bytes();
        let uuid = uuid::Builder::from_random_bytes(bytes).into_uuid();
        self.drawn.lock().expect("no panic while held").push(uuid);
        uuid
    }

    fn session_uuid(&self) -> Uuid {
        let mut random = [0; 10];
        random[..8].copy_from_slice(&draw(&self.sessions).to_be_bytes());
        uuid::Builder::from_unix_timestamp_millis(NOW_MS as u64, &random).into_uuid()
    }

    fn now_ms(&self) -> i64 {
        NOW_MS
    }
}

/// The UUID that `text` is. A text that is none gives one that shares its first eight digits with every other text that
/// begins alike, which is what collisions of entry ids depend on (S13).
pub(super) fn uuid_like(text: &str) -> Uuid {
    let mix = |text: &str| {
        text.bytes().fold(0xcbf2_9ce4_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    };
    Uuid::parse_str(text).unwrap_or_else(|_| {
        let start: String = text.chars().take(8).collect();
        let bits = (u128::from(mix(&start) as u32) << 96) | u128::from(mix(text));
        uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid()
    })
}

/// The placeholders every case knows: the moment in its two spellings, and what the corpus calls by name.
pub(super) fn placeholders(dir: &str) -> Vec<(&'static str, String)> {
    use branchline::agent::transform as prose;
    let cwd = std::env::current_dir().map(|dir| dir.display().to_string()).unwrap_or_default();
    let now = format_iso(NOW_MS);
    vec![
        ("@fts", now.replace([':', '.'], "-")),
        ("@ts", now),
        // In a line. Elsewhere a time may be the system's.
        ("\"@ms\"", NOW_MS.to_string()),
        ("@dir", dir.to_owned()),
        ("@file", format!("{dir}/session.jsonl")),
        ("@cwd", cwd),
        ("{{COMPACTION_PREFIX}}", prose::COMPACTION_PREFIX.to_owned()),
        ("{{COMPACTION_SUFFIX}}", prose::COMPACTION_SUFFIX.to_owned()),
        ("{{BRANCH_PREFIX}}", prose::BRANCH_PREFIX.to_owned()),
        ("{{BRANCH_SUFFIX}}", prose::BRANCH_SUFFIX.to_owned()),
        ("{{USER_IMAGE_NOTICE}}", prose::USER_IMAGE_NOTICE.to_owned()),
        ("{{TOOL_IMAGE_NOTICE}}", prose::TOOL_IMAGE_NOTICE.to_owned()),
    ]
}
