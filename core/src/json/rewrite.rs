//! A text written again as JavaScript would after parsing it (S6).
//!
//! Two passes: the first finds the objects whose members do not stay where they are (array indices, repeated keys) and
//! writes down the order they get; the second copies the text, token by token, jumping between such members. Each
//! token is copied at most once, so the time is linear in the text whatever is nested in what.

use super::block::LEN;
use super::number;
use super::scan::{Sink, scan};
use super::text::{Escape, copy_body, lossy, push_char, write_escaped, write_unicode_escape};
use super::tokens::{self, Token};
use memchr::memchr;
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

/// The text as JavaScript's `JSON.parse` and `JSON.stringify` would write it again (S2, S3, S4, S6), except that no
/// digits are lost: a number that is not exactly the number JavaScript would write keeps its text. Invalid UTF-8 is
/// kept too. A text that is not JSON is returned as it is.
pub fn rewrite(text: &[u8]) -> Vec<u8> {
    let mut plan = Plan::new(text);
    match scan(text, &mut plan) {
        Ok(_) => emit(text, &plan, number::exact),
        Err(_) => text.to_vec(),
    }
}

/// A normal form for comparisons: texts that JavaScript reads as the same value, members in the same order, have the
/// same one. It is [`rewrite()`] with all numbers rounded to doubles and invalid UTF-8 replaced.
pub fn canonical(text: &[u8]) -> Vec<u8> {
    let text = lossy(text);
    let text = text.as_bytes();
    let mut plan = Plan::new(text);
    match scan(text, &mut plan) {
        Ok(_) => emit(text, &plan, number::as_double),
        Err(_) => text.to_vec(),
    }
}

/// A member of an object that is still being read. Its value ends where the comma in front of the next one is.
struct Member {
    key: Range<usize>,
    end: usize,
}

/// An object whose members are to be written in another order: `Plan::order[members]`, and it ends before `end`.
struct Reordered {
    members: Range<usize>,
    end: usize,
}

/// First pass: the objects whose members move.
struct Plan<'a> {
    text: &'a [u8],
    /// Start of each open object and of its members in `members`.
    open: Vec<(usize, usize)>,
    members: Vec<Member>,
    /// From the offset of an object's brace; nearly always empty.
    reordered: HashMap<usize, Reordered>,
    /// Member after member (name and value) of all reordered objects.
    order: Vec<Range<usize>>,
}

impl<'a> Plan<'a> {
    fn new(text: &'a [u8]) -> Self {
        Plan { text, open: Vec::new(), members: Vec::new(), reordered: HashMap::new(), order: Vec::new() }
    }

    /// The name of a member as it will be written, without quotes: equal for equal names, and only for them.
    fn name(&self, member: &Member) -> Cow<'a, [u8]> {
        let body = self.text.get(member.key.start + 1..member.key.end - 1).unwrap_or_default();
        if memchr(b'\\', body).is_none() {
            return Cow::Borrowed(body);
        }
        let mut name = Vec::with_capacity(body.len());
        write_body(&mut name, body);
        Cow::Owned(name)
    }

    /// Sets the end of the last member of the innermost object when the next one, or the object's end, is at `at`.
    fn end_member(&mut self, first: usize, at: usize) {
        if let Some(member) = self.members.get_mut(first..).and_then(<[Member]>::last_mut) {
            member.end = at;
        }
    }
}

impl Sink for Plan<'_> {
    fn open(&mut self, object: bool, at: usize) {
        if object {
            self.open.push((at, self.members.len()));
        }
    }

    fn key(&mut self, literal: Range<usize>) {
        let Some((_, first)) = self.open.last().copied() else { return };
        // Behind the value there is a comma, with white space on either side at most.
        let before = self.text.get(..literal.start).unwrap_or_default();
        let comma = before.iter().rposition(|byte| !tokens::is_space(*byte)).unwrap_or_default();
        self.end_member(first, comma);
        self.members.push(Member { key: literal, end: 0 });
    }

    fn close(&mut self, object: bool, at: usize) {
        if !object {
            return;
        }
        let Some((start, first)) = self.open.pop() else { return };
        self.end_member(first, at);
        let members = self.members.get(first..).unwrap_or_default();
        if let Some(order) = new_order(members, |member| self.name(member)) {
            let from = self.order.len();
            self.order.extend(order.into_iter().filter_map(|index| {
                let member = members.get(index)?;
                Some(member.key.start..member.end)
            }));
            self.reordered.insert(start, Reordered { members: from..self.order.len(), end: at + 1 });
        }
        self.members.truncate(first);
    }
}

/// The order in which members are written, as indices; `None` when it is the one they have.
fn new_order<'a>(members: &[Member], name: impl Fn(&Member) -> Cow<'a, [u8]>) -> Option<Vec<usize>> {
    let names: Vec<Cow<'a, [u8]>> = members.iter().map(name).collect();
    let indices = names.iter().any(|name| array_index(name).is_some());
    if !indices && !has_repeated(&names) {
        return None;
    }
    // The first place of a name, and the last value for it.
    let mut place: HashMap<&[u8], usize> = HashMap::with_capacity(names.len());
    let mut order: Vec<(Option<u32>, usize)> = Vec::with_capacity(names.len());
    for (index, name) in names.iter().enumerate() {
        let at = *place.entry(name).or_insert(order.len());
        match order.get_mut(at) {
            Some((_, last)) => *last = index,
            None => order.push((array_index(name), index)),
        }
    }
    // Array indices first; the sort is stable, so the others stay as they are.
    order.sort_by_key(|(array_index, _)| array_index.map_or((true, 0), |value| (false, value)));
    Some(order.into_iter().map(|(_, index)| index).collect())
}

/// Does a name occur twice? Most objects are so small that comparing all pairs is quickest.
fn has_repeated(names: &[Cow<'_, [u8]>]) -> bool {
    if names.len() <= 16 {
        return names.iter().enumerate().any(|(index, name)| names.iter().take(index).any(|other| other == name));
    }
    let mut seen = std::collections::HashSet::with_capacity(names.len());
    !names.iter().all(|name| seen.insert(name))
}

/// The value of a canonical array index: digits without leading zeros, below 2^32 − 1.
fn array_index(name: &[u8]) -> Option<u32> {
    match name {
        [b'0'] => Some(0),
        [b'1'..=b'9', more @ ..] if more.len() < 10 && more.iter().all(u8::is_ascii_digit) => {
            let value: u32 = std::str::from_utf8(name).ok()?.parse().ok()?;
            (value != u32::MAX).then_some(value)
        }
        _ => None,
    }
}

/// An object being written in its new order: the members still to come, and what follows the object.
struct Frame {
    members: Range<usize>,
    rest: Range<usize>,
}

/// The form a number literal gets, in a buffer if it is not its own.
type NumberForm = for<'b> fn(&'b [u8], &'b mut ryu_js::Buffer) -> &'b [u8];

/// Second pass.
fn emit(text: &[u8], plan: &Plan<'_>, number: NumberForm) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + LEN);
    let mut frames: Vec<Frame> = Vec::new();
    let mut span = 0..text.len();
    loop {
        if let Some((object, rest)) = copy(text, plan, span, number, &mut out) {
            frames.push(Frame { members: object.members.clone(), rest });
        }
        let Some(frame) = frames.last_mut() else { return out };
        if let Some(member) = frame.members.next().and_then(|index| plan.order.get(index)) {
            if out.last() != Some(&b'{') {
                out.push(b',');
            }
            span = member.clone();
        } else {
            out.push(b'}');
            span = frame.rest.clone();
            frames.pop();
        }
    }
}

/// Copies a span of text up to the next object whose members move; of that only the brace. Returns it and what of the
/// span is behind it.
fn copy<'p>(
    text: &[u8],
    plan: &'p Plan<'_>,
    span: Range<usize>,
    number: NumberForm,
    out: &mut Vec<u8>,
) -> Option<(&'p Reordered, Range<usize>)> {
    let part = |range: Range<usize>| text.get(range).unwrap_or_default();
    // What has been read but not yet copied, since it stays as it is: most texts do so for long stretches.
    let mut same = span.start..span.start;
    while let Some((token, range)) = tokens::next(text, same.end..span.end) {
        if range.start != same.end {
            // White space.
            out.extend_from_slice(part(same));
            same = range.start..range.start;
        }
        same.end = range.end;
        match token {
            Token::String { reducible: true } => {
                out.extend_from_slice(part(same.start..range.start));
                write_body(out, part(range.clone()));
                same.start = range.end;
            }
            Token::Number => {
                let mut buffer = ryu_js::Buffer::new();
                let literal = part(range.clone());
                let form = number(literal, &mut buffer);
                if form != literal {
                    out.extend_from_slice(part(same.start..range.start));
                    out.extend_from_slice(form);
                    same.start = range.end;
                }
            }
            Token::Open if !plan.reordered.is_empty() => {
                if let Some(object) = plan.reordered.get(&range.start) {
                    out.extend_from_slice(part(same));
                    return Some((object, object.end..span.end));
                }
            }
            _ => {}
        }
    }
    out.extend_from_slice(part(same));
    None
}

/// Appends text between a literal's quotes (or the literal with them) with every escape in the form of S3.
fn write_body(out: &mut Vec<u8>, body: &[u8]) {
    copy_body(out, body, |out, escape| match escape {
        Escape::Char(char @ ('"' | '\\' | '\0'..='\x1f')) => write_escaped(out, char as u8),
        Escape::Char(char) => push_char(out, char),
        Escape::Lone(unit) => write_unicode_escape(out, unit),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, expected: &str) {
        assert_eq!(String::from_utf8(rewrite(source.as_bytes())).unwrap(), expected);
    }

    /// The line of the conformance case a34, with its one deliberate difference: `big` keeps its digits.
    #[test]
    fn s2_s3_s4_s6_conformance_a34() {
        let source = r#"{"type":"custom","customType":"nums","data":{"b":1.0,"a":1E3,"10":"ten","2":"two","big":12345678901234567890,"neg":-0,"tiny":1e-7,"huge":1e21,"f":0.1,"dup":1,"dup":2,"esc":"\u0041\/\u00e9\u2028\ud83c\udf75","lone":"\ud800x","ctl":"\u0001\b\t"},"id":"c1","parentId":null,"timestamp":"2025-01-15T09:00:01.000Z"}"#;
        let expected = "{\"type\":\"custom\",\"customType\":\"nums\",\"data\":{\"2\":\"two\",\"10\":\"ten\",\"b\":1,\"a\":1000,\"big\":12345678901234567890,\"neg\":0,\"tiny\":1e-7,\"huge\":1e+21,\"f\":0.1,\"dup\":2,\"esc\":\"A/é\u{2028}🍵\",\"lone\":\"\\ud800x\",\"ctl\":\"\\u0001\\b\\t\"},\"id\":\"c1\",\"parentId\":null,\"timestamp\":\"2025-01-15T09:00:01.000Z\"}";
        check(source, expected);
        let in_javascript = expected.replace("12345678901234567890", "12345678901234567000");
        assert_eq!(String::from_utf8(canonical(source.as_bytes())).unwrap(), in_javascript);
    }

    #[test]
    fn s6_array_indices_come_first_in_ascending_order() {
        check(
            r#"{"b":1,"4294967294":2,"4294967295":3,"01":4,"10":5,"9":6,"-1":7,"0":8,"\u0031":9,"a":10,"1.0":11,"":12}"#,
            r#"{"0":8,"1":9,"9":6,"10":5,"4294967294":2,"b":1,"4294967295":3,"01":4,"-1":7,"a":10,"1.0":11,"":12}"#,
        );
        check(r#"[{"x":[{"1":0,"0":{"y":1,"2":[]}}]},5]"#, r#"[{"x":[{"0":{"2":[],"y":1},"1":0}]},5]"#);
    }

    #[test]
    fn s6_a_repeated_name_has_the_first_place_and_the_last_value() {
        check(r#"{"a":1, "b":2 , "\u0061" : {"c":3,"c":4} ,"b":[5]}"#, r#"{"a":{"c":4},"b":[5]}"#);
        check(r#"{"1":1,"0":{"z":0},"1":2}"#, r#"{"0":{"z":0},"1":2}"#);
        check(r#"{"__proto__":1,"a":2,"__proto__":3}"#, r#"{"__proto__":3,"a":2}"#);
        // Different lone surrogates are different names, though both decode to U+FFFD.
        check(r#"{"\ud800":1,"\uD801":2,"\ufffd":3,"\uD800":4}"#, "{\"\\ud800\":4,\"\\ud801\":2,\"\u{fffd}\":3}");
        let many: String = (0..40).map(|index| format!("\"k{}\":{index},", index % 20)).collect();
        let last: Vec<_> = (0..20).map(|index| format!("\"k{index}\":{}", index + 20)).collect();
        check(&format!("{{{}}}", many.trim_end_matches(',')), &format!("{{{}}}", last.join(",")));
    }

    #[test]
    fn s3_escapes_take_their_shortest_form() {
        check(
            r#"["\u0022\u005c\u002F\/","\u0008\u0009\u000A\u000c\u000D\u0000\u001F","\u007f\u0080\u2029","\uD83C\uDF75\uD83C","\uDF75\uD83Cx"]"#,
            "[\"\\\"\\\\//\",\"\\b\\t\\n\\f\\r\\u0000\\u001f\",\"\u{7f}\u{80}\u{2029}\",\"🍵\\ud83c\",\"\\udf75\\ud83cx\"]",
        );
    }

    #[test]
    fn s2_white_space_outside_strings_goes() {
        check(" { \"a b\" : [ 1 ,\t{ } , [\n] , true ] ,\r \"c\" : null } ", "{\"a b\":[1,{},[],true],\"c\":null}");
        check(" \"a\" ", "\"a\"");
        check(" -0 ", "0");
    }

    #[test]
    fn s51_invalid_utf8_is_kept_but_compared_as_replaced() {
        assert_eq!(rewrite(b"{ \"\xff\":\"a\xc3\\n\" }"), b"{\"\xff\":\"a\xc3\\n\"}");
        assert_eq!(canonical(b"{ \"\xff\":\"a\xc3\\n\" }"), canonical("{\"\u{fffd}\":\"a\u{fffd}\\n\"}".as_bytes()));
    }
}
