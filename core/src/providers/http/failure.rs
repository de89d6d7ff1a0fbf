//! Why a request came to nothing, in a form protocols and the loop can act on (P101–P105).

use std::io;
use std::time::{Duration, SystemTime};

use reqwest::header::HeaderMap;

/// Longer error bodies are cut in messages (P101).
const SHOWN: usize = 4000;

/// An answer that is no success.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    /// The HTTP status.
    pub(crate) status: u16,
    /// Its body as text, at most 64 KiB of it, secrets removed.
    pub(crate) body: String,
    /// The pause the service asked for.
    pub(crate) retry_after: Option<Duration>,
    /// What the service itself says about repeating (`x-should-retry`).
    pub(crate) should_retry: Option<bool>,
}

/// Why a request came to nothing.
#[derive(Debug, Clone)]
pub(crate) enum Failure {
    /// The request's token fired.
    Aborted,
    /// The service refused.
    Refused(Refusal),
    /// A pause longer than allowed was asked for (P105).
    TooLong { asked: Duration, allowed: Duration, refusal: Refusal },
    /// There was no connection, or none any more. A sentence that keeps the words by which errors are classified.
    Network(String),
    /// Nothing that trying again would change: a bad address, a file of certificates that cannot be read.
    Setup(String),
}

impl Refusal {
    /// The body as it stands in a message: cut at 4000 characters with a note (P101).
    pub(crate) fn shown(&self) -> String {
        cut(&self.body)
    }

    /// Whether the request may be made again (P103).
    pub(crate) fn is_retryable(&self) -> bool {
        self.should_retry.unwrap_or(matches!(self.status, 408 | 409 | 429 | 500..))
    }
}

impl Failure {
    /// The pause the service asked for.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Failure::Refused(refusal) => refusal.retry_after,
            Failure::TooLong { asked, .. } => Some(*asked),
            _ => None,
        }
    }
}

/// A text cut at 4000 characters with a note.
pub(crate) fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}… [{} more bytes]", &text[..at], text.len() - at),
        None => text.to_owned(),
    }
}

/// The words for a failed connection: a general text, and the deepest cause with its code (P102).
pub(crate) fn network(error: reqwest::Error) -> Failure {
    let error = error.without_url();
    if error.is_builder() {
        return Failure::Setup(format!("the request could not be made: {}", deepest(&error)));
    }
    let general = if error.is_timeout() {
        "Connection timed out"
    } else if error.is_connect() {
        "Connection error"
    } else {
        "Network error: the connection was lost"
    };
    Failure::Network(format!("{general}: {}", deepest(&error)))
}

/// The deepest cause of an error, with the usual code of a system error.
fn deepest(error: &reqwest::Error) -> String {
    let mut code = None;
    let mut cause: &dyn std::error::Error = error;
    loop {
        if let Some(io) = cause.downcast_ref::<io::Error>() {
            code = name(io.kind()).or(code);
        }
        match cause.source() {
            Some(deeper) => cause = deeper,
            None => break,
        }
    }
    match code {
        Some(code) => format!("{cause} ({code})"),
        None => cause.to_string(),
    }
}

fn name(kind: io::ErrorKind) -> Option<&'static str> {
    Some(match kind {
        io::ErrorKind::ConnectionRefused => "ECONNREFUSED",
        io::ErrorKind::ConnectionReset => "ECONNRESET",
        io::ErrorKind::ConnectionAborted => "ECONNABORTED",
        io::ErrorKind::BrokenPipe => "EPIPE",
        io::ErrorKind::TimedOut => "ETIMEDOUT",
        io::ErrorKind::HostUnreachable => "EHOSTUNREACH",
        io::ErrorKind::NetworkUnreachable => "ENETUNREACH",
        io::ErrorKind::UnexpectedEof => "other side closed",
        _ => return None,
    })
}

/// The pause asked for: `retry-after-ms`, else `retry-after` in seconds or as a date (P104).
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let seconds = |text: &str, unit: f64| {
        let number: f64 = text.parse().ok()?;
        // A year is as good as for ever, and no number may make a duration overflow.
        (number.is_finite() && number >= 0.0).then(|| Duration::from_secs_f64((number * unit).min(31_536_000.0)))
    };
    if let Some(pause) = text("retry-after-ms").and_then(|text| seconds(text, 0.001)) {
        return Some(pause);
    }
    let text = text("retry-after")?;
    seconds(text, 1.0).or_else(|| Some(date(text)?.duration_since(SystemTime::now()).unwrap_or_default()))
}

/// An HTTP date in its usual form, `Sun, 06 Nov 1994 08:49:37 GMT`.
fn date(text: &str) -> Option<SystemTime> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut parts = text.split_once(", ")?.1.split(' ');
    let mut next = || parts.next();
    let day: i64 = next()?.parse().ok()?;
    let month = next()?;
    let month = MONTHS.iter().position(|name| *name == month)? as i64 + 1;
    let year: i64 = next()?.parse().ok()?;
    let mut clock = next()?.split(':').map(|part| part.parse::<i64>().ok());
    let (hours, minutes, seconds) = (clock.next()??, clock.next()??, clock.next()??);
    let fits = (1..=31).contains(&day) && (1970..=9999).contains(&year) && hours < 24 && minutes < 60 && seconds < 61;
    if !fits || hours < 0 || minutes < 0 || seconds < 0 {
        return None;
    }
    // Days since the epoch, with years beginning in March.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 719_469;
    let total = days * 86_400 + hours * 3600 + minutes * 60 + seconds;
    Some(SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(total).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        let at = |text| date(text).and_then(|it| it.duration_since(SystemTime::UNIX_EPOCH).ok()).map(|it| it.as_secs());
        assert_eq!(at("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(at("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(at("Sun, 29 Feb 2032 00:00:01 GMT"), Some(1_961_625_601));
        assert_eq!(at("soon"), None);
        assert_eq!(at("Sun, 06 Foo 1994 08:49:37 GMT"), None);
    }

    #[test]
    fn p104_pauses() {
        let headers = |pairs: &[(&'static str, &'static str)]| {
            let mut map = HeaderMap::new();
            pairs.iter().for_each(|(name, value)| {
                map.insert(*name, value.parse().unwrap());
            });
            retry_after(&map)
        };
        assert_eq!(headers(&[("retry-after-ms", "20"), ("retry-after", "9")]), Some(Duration::from_millis(20)));
        assert_eq!(headers(&[("retry-after", "1.5")]), Some(Duration::from_millis(1500)));
        assert_eq!(headers(&[("retry-after", "Thu, 01 Jan 1970 00:00:00 GMT")]), Some(Duration::ZERO));
        assert_eq!(headers(&[("retry-after", "-4")]), None);
        assert_eq!(headers(&[("retry-after", "1e300")]), Some(Duration::from_secs(31_536_000)));
        assert_eq!(headers(&[]), None);
    }

    #[test]
    fn p101_long_bodies_are_cut() {
        let text = "é".repeat(4001);
        let cut = cut(&text);
        assert!(cut.starts_with(&"é".repeat(4000)) && cut.ends_with("[2 more bytes]"), "{}", cut.len());
    }
}
