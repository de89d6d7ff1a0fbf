//! `serde` types to JSON text with JavaScript's numbers (S4), compact (S2), strings as S3 has them.
//!
//! The strings are `serde_json`'s own: its escapes are the ones of S3.

use super::number;
use super::text::{lossy_owned, write_string};
use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use serde_json::{Map, Value};
use std::io;

/// The JSON text of `value`. See [`write()`].
pub fn to_vec<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    write(&mut out, value);
    out
}

/// The JSON text of `value`. See [`write()`].
pub fn to_string<T: Serialize + ?Sized>(value: &T) -> String {
    // What a serializer writes is UTF-8, except for a raw value that someone made without looking.
    lossy_owned(to_vec(value))
}

/// Appends the JSON text of `value` to `out`.
///
/// Doubles have the form JavaScript gives them: `100.0` is `100`, −0 is `0`, and what is not finite is `null`.
/// A value that JSON cannot express, such as a map with lists for keys, is written as `null`.
pub fn write<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    let before = out.len();
    if value.serialize(&mut Serializer::with_formatter(&mut *out, JavaScript)).is_err() {
        out.truncate(before);
        out.extend_from_slice(b"null");
    }
}

/// Appends the JSON text of a JSON value: what [`write()`] gives, with strings copied in blocks. Messages are mostly long
/// strings, and an append spends a third of its own time on them.
pub fn write_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::String(text) => write_string(out, text),
        Value::Object(object) => write_object(out, object),
        Value::Array(items) => {
            out.push(b'[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                write_value(out, item);
            }
            out.push(b']');
        }
        Value::Number(number) => match number.as_u64() {
            Some(whole) => out.extend_from_slice(itoa::Buffer::new().format(whole).as_bytes()),
            None => write(out, value),
        },
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
    }
}

/// Appends the JSON text of an object. See [`write_value`].
pub fn write_object(out: &mut Vec<u8>, object: &Map<String, Value>) {
    out.push(b'{');
    for (at, (key, value)) in object.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_string(out, key);
        out.push(b':');
        write_value(out, value);
    }
    out.push(b'}');
}

/// A compact formatter whose numbers are JavaScript's.
struct JavaScript;

impl Formatter for JavaScript {
    fn write_f32<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f32) -> io::Result<()> {
        self.write_f64(writer, f64::from(value))
    }

    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(number::form(value, &mut ryu_js::Buffer::new()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::BTreeMap;

    #[test]
    fn s4_doubles_have_the_form_of_javascript() {
        let cases = [
            (100.0, "100"),
            (-0.0, "0"),
            (0.5, "0.5"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (1e-6, "0.000001"),
            (1e-7, "1e-7"),
            (9007199254740992.0, "9007199254740992"),
            (-9007199254740991.0, "-9007199254740991"),
            (1.7976931348623157e308, "1.7976931348623157e+308"),
            (5e-324, "5e-324"),
            (f64::NAN, "null"),
            (f64::INFINITY, "null"),
        ];
        for (value, expected) in cases {
            assert_eq!(to_string(&value), expected);
        }
        assert_eq!(to_string(&1.5f32), "1.5");
        assert_eq!(to_string(&u64::MAX), "18446744073709551615");
    }

    #[test]
    fn s2_s3_compact_in_the_given_order() {
        let value = json!({"b": [1.0, -0.0, {}], "a": "\u{1}\u{7f}/\u{2028}", "c": null});
        let mut direct = Vec::new();
        write_value(&mut direct, &value);
        assert_eq!(direct, to_vec(&value));
        assert_eq!(to_string(&value), "{\"b\":[1,0,{}],\"a\":\"\\u0001\u{7f}/\u{2028}\",\"c\":null}");
    }

    #[test]
    fn s3_every_character_below_256_is_escaped_as_write_string_does() {
        for char in (0u8..=255).map(char::from) {
            let text = char.to_string();
            let mut own = Vec::new();
            super::super::write_string(&mut own, &text);
            assert_eq!(to_vec(&text), own);
        }
    }

    #[test]
    fn what_json_cannot_express_is_null_and_appended() {
        let mut out = b"x".to_vec();
        write(&mut out, &BTreeMap::from([(vec![1], 2)]));
        assert_eq!(out, b"xnull");
    }
}
