//! Changes of one member of an object that leave every other byte as it is.

use super::scan::{Ignore, Scanner, SyntaxError};
use super::text::{raw_str_eq, write_string};
use std::ops::Range;

/// The object with the value of its member `key` replaced; of several with that name, the last one's, which is the
/// one that counts. Without such a member it is added behind the others. A text that is not an object stays as it is.
pub fn replace_member(object: &[u8], key: &str, value: &[u8]) -> Vec<u8> {
    let Ok(Layout { open, members, .. }) = layout(object) else { return object.to_vec() };
    let mut insert = Vec::new();
    let place = match members.iter().rev().find(|member| member.is(object, key)) {
        Some(member) => member.value.clone(),
        None => {
            let end = members.last().map_or(open, |last| last.value.end);
            if !members.is_empty() {
                insert.push(b',');
            }
            write_string(&mut insert, key);
            insert.push(b':');
            end..end
        }
    };
    insert.extend_from_slice(value);
    let part = |range: Range<usize>| object.get(range).unwrap_or_default();
    [part(0..place.start), &insert, part(place.end..object.len())].concat()
}

/// The object without its members named `key`, however many there are. The commas and white space between the others
/// stay, except those in front of what went. A text that is not an object stays as it is.
pub fn remove_member(object: &[u8], key: &str) -> Vec<u8> {
    let Ok(Layout { open, members, close }) = layout(object) else { return object.to_vec() };
    if !members.iter().any(|member| member.is(object, key)) {
        return object.to_vec();
    }
    let part = |range: Range<usize>| object.get(range).unwrap_or_default();
    let mut out = Vec::with_capacity(object.len());
    out.extend_from_slice(part(0..open));
    let mut first = true;
    for member in members.iter().filter(|member| !member.is(object, key)) {
        if !first {
            out.push(b',');
        }
        first = false;
        out.extend_from_slice(part(member.start..member.end));
    }
    out.extend_from_slice(part(close..object.len()));
    out
}

/// Where the parts of an object are.
struct Layout {
    /// Behind the opening brace.
    open: usize,
    members: Vec<Member>,
    /// The closing brace with the white space in front of it.
    close: usize,
}

/// A member from behind the brace or comma before it to in front of the comma behind it; for the last member only to
/// the end of its value, since the white space there belongs to the closing brace.
struct Member {
    start: usize,
    name: Range<usize>,
    value: Range<usize>,
    end: usize,
}

impl Member {
    fn is(&self, object: &[u8], key: &str) -> bool {
        object.get(self.name.clone()).is_some_and(|name| raw_str_eq(name, key))
    }
}

fn layout(object: &[u8]) -> Result<Layout, SyntaxError> {
    let mut scanner = Scanner::new(object);
    scanner.skip_space();
    scanner.expect(b'{')?;
    let open = scanner.at;
    let mut layout = Layout { open, members: Vec::new(), close: open };
    scanner.skip_space();
    if scanner.peek() != b'}' {
        let mut start = open;
        loop {
            scanner.skip_space();
            let literal = scanner.key()?;
            let from = scanner.at;
            scanner.value(&mut Ignore)?;
            let value = from..scanner.at;
            scanner.skip_space();
            let end = scanner.at;
            layout.close = value.end;
            layout.members.push(Member { start, name: literal.start + 1..literal.end - 1, value, end });
            if scanner.peek() != b',' {
                break;
            }
            scanner.at += 1;
            start = scanner.at;
        }
        if let Some(last) = layout.members.last_mut() {
            last.end = last.value.end;
        }
    }
    scanner.expect(b'}')?;
    scanner.finish()?;
    Ok(layout)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replace(object: &str, key: &str, value: &str) -> String {
        String::from_utf8(replace_member(object.as_bytes(), key, value.as_bytes())).unwrap()
    }

    fn remove(object: &str, key: &str) -> String {
        String::from_utf8(remove_member(object.as_bytes(), key).clone()).unwrap()
    }

    #[test]
    fn a_value_is_replaced_in_place() {
        let object = " { \"b\" : 1.0, \"a\":{\"a\":2} ,\n\"c\":[] } ";
        assert_eq!(replace(object, "a", "null"), " { \"b\" : 1.0, \"a\":null ,\n\"c\":[] } ");
        assert_eq!(replace(object, "b", "\"x\""), " { \"b\" : \"x\", \"a\":{\"a\":2} ,\n\"c\":[] } ");
    }

    #[test]
    fn s6_the_last_of_equal_names_is_replaced() {
        assert_eq!(replace(r#"{"a":1,"\u0061":2,"b":3}"#, "a", "9"), r#"{"a":1,"\u0061":9,"b":3}"#);
    }

    #[test]
    fn a_missing_member_is_added_at_the_end() {
        assert_eq!(replace("{}", "a\n", "1"), r#"{"a\n":1}"#);
        assert_eq!(replace(" { } ", "a", "1"), r#" {"a":1 } "#);
        assert_eq!(replace("{\n \"b\":1\n}", "a", "2"), "{\n \"b\":1,\"a\":2\n}");
    }

    #[test]
    fn all_of_equal_names_are_removed() {
        let object = r#"{"a":1, "b" : 2 ,"a":3,"c":[ 4 ],"\u0061":{} }"#;
        assert_eq!(remove(object, "a"), r#"{ "b" : 2 ,"c":[ 4 ] }"#);
        assert_eq!(remove(object, "b"), r#"{"a":1,"a":3,"c":[ 4 ],"\u0061":{} }"#);
        assert_eq!(remove(object, "x"), object);
        assert_eq!(remove(r#"{"a":1}"#, "a"), "{}");
        assert_eq!(remove(r#"{"a":1,"a":2}"#, "a"), "{}");
        assert_eq!(remove("{\n \"a\":1,\n \"b\":2\n}", "b"), "{\n \"a\":1\n}");
        assert_eq!(remove("{\n \"a\":1,\n \"b\":2\n}", "a"), "{\n \"b\":2\n}");
    }

    #[test]
    fn what_is_not_an_object_stays() {
        for text in ["", "[]", "{\"a\":1", "{\"a\":1}x", "{\"a\":1,}", "nul"] {
            assert_eq!(replace(text, "a", "2"), text);
            assert_eq!(remove(text, "a"), text);
        }
    }
}
