//! Looking at a block of bytes at once: which of them are quotes, backslashes or control characters.
//!
//! A mask holds one bit per byte of the block, the first byte lowest. x86-64 always has SSE2, which yields such masks
//! directly; everywhere else the same masks are computed eight bytes at a time in ordinary integers.

/// Bytes in a block.
pub(super) const LEN: usize = 32;

/// A block, as the functions here take it.
pub(super) type Block = [u8; LEN];

/// The classes of byte that matter inside a string, told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Masks {
    /// Bytes that are `"`.
    pub(super) quote: u32,
    /// Bytes that are `\`.
    pub(super) backslash: u32,
    /// Bytes below 0x20.
    pub(super) control: u32,
}

/// The block at the start of `bytes`, filled up with zeros when fewer bytes are left.
///
/// Zero counts as a control character, so whoever looks for the end of a string stops at the filling by itself.
#[inline]
pub(super) fn padded(bytes: &[u8]) -> Block {
    let mut block = [0; LEN];
    for (to, from) in block.iter_mut().zip(bytes) {
        *to = *from;
    }
    block
}

/// Appends `bytes`, except for those that `stop` finds: there `replace` is called with the rest of the bytes, appends
/// what it wants and says how many bytes that was for.
///
/// Whole blocks are copied and what was too much is taken back: text has something to stop at every few bytes, and
/// this way no copy has a length that varies.
#[inline]
pub(super) fn copy_replacing(
    out: &mut Vec<u8>,
    bytes: &[u8],
    stop: impl Fn(&Block) -> u32,
    mut replace: impl FnMut(&mut Vec<u8>, &[u8]) -> usize,
) {
    let mut at = 0;
    while let Some(whole) = bytes.get(at..).and_then(<[u8]>::first_chunk::<LEN>) {
        let stops = stop(whole);
        if stops == 0 {
            // Prose goes on like this for a while: one copy for all of it.
            let rest = bytes.get(at + LEN..).unwrap_or_default();
            let clean = |block: &&[u8]| block.first_chunk::<LEN>().is_some_and(|block| stop(block) == 0);
            let len = LEN * (1 + rest.chunks_exact(LEN).take_while(clean).count());
            out.extend_from_slice(bytes.get(at..at + len).unwrap_or_default());
            at += len;
            continue;
        }
        at += copy_run(out, whole, stops, LEN);
        at += replace(out, bytes.get(at..).unwrap_or_default()).max(1);
    }
    // What is left, with enough behind it that every part of it is a whole block.
    let tail = bytes.get(at..).unwrap_or_default();
    let mut filled = [0; 2 * LEN];
    filled[..LEN].copy_from_slice(&padded(tail));
    let mut at = 0;
    while let Some((rest, block)) = tail.get(at..).zip(filled.get(at..).and_then(<[u8]>::first_chunk::<LEN>)) {
        let run = copy_run(out, block, stop(block), rest.len());
        at += run;
        if run == rest.len() {
            break;
        }
        at += replace(out, rest.get(run..).unwrap_or_default()).max(1);
    }
}

/// Appends the bytes of a block in front of the first of `stops` and of `len`; how many these are.
#[inline]
fn copy_run(out: &mut Vec<u8>, block: &Block, stops: u32, len: usize) -> usize {
    let before = out.len();
    let run = len.min(stops.trailing_zeros() as usize);
    out.extend_from_slice(block);
    out.truncate(before + run);
    run
}

/// Whether a text has nothing that [`special`] finds. For short texts; eight bytes at a time.
#[inline]
pub(super) fn is_plain(text: &[u8]) -> bool {
    let Some(last) = text.last_chunk::<8>() else {
        return text.iter().all(|byte| *byte >= 0x20 && *byte != b'"' && *byte != b'\\');
    };
    let (words, _) = text.as_chunks::<8>();
    words.iter().chain([last]).all(|word| portable::special_in(u64::from_le_bytes(*word)) == 0)
}

#[cfg(target_arch = "x86_64")]
pub(super) use sse2::{escape_masks, masks, special};

#[cfg(not(target_arch = "x86_64"))]
pub(super) use portable::{escape_masks, masks, special};

#[cfg(target_arch = "x86_64")]
mod sse2 {
    use super::{Block, LEN, Masks};
    use std::arch::x86_64::{
        __m128i, _mm_cmpeq_epi8, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x, _mm_set1_epi8,
    };

    /// Bytes that end a plain run inside a string: quote, backslash or control character.
    #[inline]
    pub(in super::super) fn special(block: &Block) -> u32 {
        // SAFETY: SSE2 is part of the x86-64 baseline, so the processor has it.
        unsafe { special_sse2(block) }
    }

    /// The three classes of [`special`] told apart.
    #[inline]
    pub(in super::super) fn masks(block: &Block) -> Masks {
        // SAFETY: SSE2 is part of the x86-64 baseline, so the processor has it.
        unsafe { masks_sse2(block) }
    }

    /// Bytes that may follow a backslash apart from quote and backslash themselves, and those of them that are `u` or
    /// `/`, whose escapes are not the only form of what they stand for.
    #[inline]
    pub(in super::super) fn escape_masks(block: &Block) -> (u32, u32) {
        // SAFETY: SSE2 is part of the x86-64 baseline, so the processor has it.
        unsafe { escape_masks_sse2(block) }
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn halves(block: &Block) -> [__m128i; 2] {
        let mut words = [0i64; LEN / 8];
        for (word, bytes) in words.iter_mut().zip(block.as_chunks::<8>().0) {
            *word = i64::from_le_bytes(*bytes);
        }
        [_mm_set_epi64x(words[1], words[0]), _mm_set_epi64x(words[3], words[2])]
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn mask(of: impl Fn(__m128i) -> __m128i, halves: [__m128i; 2]) -> u32 {
        let [low, high] = halves.map(|half| _mm_movemask_epi8(of(half)).cast_unsigned());
        low | (high << 16)
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn is(bytes: __m128i, byte: u8) -> __m128i {
        _mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte.cast_signed()))
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn is_control(bytes: __m128i) -> __m128i {
        _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1f)), bytes)
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn special_sse2(block: &Block) -> u32 {
        let one = |v| _mm_or_si128(_mm_or_si128(is(v, b'"'), is(v, b'\\')), is_control(v));
        mask(one, halves(block))
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn masks_sse2(block: &Block) -> Masks {
        let halves = halves(block);
        Masks {
            quote: mask(|v| is(v, b'"'), halves),
            backslash: mask(|v| is(v, b'\\'), halves),
            control: mask(|v| is_control(v), halves),
        }
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn escape_masks_sse2(block: &Block) -> (u32, u32) {
        let halves = halves(block);
        let fixed = |v| {
            let line = _mm_or_si128(is(v, b'n'), is(v, b't'));
            _mm_or_si128(_mm_or_si128(line, is(v, b'r')), _mm_or_si128(is(v, b'b'), is(v, b'f')))
        };
        let other = mask(|v| _mm_or_si128(is(v, b'u'), is(v, b'/')), halves);
        (mask(fixed, halves) | other, other)
    }
}

#[cfg_attr(target_arch = "x86_64", allow(dead_code))] // there only `special_in` is used outside of tests
mod portable {
    use super::{Block, Masks};

    const LOW_BITS: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    const HIGH_BITS: u64 = !LOW_BITS;
    const ONES: u64 = 0x0101_0101_0101_0101;

    /// Bytes that end a plain run inside a string: quote, backslash or control character.
    #[inline]
    pub(in super::super) fn special(block: &Block) -> u32 {
        mask(block, special_in)
    }

    /// [`special`] for eight bytes: the high bit of each that ends a plain run.
    #[inline]
    pub(super) fn special_in(word: u64) -> u64 {
        is(word, b'"') | is(word, b'\\') | is_control(word)
    }

    /// The three classes of [`special`] told apart.
    #[inline]
    pub(in super::super) fn masks(block: &Block) -> Masks {
        Masks {
            quote: mask(block, |word| is(word, b'"')),
            backslash: mask(block, |word| is(word, b'\\')),
            control: mask(block, is_control),
        }
    }

    /// Bytes that may follow a backslash apart from quote and backslash themselves, and those of them that are `u` or
    /// `/`, whose escapes are not the only form of what they stand for.
    #[inline]
    pub(in super::super) fn escape_masks(block: &Block) -> (u32, u32) {
        let any = mask(block, |word| b"/bfnrtu".iter().fold(0, |found, byte| found | is(word, *byte)));
        (any, mask(block, |word| is(word, b'u') | is(word, b'/')))
    }

    /// The high bit of each byte of `flags(word)`, gathered for all words of the block.
    #[inline]
    fn mask(block: &Block, flags: impl Fn(u64) -> u64) -> u32 {
        let mut all = 0;
        for (index, bytes) in block.as_chunks::<8>().0.iter().enumerate() {
            // The product moves the eight flags, eight bits apart, next to each other into the top byte.
            let byte = (flags(u64::from_le_bytes(*bytes)) >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56;
            all |= (byte as u32) << (8 * index);
        }
        all
    }

    /// High bits of the bytes equal to `byte`; exact, no carry crosses a byte.
    #[inline]
    fn is(word: u64, byte: u8) -> u64 {
        let differs = word ^ (ONES * u64::from(byte));
        !(((differs & LOW_BITS) + LOW_BITS) | differs) & HIGH_BITS
    }

    /// High bits of the bytes below 0x20, which are those with none of their upper three bits set.
    #[inline]
    fn is_control(word: u64) -> u64 {
        is(word & (ONES * 0xe0), 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_agree_with_bytes_one_by_one() {
        let bit = |block: &Block, of: &dyn Fn(u8) -> bool| {
            block.iter().enumerate().fold(0u32, |mask, (index, byte)| mask | (u32::from(of(*byte)) << index))
        };
        for start in 0..=255u8 {
            for step in [0u8, 1, 7, 31, 64, 91] {
                let block: Block = std::array::from_fn(|index| start.wrapping_add(step.wrapping_mul(index as u8)));
                let quote = bit(&block, &|byte| byte == b'"');
                let backslash = bit(&block, &|byte| byte == b'\\');
                let control = bit(&block, &|byte| byte < 0x20);
                let letters = bit(&block, &|byte| b"/bfnrtu".contains(&byte));
                let expected = Masks { quote, backslash, control };
                let escapes = (letters, bit(&block, &|byte| b"u/".contains(&byte)));
                assert_eq!((masks(&block), escape_masks(&block)), (expected, escapes));
                assert_eq!((portable::masks(&block), portable::escape_masks(&block)), (expected, escapes));
                assert_eq!(special(&block), quote | backslash | control);
                assert_eq!(portable::special(&block), quote | backslash | control);
            }
        }
    }

    #[test]
    fn a_short_block_is_filled_with_zeros() {
        assert_eq!(padded(b"ab")[..4], *b"ab\0\0");
        assert_eq!(padded(&[b'x'; 100]), [b'x'; LEN]);
    }
}
