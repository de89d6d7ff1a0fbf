//! The arguments of a tool call while they are still being streamed (P45).
//!
//! The text is read once, piece by piece, by a machine that never goes back; a value is made of its state only when
//! somebody asks for one. So streaming is linear in the text, whatever the pieces.

use serde_json::{Map, Value};

/// A number longer than this waits for its end before it is shown.
const LONG_NUMBER: usize = 64;
/// Containers deeper than this are read but not kept: nobody can show them, and building them must not exhaust a stack.
const DEPTH: usize = 512;

/// Reads JSON text that grows. [`push`](Self::push) takes the next piece, [`value`](Self::value) shows what there is.
///
/// It is lenient, since what it shows is a preview: raw control characters and unknown escapes are kept, missing commas
/// and colons do not matter, a wrong closer closes the innermost container, words that are no JSON are dropped, and what
/// follows the value is ignored. The complete text is read strictly by [`parse_arguments`](super::parse_arguments).
#[derive(Debug, Clone, Default)]
pub struct PartialJson {
    /// Open containers, outermost first.
    open: Vec<Container>,
    /// Containers open below [`DEPTH`].
    hidden: usize,
    /// The finished root.
    root: Option<Value>,
    token: Token,
}

#[derive(Debug, Clone)]
enum Container {
    Array(Vec<Value>),
    /// With the key of the member whose value is still to come.
    Object(Map<String, Value>, Option<String>),
}

/// What is being read.
#[derive(Debug, Clone, Default)]
enum Token {
    #[default]
    None,
    String(String, Escape),
    /// A number, literal or junk: everything up to the next delimiter.
    Word(String),
}

#[derive(Debug, Clone, Default)]
enum Escape {
    #[default]
    None,
    /// After a backslash.
    Begun,
    /// Hexadecimal digits of `\u` so far, and the high half of a pair in front of it.
    Unicode(String, Option<u16>),
    /// A high half was read; its low half may follow.
    High(u16),
    /// The same, after another backslash.
    HighBegun(u16),
}

impl PartialJson {
    /// Nothing read yet.
    pub fn new() -> PartialJson {
        PartialJson::default()
    }

    /// Reads the next piece of the text.
    pub fn push(&mut self, piece: &str) {
        let mut rest = piece;
        while !rest.is_empty() && self.root.is_none() {
            rest = match self.token {
                Token::String(..) => self.string(rest),
                _ => self.outside(rest),
            };
        }
    }

    /// What the text so far says; `None` before anything of it can be shown.
    pub fn value(&self) -> Option<Value> {
        if let Some(root) = &self.root {
            return Some(root.clone());
        }
        let mut inner = match &self.token {
            _ if self.hidden > 0 => None,
            Token::None => None,
            // As a name it shows nothing yet.
            Token::String(..) if self.expects_key() => None,
            Token::String(text, _) => Some(Value::String(text.clone())),
            Token::Word(_) if self.expects_key() => None,
            Token::Word(word) => shown(word),
        };
        for container in self.open.iter().rev() {
            inner = Some(match container {
                Container::Array(items) => {
                    let mut items = items.clone();
                    items.extend(inner);
                    Value::Array(items)
                }
                Container::Object(members, key) => {
                    let mut members = members.clone();
                    if let (Some(key), Some(value)) = (key, inner) {
                        members.insert(key.clone(), value);
                    }
                    Value::Object(members)
                }
            });
        }
        inner
    }

    /// The same as arguments: an object, empty if the text is (so far) none.
    pub fn object(&self) -> Map<String, Value> {
        match self.value() {
            Some(Value::Object(object)) => object,
            _ => Map::new(),
        }
    }

    fn expects_key(&self) -> bool {
        matches!(self.open.last(), Some(Container::Object(_, None)))
    }

    /// Reads up to the end of the piece or the beginning of a string.
    fn outside<'a>(&mut self, text: &'a str) -> &'a str {
        let end = text.find(['"', '{', '}', '[', ']', ',', ':', ' ', '\t', '\n', '\r']).unwrap_or(text.len());
        if end > 0 {
            match &mut self.token {
                Token::Word(word) => word.push_str(&text[..end]),
                token => *token = Token::Word(text[..end].to_owned()),
            }
        }
        let Some(delimiter) = text[end..].chars().next() else { return "" };
        if let Token::Word(word) = std::mem::take(&mut self.token)
            && !self.expects_key()
        {
            match finished(&word) {
                Some(value) => self.put(value),
                // The member has no value then.
                None => self.forget_key(),
            }
            if self.root.is_some() {
                return "";
            }
        }
        match delimiter {
            ',' => self.forget_key(),
            '"' => self.token = Token::String(String::new(), Escape::None),
            '{' => self.open(Container::Object(Map::new(), None)),
            '[' => self.open(Container::Array(Vec::new())),
            '}' | ']' => self.close(),
            _ => {}
        }
        &text[end + 1..]
    }

    fn forget_key(&mut self) {
        if self.hidden == 0
            && let Some(Container::Object(_, key)) = self.open.last_mut()
        {
            *key = None;
        }
    }

    fn open(&mut self, container: Container) {
        // A container where a name should stand belongs to no member: it is read and dropped when it closes.
        if self.open.len() >= DEPTH {
            self.hidden += 1;
        } else {
            self.open.push(container);
        }
    }

    fn close(&mut self) {
        if self.hidden > 0 {
            self.hidden -= 1;
            return;
        }
        match self.open.pop() {
            Some(Container::Array(items)) => self.put(Value::Array(items)),
            Some(Container::Object(members, _)) => self.put(Value::Object(members)),
            None => {}
        }
    }

    /// A complete value.
    fn put(&mut self, value: Value) {
        if self.hidden > 0 {
            return;
        }
        match self.open.last_mut() {
            None => self.root = Some(value),
            Some(Container::Array(items)) => items.push(value),
            Some(Container::Object(members, key)) => {
                if let Some(key) = key.take() {
                    members.insert(key, value);
                }
            }
        }
    }

    /// Reads on inside a string.
    fn string<'a>(&mut self, text: &'a str) -> &'a str {
        let Token::String(value, escape) = &mut self.token else { return text };
        if let Escape::None = escape {
            let end = memchr::memchr2(b'"', b'\\', text.as_bytes()).unwrap_or(text.len());
            value.push_str(&text[..end]);
            let Some(byte) = text.as_bytes().get(end) else { return "" };
            if *byte == b'\\' {
                *escape = Escape::Begun;
            } else {
                self.end_string();
            }
            return &text[end + 1..];
        }
        let Some(next) = text.chars().next() else { return "" };
        let rest = &text[next.len_utf8()..];
        match std::mem::take(escape) {
            Escape::None => rest,
            Escape::Begun if next == 'u' => {
                *escape = Escape::Unicode(String::new(), None);
                rest
            }
            Escape::Begun => {
                match simple_escape(next) {
                    Some(character) => value.push(character),
                    None => {
                        value.push('\\');
                        value.push(next);
                    }
                }
                rest
            }
            Escape::Unicode(mut digits, high) if next.is_ascii_hexdigit() => {
                digits.push(next);
                if digits.len() < 4 {
                    *escape = Escape::Unicode(digits, high);
                    return rest;
                }
                let unit = u16::from_str_radix(&digits, 16).unwrap_or(0xfffd);
                match (high, unit) {
                    (Some(high), 0xdc00..0xe000) => {
                        value.extend(char::decode_utf16([high, unit]).map(|it| it.unwrap_or('\u{fffd}')));
                    }
                    (lone, unit) => {
                        value.extend(lone.map(|_| '\u{fffd}'));
                        match char::from_u32(u32::from(unit)) {
                            Some(character) => value.push(character),
                            None if unit < 0xdc00 => *escape = Escape::High(unit),
                            None => value.push('\u{fffd}'),
                        }
                    }
                }
                rest
            }
            Escape::Unicode(digits, high) => {
                // No escape at all: it stays as it was written, and `next` is read again.
                value.extend(high.map(|_| '\u{fffd}'));
                value.push_str("\\u");
                value.push_str(&digits);
                text
            }
            Escape::High(high) if next == '\\' => {
                *escape = Escape::HighBegun(high);
                rest
            }
            Escape::High(_) => {
                value.push('\u{fffd}');
                text
            }
            Escape::HighBegun(high) if next == 'u' => {
                *escape = Escape::Unicode(String::new(), Some(high));
                rest
            }
            Escape::HighBegun(_) => {
                value.push('\u{fffd}');
                *escape = Escape::Begun;
                text
            }
        }
    }

    fn end_string(&mut self) {
        let Token::String(text, _) = std::mem::take(&mut self.token) else { return };
        if self.hidden > 0 {
            return;
        }
        match self.open.last_mut() {
            Some(Container::Object(_, key @ None)) => *key = Some(text),
            _ => self.put(Value::String(text)),
        }
    }
}

fn simple_escape(letter: char) -> Option<char> {
    Some(match letter {
        '"' | '\\' | '/' => letter,
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        _ => return None,
    })
}

/// A word that is complete.
fn finished(word: &str) -> Option<Value> {
    match word {
        "true" => Some(Value::Bool(true)),
        "false" => Some(Value::Bool(false)),
        "null" => Some(Value::Null),
        number => finished_number(number),
    }
}

/// A word that may go on: the literal it is the beginning of, or the longest number in it that may still be one.
fn shown(word: &str) -> Option<Value> {
    let literals = [("true", Value::Bool(true)), ("false", Value::Bool(false)), ("null", Value::Null)];
    if let Some((_, value)) = literals.into_iter().find(|(literal, _)| literal.starts_with(word)) {
        return Some(value);
    }
    if word.len() > LONG_NUMBER {
        return None;
    }
    // An exponent without digits adds nothing yet.
    let number = word.strip_suffix(['+', '-']).filter(|rest| rest.ends_with(['e', 'E'])).unwrap_or(word);
    let number = number.strip_suffix(['e', 'E']).unwrap_or(number);
    finished_number(number)
}

/// A number that is complete; one beyond the range of numbers reads as it does in the complete text.
fn finished_number(word: &str) -> Option<Value> {
    word.starts_with(|first: char| first == '-' || first.is_ascii_digit()).then_some(())?;
    serde_json::from_str(word).ok().or_else(|| crate::json::parse(word.as_bytes()))
}
