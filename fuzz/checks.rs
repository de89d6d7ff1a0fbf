//! What must hold for any input. Shared by the fuzz targets and by the test that runs their seeds.

mod arguments;
mod events;
mod response;

/// Checks what the target of that name reads.
pub(crate) fn check(target: &str, data: &[u8]) {
    match target {
        "sse" => events::check(data),
        "partial_json" => arguments::check(data),
        "anthropic" => response::check("anthropic-messages", data),
        "google" => response::check("google-generative-ai", data),
        "openai_chat" => response::check("openai-completions", data),
        "openai_responses" => response::check("openai-responses", data),
        other => panic!("no target {other}"),
    }
}

/// Numbers that depend on the input alone, so that a failure can be made again.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(data: &[u8]) -> Dice {
        Dice(
            data.iter()
                .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
                | 1,
        )
    }

    /// A number below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }

    /// The input cut into pieces, as reads of a connection cut it.
    pub(crate) fn pieces<'a>(&mut self, mut data: &'a [u8]) -> Vec<&'a [u8]> {
        let longest = [1, 2, 9, 80, 1 + data.len()][self.below(5)];
        let mut out = Vec::new();
        while !data.is_empty() {
            let (piece, rest) = data.split_at(data.len().min(1 + self.below(longest)));
            out.push(piece);
            data = rest;
        }
        out
    }
}
