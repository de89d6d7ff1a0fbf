//! Bytes that arrive in pieces as text (T212): invalid ones replaced, characters split over pieces joined, one byte order
//! mark at the very start dropped.

/// A decoder. What it was given and has not handed out is at most three bytes.
#[derive(Default)]
pub(super) struct Utf8Stream {
    held: Vec<u8>,
    begun: bool,
}

impl Utf8Stream {
    /// Decodes a piece and hands out its text, in one or more parts.
    pub(super) fn push(&mut self, data: &[u8], mut out: impl FnMut(&str)) {
        let joined;
        let mut data = data;
        if !self.held.is_empty() {
            joined = [self.held.as_slice(), data].concat();
            self.held.clear();
            data = &joined;
        }
        if !self.begun {
            const MARK: &[u8] = b"\xef\xbb\xbf";
            if data.len() < MARK.len() && MARK.starts_with(data) {
                self.held = data.to_vec();
                return;
            }
            self.begun = true;
            data = data.strip_prefix(MARK).unwrap_or(data);
        }
        loop {
            match std::str::from_utf8(data) {
                Ok(text) => {
                    if !text.is_empty() {
                        out(text);
                    }
                    return;
                }
                Err(error) => {
                    let (valid, rest) = data.split_at(error.valid_up_to());
                    if let Ok(text) = std::str::from_utf8(valid)
                        && !text.is_empty()
                    {
                        out(text);
                    }
                    let Some(bad) = error.error_len() else {
                        self.held = rest.to_vec();
                        return;
                    };
                    out("\u{fffd}");
                    data = &rest[bad..];
                }
            }
        }
    }

    /// Hands out what was held back.
    pub(super) fn finish(&mut self, mut out: impl FnMut(&str)) {
        let held = std::mem::take(&mut self.held);
        if !held.is_empty() {
            out(&String::from_utf8_lossy(&held));
        }
        self.begun = true;
    }
}

#[cfg(test)]
mod tests {
    use super::Utf8Stream;

    fn decode(pieces: &[&[u8]]) -> String {
        let mut out = String::new();
        let mut stream = Utf8Stream::default();
        for piece in pieces {
            stream.push(piece, |text| out.push_str(text));
        }
        stream.finish(|text| out.push_str(text));
        out
    }

    #[test]
    fn pieces_are_joined_and_faults_replaced() {
        assert_eq!(decode(&[b"\xe2", b"\x82", b"\xac!"]), "€!");
        assert_eq!(decode(&[b"\xef\xbb", b"\xbf", b"a\xef\xbb\xbfb"]), "a\u{feff}b");
        assert_eq!(decode(&[b"a\xffb\xc3(", b"c\xe2\x82"]), "a\u{fffd}b\u{fffd}(c\u{fffd}");
        assert_eq!(decode(&[b"\xef"]), "\u{fffd}");
        // However it is cut, the text is the same.
        let bytes = "aé€😀".as_bytes();
        for at in 0..bytes.len() {
            assert_eq!(decode(&[&bytes[..at], &bytes[at..]]), "aé€😀");
        }
    }
}
