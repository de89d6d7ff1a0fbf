//! Finding the end of a string literal, a block at a time.

use super::block::{self, Block, LEN};
use super::scan::SyntaxError;

const EVEN: u64 = 0x5555_5555_5555_5555;

/// Where the string whose body starts at `start` ends: the offset behind its closing quote.
///
/// Control characters and wrong escapes are errors, at the offset of the first offending byte. `reducible` is set when
/// there is an escape that can be written in another way: `\uXXXX` or `\/`.
#[inline]
pub(super) fn end(text: &[u8], start: usize, reducible: &mut bool) -> Result<usize, SyntaxError> {
    let mut at = start;
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let special = match rest.first_chunk::<LEN>() {
            Some(whole) => block::special(whole),
            None => block::special(&block::padded(rest)),
        };
        if special != 0 {
            at += special.trailing_zeros() as usize;
            return match text.get(at) {
                Some(b'"') => Ok(at + 1),
                Some(b'\\') => end_with_escapes(text, at, reducible),
                _ => Err(SyntaxError { offset: at.min(text.len()) }),
            };
        }
        at += LEN;
    }
}

/// [`end`] for the part of a string from its first backslash on. All escapes of a block are dealt with together, since
/// text with line breaks has one every few bytes.
#[inline(never)]
fn end_with_escapes(text: &[u8], start: usize, reducible: &mut bool) -> Result<usize, SyntaxError> {
    let mut at = start;
    // 1 when the first byte of the block is escaped by the last one of the block before.
    let mut carried = 0u64;
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let filled: Block;
        let bytes = match rest.first_chunk::<LEN>() {
            Some(whole) => whole,
            None => {
                filled = block::padded(rest);
                &filled
            }
        };
        let masks = block::masks(bytes);
        let escaped = escaped(u64::from(masks.backslash) & !carried) | carried;
        carried = escaped >> LEN;
        let escaped = escaped as u32;

        let close = masks.quote & !escaped;
        // All bits below the closing quote, or all bits when it is not in this block.
        let inside = (close & close.wrapping_neg()).wrapping_sub(1);
        let mut wrong = masks.control & inside;
        if escaped != 0 {
            let (letters, other) = block::escape_masks(bytes);
            wrong |= escaped & !(letters | masks.quote | masks.backslash) & inside;
            if other & escaped & inside != 0 {
                *reducible = true;
                check_hex(text, at, other & escaped & inside, wrong)?;
            }
        }
        if wrong != 0 {
            return Err(SyntaxError { offset: (at + wrong.trailing_zeros() as usize).min(text.len()) });
        }
        if close != 0 {
            return Ok(at + close.trailing_zeros() as usize + 1);
        }
        at += LEN;
    }
}

/// The bytes escaped by the backslashes in `backslashes`, of which the first is not escaped itself.
///
/// In a run of backslashes every second byte is escaped, the first time behind the run's first one, and the last time
/// behind its end when the run is odd. Adding the first bit of a run to the run flips exactly the run and the bit
/// behind it, and of those the ones at the other parity than the first are the escaped ones.
#[inline]
fn escaped(backslashes: u64) -> u64 {
    let first = backslashes & !(backslashes << 1);
    let even_runs = backslashes ^ backslashes.wrapping_add(first & EVEN);
    let odd_runs = backslashes ^ backslashes.wrapping_add(first & !EVEN);
    (even_runs & !EVEN) | (odd_runs & EVEN)
}

/// Checks the four digits behind each `u` among the `letters` of a block at `at`, as far as no earlier byte is `wrong`.
fn check_hex(text: &[u8], at: usize, mut letters: u32, wrong: u32) -> Result<(), SyntaxError> {
    while letters != 0 && letters.trailing_zeros() < wrong.trailing_zeros() {
        let letter = at + letters.trailing_zeros() as usize;
        letters &= letters - 1;
        if text.get(letter) != Some(&b'u') {
            continue;
        }
        for offset in letter + 1..letter + 5 {
            if !text.get(offset).is_some_and(u8::is_ascii_hexdigit) {
                return Err(SyntaxError { offset: offset.min(text.len()) });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same answer, one byte after the other.
    fn slow(text: &[u8], start: usize) -> Result<usize, SyntaxError> {
        let mut at = start;
        loop {
            match text.get(at) {
                Some(b'"') => return Ok(at + 1),
                Some(b'\\') => match text.get(at + 1) {
                    Some(b'u') => {
                        for digit in at + 2..at + 6 {
                            if !text.get(digit).is_some_and(u8::is_ascii_hexdigit) {
                                return Err(SyntaxError { offset: digit.min(text.len()) });
                            }
                        }
                        at += 6;
                    }
                    Some(byte) if b"\"\\/bfnrt".contains(byte) => at += 2,
                    _ => return Err(SyntaxError { offset: (at + 1).min(text.len()) }),
                },
                Some(0x20..) => at += 1,
                _ => return Err(SyntaxError { offset: at.min(text.len()) }),
            }
        }
    }

    #[test]
    fn agrees_with_the_byte_by_byte_search() {
        let mut seed = 7u64;
        let mut next = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % below
        };
        let alphabets: [&[u8]; 4] =
            [b"\\\\\\\"", b"aaaaaaaa\\n\\t\\\\", b"\\u00dD8\\/z\"", b"abcdefghijklmnopqrstuvw\xff\xc3"];
        for round in 0..20_000 {
            let mut text = Vec::new();
            for _ in 0..next(90) {
                let alphabet = alphabets[(round + next(2)) % alphabets.len()];
                text.push(alphabet[next(alphabet.len())]);
            }
            if next(3) == 0 {
                text.push(next(32) as u8);
            }
            text.extend_from_slice(&b"\\\"\"abc"[next(3)..]);
            for start in 0..text.len().min(5) {
                let mut reducible = false;
                let found = end(&text, start, &mut reducible);
                assert_eq!(found, slow(&text, start), "{:?} from {start}", String::from_utf8_lossy(&text));
                if let Ok(end) = found {
                    // Without the pairs of backslashes, what is left of them begins an escape.
                    let body = text[start..end].to_vec();
                    let body = String::from_utf8_lossy(&body).replace("\\\\", "");
                    assert_eq!(reducible, body.contains("\\u") || body.contains("\\/"), "{body}");
                }
            }
        }
    }

    #[test]
    fn a_cut_string_ends_at_the_text() {
        let text = [b'a'; 200];
        for len in 0..200 {
            assert_eq!(end(&text[..len], 0, &mut false), Err(SyntaxError { offset: len }));
        }
    }
}
