//! The members of an object, found while the text is checked.

use super::scan::{Ignore, Kind, Scanner, SyntaxError, validate};
use super::text::raw_str_eq;

/// Receives the members of an object while the whole text is validated in the same pass.
pub trait Members<'a> {
    /// One member. `depth` is 0 for a member of the top object and 1 for a member of an object that
    /// [`descend`](Members::descend) said yes to. `key` is the raw text between the quotes, `value` the raw text of
    /// the value, already checked.
    ///
    /// Members in front of a syntax error may have been reported before the error is found.
    fn member(&mut self, depth: u8, key: &'a [u8], value: &'a [u8]);

    /// Asked before a member of the top object whose value is an object is read: report that object's members too?
    /// They come before the member itself.
    fn descend(&mut self, _key: &'a [u8]) -> bool {
        false
    }
}

/// Why a text has no members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectError {
    /// It is not JSON (S51).
    Syntax(SyntaxError),
    /// It is JSON, but no object (S55).
    NotAnObject(Kind),
}

impl From<SyntaxError> for ObjectError {
    fn from(error: SyntaxError) -> Self {
        ObjectError::Syntax(error)
    }
}

impl std::fmt::Display for ObjectError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ObjectError::Syntax(error) => error.fmt(f),
            ObjectError::NotAnObject(kind) => write!(f, "not an object but {kind:?}"),
        }
    }
}

impl std::error::Error for ObjectError {}

/// Validates `text` and reports the members of the object it must be.
#[inline]
pub fn members<'a, V: Members<'a>>(text: &'a [u8], visitor: &mut V) -> Result<(), ObjectError> {
    let mut scanner = Scanner::new(text);
    scanner.skip_space();
    if scanner.peek() != b'{' {
        return Err(validate(text).map_or_else(ObjectError::Syntax, ObjectError::NotAnObject));
    }
    object(&mut scanner, 0, visitor)?;
    Ok(scanner.finish()?)
}

/// One object with its members reported; calls itself for depth 1, never further.
#[inline]
fn object<'a, V: Members<'a>>(scanner: &mut Scanner<'a>, depth: u8, visitor: &mut V) -> Result<(), SyntaxError> {
    scanner.expect(b'{')?;
    scanner.skip_space();
    if scanner.peek() != b'}' {
        loop {
            let key = scanner.key()?;
            let key = scanner.slice(key.start + 1..key.end - 1);
            let start = scanner.at;
            if depth == 0 && scanner.peek() == b'{' && visitor.descend(key) {
                object(scanner, 1, visitor)?;
            } else {
                scanner.value(&mut Ignore)?;
            }
            visitor.member(depth, key, scanner.slice(start..scanner.at));
            if !scanner.comma(b'}')? {
                break;
            }
        }
    }
    scanner.at += 1;
    Ok(())
}

/// The raw value of a member of a valid object; of several with the same name the last.
///
/// Names are compared after decoding their escapes.
pub fn get<'a>(object: &'a [u8], key: &str) -> Option<&'a [u8]> {
    struct Find<'a, 'k> {
        key: &'k str,
        found: Option<&'a [u8]>,
    }
    impl<'a> Members<'a> for Find<'a, '_> {
        fn member(&mut self, _depth: u8, key: &'a [u8], value: &'a [u8]) {
            if raw_str_eq(key, self.key) {
                self.found = Some(value);
            }
        }
    }
    let mut find = Find { key, found: None };
    members(object, &mut find).ok()?;
    find.found
}

/// The raw elements of a valid array; none when `array` is not one.
pub fn elements(array: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    let mut scanner = Scanner::new(array);
    match read_elements(&mut scanner, &mut found) {
        Ok(()) => found,
        Err(_) => Vec::new(),
    }
}

fn read_elements<'a>(scanner: &mut Scanner<'a>, found: &mut Vec<&'a [u8]>) -> Result<(), SyntaxError> {
    scanner.skip_space();
    scanner.expect(b'[')?;
    scanner.skip_space();
    if scanner.peek() != b']' {
        loop {
            let start = scanner.at;
            scanner.value(&mut Ignore)?;
            found.push(scanner.slice(start..scanner.at));
            if !scanner.comma(b']')? {
                break;
            }
        }
    }
    scanner.at += 1;
    scanner.finish()
}
