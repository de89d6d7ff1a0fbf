//! Time as session files write it (S12) and as JavaScript reads it.

/// An unreadable time. It compares as equal to every other time (S82).
pub(crate) const UNREADABLE: i64 = i64::MIN;

/// As far from the epoch as JavaScript's dates go.
pub(crate) const MOST_MS: i64 = 8_640_000_000_000_000;

/// `YYYY-MM-DDTHH:MM:SS.mmmZ` for milliseconds since the Unix epoch (S12).
pub fn format_iso(ms: i64) -> String {
    let days = ms.div_euclid(86_400_000);
    let in_day = ms.rem_euclid(86_400_000);
    let (year, month, day) = civil_from_days(days);
    let (hour, minute) = (in_day / 3_600_000, in_day / 60_000 % 60);
    let (second, milli) = (in_day / 1000 % 60, in_day % 1000);
    if (0..=9999).contains(&year) {
        let mut out = *b"0000-00-00T00:00:00.000Z";
        let mut put = |at: usize, width: usize, mut value: i64| {
            for i in (at..at + width).rev() {
                out[i] = b'0' + (value % 10) as u8;
                value /= 10;
            }
        };
        put(0, 4, year);
        put(5, 2, month);
        put(8, 2, day);
        put(11, 2, hour);
        put(14, 2, minute);
        put(17, 2, second);
        put(20, 3, milli);
        return std::str::from_utf8(&out).unwrap_or_default().to_owned();
    }
    let sign = if year < 0 { '-' } else { '+' };
    format!("{sign}{:06}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z", year.abs())
}

/// The text of the last time that was asked for: entries come faster than milliseconds pass.
#[derive(Debug, Default)]
pub(crate) struct Stamp {
    ms: i64,
    text: String,
}

impl Stamp {
    /// [`format_iso`].
    pub(crate) fn at(&mut self, ms: i64) -> &str {
        if self.text.is_empty() || self.ms != ms {
            (self.ms, self.text) = (ms, format_iso(ms));
        }
        &self.text
    }
}

/// Milliseconds since the Unix epoch of an ISO 8601 text in the forms of ECMAScript's date time strings; `None` for
/// anything else. A time without an offset is taken as UTC; a day that its month lacks falls into the next one.
pub fn parse_iso(text: &str) -> Option<i64> {
    let mut at = Reader { bytes: text.as_bytes(), at: 0 };
    let year = match at.peek() {
        Some(b'+') => at.skip().digits(6)?,
        Some(b'-') => match at.skip().digits(6)? {
            0 => return None,
            year => -year,
        },
        _ => at.digits(4)?,
    };
    let (mut month, mut day) = (1, 1);
    if at.eat(b'-') {
        month = at.digits(2)?;
        if at.eat(b'-') {
            day = at.digits(2)?;
        }
    }
    let mut ms = 0;
    if at.eat(b'T') || at.eat(b't') || at.eat(b' ') {
        let hour = at.digits(2)?;
        if !at.eat(b':') {
            return None;
        }
        let minute = at.digits(2)?;
        let (mut second, mut milli) = (0, 0);
        if at.eat(b':') {
            second = at.digits(2)?;
            if at.eat(b'.') {
                milli = at.fraction()?;
            }
        }
        if minute > 59 || second > 59 || hour > 24 || (hour == 24 && minute + second + milli > 0) {
            return None;
        }
        ms = ((hour * 60 + minute) * 60 + second) * 1000 + milli;
        if !at.eat(b'Z') && !at.eat(b'z') && at.peek().is_some() {
            let sign = if at.eat(b'+') {
                1
            } else if at.eat(b'-') {
                -1
            } else {
                return None;
            };
            let hours = at.digits(2)?;
            at.eat(b':');
            let minutes = at.digits(2)?;
            if hours > 23 || minutes > 59 {
                return None;
            }
            ms -= sign * (hours * 60 + minutes) * 60_000;
        }
    }
    if at.peek().is_some() || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let ms = days_from_civil(year, month, day) * 86_400_000 + ms;
    (ms.abs() <= MOST_MS).then_some(ms)
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip(&mut self) -> &mut Self {
        self.at += 1;
        self
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn digits(&mut self, count: usize) -> Option<i64> {
        let mut value = 0;
        for _ in 0..count {
            let digit = self.peek().filter(u8::is_ascii_digit)?;
            value = value * 10 + i64::from(digit - b'0');
            self.at += 1;
        }
        Some(value)
    }

    /// Digits after the point as milliseconds; further ones are cut.
    fn fraction(&mut self) -> Option<i64> {
        let start = self.at;
        let (mut value, mut scale) = (0, 100);
        while let Some(digit) = self.peek().filter(u8::is_ascii_digit) {
            value += scale * i64::from(digit - b'0');
            scale /= 10;
            self.at += 1;
        }
        (self.at > start).then_some(value)
    }
}

/// Days since 1970-01-01 of a proleptic Gregorian date; years are counted from March so that leap days come last.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s12_format_and_parse_agree() {
        for ms in [0, 1, 1_736_931_601_000, -1, 951_782_400_000, 4_102_444_799_999, -62_135_596_800_000] {
            assert_eq!(parse_iso(&format_iso(ms)), Some(ms), "{}", format_iso(ms));
        }
        assert_eq!(format_iso(1_736_931_601_007), "2025-01-15T09:00:01.007Z");
    }

    #[test]
    fn forms_of_ecmascript_dates() {
        assert_eq!(parse_iso("2025-01-15T09:00:01Z"), Some(1_736_931_601_000));
        assert_eq!(parse_iso("2025-01-15T10:00:01+01:00"), Some(1_736_931_601_000));
        assert_eq!(parse_iso("2025-01-15"), Some(1_736_899_200_000));
        assert_eq!(parse_iso("2025"), Some(1_735_689_600_000));
        assert_eq!(parse_iso("2025-02-30"), parse_iso("2025-03-02"));
        assert_eq!(parse_iso("+275760-09-13T00:00:00.000Z"), Some(MOST_MS));
        assert_eq!(parse_iso("+275760-09-13T00:00:00.001Z"), None);
        assert_eq!(parse_iso("-271821-04-20T00:00:00Z"), Some(-MOST_MS));
        for bad in ["", "??", "yesterday", "2025-13-01", "2025-02-32", "2025-01-15T25:00Z", "2025-01-15Tx", "12"] {
            assert_eq!(parse_iso(bad), None, "{bad}");
        }
    }
}
