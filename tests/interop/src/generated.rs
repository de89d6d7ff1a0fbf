//! What tests of generated texts and values share.

use serde_json::Value;

use crate::Peer;

/// Numbers that are the same in every run.
pub struct Dice(pub u64);

impl Dice {
    /// A number below `sides`.
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % sides as u64) as usize
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.roll(of.len())]
    }

    /// Up to `most` pieces, one behind the other.
    pub fn soup(&mut self, pieces: &[&str], most: usize) -> String {
        (0..=self.roll(most)).map(|_| *self.pick(pieces)).collect()
    }
}

/// A request to a peer, and its answer.
///
/// Errors: the peer's.
pub fn ask(peer: &mut Peer, request: Value) -> Result<Value, String> {
    peer.ask(&request.to_string()).map(|text| serde_json::from_str(&text).expect("JSON"))
}

/// Equal, numbers by value.
pub fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        (a, b) => a == b,
    }
}
