//! A text written again as JavaScript would after parsing it (S6).
//!
//! Two passes: the first finds the objects whose members do not stay where they are (array indices, repeated keys) and
//! writes down the order they get; the second copies the text, token by token, jumping between such members. Each
//! token is copied at most once, so the time is linear in the text whatever is nested in what.

use super::number;
use super::scan::{Sink, scan};
use super::text::{Piece, pieces, push_char, write_escaped, write_unicode_escape};
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
        Ok(_) => emit(text, &plan, number::write_exact),
        Err(_) => text.to_vec(),
    }
}

/// A normal form for comparisons: texts that JavaScript reads as the same value, members in the same order, have the
/// same one. It is [`rewrite()`] with all numbers rounded to doubles and invalid UTF-8 replaced.
pub fn canonical(text: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(text);
    let text = text.as_bytes();
    let mut plan = Plan::new(text);
    match scan(text, &mut plan) {
        Ok(_) => emit(text, &plan, number::write_as_double),
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

/// Second pass.
fn emit(text: &[u8], plan: &Plan<'_>, number: fn(&mut Vec<u8>, &[u8])) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
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
    number: fn(&mut Vec<u8>, &[u8]),
    out: &mut Vec<u8>,
) -> Option<(&'p Reordered, Range<usize>)> {
    let mut at = span.start;
    while let Some((token, range)) = tokens::next(text, at..span.end) {
        at = range.end;
        let literal = text.get(range.clone()).unwrap_or_default();
        match token {
            Token::String => write_literal(out, literal),
            Token::Number => number(out, literal),
            Token::Open if !plan.reordered.is_empty() => {
                out.extend_from_slice(literal);
                if let Some(object) = plan.reordered.get(&range.start) {
                    return Some((object, object.end..span.end));
                }
            }
            Token::Open | Token::Close | Token::Other => out.extend_from_slice(literal),
        }
    }
    None
}

fn write_literal(out: &mut Vec<u8>, literal: &[u8]) {
    match literal {
        [b'"', body @ .., b'"'] if memchr(b'\\', body).is_some() => {
            out.push(b'"');
            write_body(out, body);
            out.push(b'"');
        }
        plain => out.extend_from_slice(plain),
    }
}

/// Appends the text between a literal's quotes with every escape in the form of S3.
fn write_body(out: &mut Vec<u8>, body: &[u8]) {
    for piece in pieces(body) {
        match piece {
            Piece::Plain(bytes) => out.extend_from_slice(bytes),
            Piece::Char(char @ ('"' | '\\' | '\0'..='\x1f')) => write_escaped(out, char as u8),
            Piece::Char(char) => push_char(out, char),
            Piece::Lone(unit) => write_unicode_escape(out, unit),
        }
    }
}
