//! Numbers as JavaScript writes them (S4), and whether that form still says the same as the source text.

use std::cmp::Ordering;

/// The JavaScript form of `value`; `null` when it is not finite.
pub(super) fn form(value: f64, buffer: &mut ryu_js::Buffer) -> &[u8] {
    if value.is_finite() { buffer.format_finite(value).as_bytes() } else { b"null" }
}

/// The JavaScript form of a number literal, whatever digits are lost on the way.
pub(super) fn as_double<'b>(literal: &'b [u8], buffer: &'b mut ryu_js::Buffer) -> &'b [u8] {
    if is_plain_integer(literal) { literal } else { form(value(literal), buffer) }
}

/// The JavaScript form of a number literal, or the literal itself when that form is a different number.
pub(super) fn exact<'b>(literal: &'b [u8], buffer: &'b mut ryu_js::Buffer) -> &'b [u8] {
    if is_plain_integer(literal) {
        return literal;
    }
    let value = value(literal);
    let form = form(value, buffer);
    if value.is_finite() && Decimal::of(form) == Decimal::of(literal) { form } else { literal }
}

/// The double nearest to a number literal, infinite when there is none.
fn value(literal: &[u8]) -> f64 {
    std::str::from_utf8(literal).ok().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN)
}

/// An integer short enough to be exact, written as JavaScript would: the usual number, not worth a conversion.
fn is_plain_integer(literal: &[u8]) -> bool {
    match literal {
        [b'0'] => true,
        [b'1'..=b'9', more @ ..] | [b'-', b'1'..=b'9', more @ ..] => {
            more.len() < 15 && more.iter().all(u8::is_ascii_digit)
        }
        _ => false,
    }
}

/// The exact value of a literal: `0.digits × 10^point`, without zeros at either end of the digits.
///
/// Two literals are the same number exactly when these are equal; that of zero has no digits and no sign.
struct Decimal<'a> {
    negative: bool,
    whole: &'a [u8],
    fraction: &'a [u8],
    point: i64,
}

impl<'a> Decimal<'a> {
    fn of(literal: &'a [u8]) -> Self {
        let (negative, unsigned) = match literal {
            [b'-', unsigned @ ..] => (true, unsigned),
            _ => (false, literal),
        };
        let (mantissa, exponent) = split(unsigned, |byte| matches!(byte, b'e' | b'E'));
        let (whole, fraction) = split(mantissa, |byte| byte == b'.');
        let (mut whole, mut fraction) = (trim_start(whole), trim_end(fraction));
        let mut point = exponent_value(exponent).saturating_add(whole.len() as i64);
        if fraction.is_empty() {
            whole = trim_end(whole);
        }
        if whole.is_empty() {
            let digits = trim_start(fraction);
            point = point.saturating_sub((fraction.len() - digits.len()) as i64);
            fraction = digits;
        }
        if whole.is_empty() && fraction.is_empty() {
            return Decimal { negative: false, whole, fraction, point: 0 };
        }
        Decimal { negative, whole, fraction, point }
    }

    fn digits(&self) -> impl Iterator<Item = &u8> {
        self.whole.iter().chain(self.fraction)
    }
}

impl PartialEq for Decimal<'_> {
    fn eq(&self, other: &Self) -> bool {
        (self.negative, self.point) == (other.negative, other.point)
            && self.digits().cmp(other.digits()) == Ordering::Equal
    }
}

/// The parts before and behind the first byte that `at` names.
fn split(text: &[u8], at: impl Fn(u8) -> bool) -> (&[u8], &[u8]) {
    let index = text.iter().position(|byte| at(*byte)).unwrap_or(text.len());
    let (before, rest) = text.split_at(index);
    (before, rest.get(1..).unwrap_or_default())
}

fn trim_start(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
    digits.get(zeros..).unwrap_or_default()
}

fn trim_end(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().rev().take_while(|digit| **digit == b'0').count();
    digits.get(..digits.len() - zeros).unwrap_or_default()
}

/// The number behind the `e`. It stops growing far beyond what any length of digits could make up for.
fn exponent_value(exponent: &[u8]) -> i64 {
    let (negative, digits) = match exponent {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    const LIMIT: i64 = i64::MAX / 4;
    let size = digits.iter().fold(0i64, |size, digit| {
        size.saturating_mul(10).saturating_add(i64::from(digit.wrapping_sub(b'0'))).min(LIMIT)
    });
    if negative { -size } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(literal: &str) -> String {
        String::from_utf8(super::exact(literal.as_bytes(), &mut ryu_js::Buffer::new()).to_vec()).unwrap()
    }

    fn double(literal: &str) -> String {
        String::from_utf8(as_double(literal.as_bytes(), &mut ryu_js::Buffer::new()).to_vec()).unwrap()
    }

    #[test]
    fn s4_s6_a_form_that_is_the_same_number_is_used() {
        let cases = [
            ("1.0", "1"),
            ("1E3", "1000"),
            ("1e21", "1e+21"),
            ("1e20", "100000000000000000000"),
            ("-0", "0"),
            ("-0.0e5", "0"),
            ("0e999999999999999999999999", "0"),
            ("0.1", "0.1"),
            ("1e-7", "1e-7"),
            ("0.0000001", "1e-7"),
            ("0.000001", "0.000001"),
            ("1e-6", "0.000001"),
            ("10.50", "10.5"),
            ("-12.340e2", "-1234"),
            ("100", "100"),
            ("0.00e-3", "0"),
            ("9007199254740993.0", "9007199254740993.0"),
            ("9007199254740992", "9007199254740992"),
            ("1000000000000000000000", "1e+21"),
            ("5e-324", "5e-324"),
            ("0.5e-323", "5e-324"),
        ];
        for (source, expected) in cases {
            assert_eq!(exact(source), expected, "{source}");
        }
    }

    #[test]
    fn s6_digits_that_a_double_would_lose_stay() {
        let long = format!("0.{}1", "3".repeat(400));
        let huge = "1".repeat(500);
        let shifted = format!("0.{}1e401", "0".repeat(400));
        let stay = [
            "12345678901234567890",
            "12345678901234567890123",
            "9007199254740993",
            "-9007199254740993",
            "1e400",
            "-1e400",
            "1e-400",
            "1e-99999999999999999999999",
            "1e99999999999999999999999",
            "0.1000000000000000055511151231257827",
            "4e-324",
            &long,
            &huge,
        ];
        for source in stay {
            assert_eq!(exact(source), source);
        }
        assert_eq!(exact(&shifted), "1");
    }

    #[test]
    fn s4_as_doubles_all_numbers_have_the_form_of_javascript() {
        let cases = [
            ("12345678901234567890", "12345678901234567000"),
            ("1e400", "null"),
            ("-1e400", "null"),
            ("1e-400", "0"),
            ("-1e-400", "0"),
            ("9007199254740993", "9007199254740992"),
            ("123456789012345", "123456789012345"),
            ("123456789012345678901234", "1.2345678901234569e+23"),
        ];
        for (source, expected) in cases {
            assert_eq!(double(source), expected, "{source}");
        }
    }

    #[test]
    fn nothing_panics_on_what_is_no_number() {
        for odd in ["", "-", ".", "e", "1e", "1e+", "--1", "abc", "1.e", "é"] {
            exact(odd);
            double(odd);
        }
    }
}
