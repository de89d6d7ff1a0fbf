//! Reading a small text file that somebody else wrote: only a regular one, and only so much of it.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// A text and whether it is only the beginning.
pub(super) struct Text {
    pub(super) text: String,
    pub(super) cut: bool,
}

/// Reads at most `limit` bytes of a regular file. A byte order mark is dropped, bytes that are no UTF-8 are replaced.
pub(super) fn text(path: &Path, limit: usize) -> io::Result<Text> {
    // Asked first: opening a pipe would wait for a writer.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(limit as u64 + 1).read_to_end(&mut bytes)?;
    let cut = bytes.len() > limit;
    if cut {
        bytes.truncate(limit);
        // Not in the middle of a character.
        let whole = bytes.len() - bytes.iter().rev().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
        let last = whole.saturating_sub(1);
        if let Err(error) = std::str::from_utf8(&bytes[last..])
            && error.error_len().is_none()
        {
            bytes.truncate(last);
        }
    }
    let text = String::from_utf8_lossy(&bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned();
    Ok(Text { text, cut })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_never_cuts_a_character() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        std::fs::write(&path, "\u{feff}aé€😀").unwrap();
        let whole = "aé€😀";
        for limit in 3..20 {
            let read = text(&path, limit).unwrap();
            assert!(whole.starts_with(&read.text), "{limit}: {:?}", read.text);
            assert_eq!(read.cut, limit < 13);
        }
        assert_eq!(text(&path, 13).unwrap().text, whole);
        assert!(text(dir.path(), 5).is_err());
    }
}
