//! Numbers as JavaScript reads them, which is what models were trained on (T11).

use serde_json::Value;

/// Largest integer up to which every integer is a distinct number.
const MAX_SAFE: f64 = 9_007_199_254_740_992.0;

/// Whether a value is a number without a fraction.
pub(super) fn is_integer(value: &Value) -> bool {
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
}

/// The number a value means, if it means one.
pub(super) fn from_value(value: &Value) -> Option<f64> {
    match value {
        Value::Number(_) => value.as_f64(),
        Value::Bool(it) => Some(f64::from(u8::from(*it))),
        Value::Null => Some(0.0),
        Value::String(text) if text.eq_ignore_ascii_case("true") => Some(1.0),
        Value::String(text) if text.eq_ignore_ascii_case("false") => Some(0.0),
        Value::String(text) => from_text(text),
        Value::Array(_) | Value::Object(_) => None,
    }
}

/// What `Number(text)` gives, when that is finite.
fn from_text(text: &str) -> Option<f64> {
    let text = crate::blank::trim(text);
    if text.is_empty() {
        return Some(0.0);
    }
    let lower = text.to_ascii_lowercase();
    for (prefix, radix) in [("0x", 16), ("0o", 8), ("0b", 2)] {
        if let Some(digits) = lower.strip_prefix(prefix) {
            let digits: Option<Vec<u32>> = digits.chars().map(|digit| digit.to_digit(radix)).collect();
            let digits = digits.filter(|digits| !digits.is_empty())?;
            return Some(digits.iter().fold(0.0, |sum, digit| sum * f64::from(radix) + f64::from(*digit)))
                .filter(|number| number.is_finite());
        }
    }
    let plain = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | 'e');
    if !lower.chars().all(plain) {
        return None;
    }
    lower.parse().ok().filter(|number: &f64| number.is_finite())
}

/// A number as JSON: without a fraction when it has none.
pub(super) fn to_value(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() <= MAX_SAFE { Value::from(number as i64) } else { Value::from(number) }
}

#[cfg(test)]
mod tests {
    use super::from_text;

    #[test]
    fn reads_as_javascript_does() {
        let cases = [
            ("", Some(0.0)),
            (" 5 ", Some(5.0)),
            ("0x10", Some(16.0)),
            ("0b101", Some(5.0)),
            (".5", Some(0.5)),
            ("5.", Some(5.0)),
            ("-1e3", Some(-1000.0)),
            ("1_000", None),
            ("inf", None),
            ("Infinity", None),
            ("nan", None),
            ("5px", None),
            ("0x", None),
        ];
        for (text, number) in cases {
            assert_eq!(from_text(text), number, "{text:?}");
        }
    }
}
