//! What holds for the module as a whole: any depth, any cut, any bytes, and agreement between its parts.

use super::*;
use proptest::prelude::*;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

/// Collects what `members` reports, descending into objects named `in`.
#[derive(Default)]
struct Collect<'a>(Vec<(u8, &'a [u8], &'a [u8])>);

impl<'a> Members<'a> for Collect<'a> {
    fn member(&mut self, depth: u8, key: &'a [u8], value: &'a [u8]) {
        self.0.push((depth, key, value));
    }

    fn descend(&mut self, key: &'a [u8]) -> bool {
        raw_str_eq(key, "in")
    }
}

fn collect(text: &str) -> Result<Vec<(u8, &str, &str)>, ObjectError> {
    let mut found = Collect::default();
    members(text.as_bytes(), &mut found)?;
    let text = |bytes| std::str::from_utf8(bytes).unwrap();
    Ok(found.0.into_iter().map(|(depth, key, value)| (depth, text(key), text(value))).collect())
}

#[test]
fn what_a_host_gives_is_kept_whole_or_refused() {
    let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(parse_given(nested(MAX_DEPTH).as_bytes()).unwrap().to_string(), nested(MAX_DEPTH));
    assert!(parse_given(nested(MAX_DEPTH + 1).as_bytes()).unwrap_err().contains("deeper than 100"));
    assert_eq!(parse_given(b"[1,]").unwrap_err(), "is not JSON: wrong at offset 3");
}

#[test]
fn s51_the_grammar_is_that_of_javascript() {
    let right = [
        ("{}", Kind::Object),
        (" \t\r\n{ \"a\" : [ 1 , { } , [ ] ] } \r", Kind::Object),
        ("[]", Kind::Array),
        ("[[],[{}],{\"\":{}}]", Kind::Array),
        ("\"\"", Kind::String),
        (r#""\"\\\/\b\f\n\r\t\u00e9\uD83D""#, Kind::String),
        ("0", Kind::Number),
        ("-0.0e-0", Kind::Number),
        ("10.25E+300", Kind::Number),
        ("12345678901234567890123", Kind::Number),
        ("1e400", Kind::Number),
        ("true", Kind::True),
        ("false", Kind::False),
        ("null", Kind::Null),
        ("\"\u{7f}\u{2028}\"", Kind::String),
    ];
    for (text, kind) in right {
        assert_eq!(validate(text.as_bytes()), Ok(kind), "{text}");
    }
    let wrong = [
        ("", 0),
        (" ", 1),
        ("\u{feff}{}", 0),
        ("{", 1),
        ("{\"a\"", 4),
        ("{\"a\":", 5),
        ("{\"a\" 1}", 5),
        ("{\"a\":1,}", 7),
        ("{a:1}", 1),
        ("{,}", 1),
        ("[1,]", 3),
        ("[,1]", 1),
        ("[1 2]", 3),
        ("[1}", 2),
        ("{\"a\":[1}", 7),
        ("{}}", 2),
        ("{}{}", 2),
        ("01", 1),
        ("-", 1),
        ("+1", 0),
        ("1.", 2),
        (".5", 0),
        ("1e", 2),
        ("1e+", 3),
        ("tru", 3),
        ("trve", 2),
        ("nulll", 4),
        ("NaN", 0),
        ("'a'", 0),
        ("\"a\tb\"", 2),
        ("\"\u{0}\"", 1),
        ("\"a", 2),
        (r#""\x""#, 2),
        (r#""\u12g4""#, 5),
        (r#""\u12""#, 5),
        ("\u{a0}{}", 0),
        ("\u{b}1", 0),
        ("[1] // no", 4),
    ];
    for (text, offset) in wrong {
        assert_eq!(validate(text.as_bytes()), Err(SyntaxError { offset }), "{text:?}");
        assert_eq!(parse(text.as_bytes()), None);
        assert_eq!(rewrite(text.as_bytes()), text.as_bytes());
        assert!(serde_json::from_str::<Value>(&to_serde(text.as_bytes())).is_err());
    }
}

#[test]
fn members_come_in_the_order_of_the_text() {
    let text = r#" { "a" : 1 , "in":{"x":"y", "in":{"z":{}}}, "b":{"c":2},"in":[3],"a":"\"" } "#;
    let expected = vec![
        (0, "a", "1"),
        (1, "x", "\"y\""),
        (1, "in", r#"{"z":{}}"#),
        (0, "in", r#"{"x":"y", "in":{"z":{}}}"#),
        (0, "b", r#"{"c":2}"#),
        (0, "in", "[3]"),
        (0, "a", r#""\"""#),
    ];
    assert_eq!(collect(text), Ok(expected));
    assert_eq!(collect("{}"), Ok(vec![]));
    assert_eq!(collect("{\"in\":{ }}"), Ok(vec![(0, "in", "{ }")]));
}

#[test]
fn s55_other_values_are_told_from_bad_syntax() {
    for (text, kind) in [("null", Kind::Null), (" 0 ", Kind::Number), ("[{}]", Kind::Array), ("\"\"", Kind::String)] {
        assert_eq!(collect(text), Err(ObjectError::NotAnObject(kind)));
    }
    assert_eq!(collect("[{]"), Err(ObjectError::Syntax(SyntaxError { offset: 2 })));
    assert_eq!(collect("{} x"), Err(ObjectError::Syntax(SyntaxError { offset: 3 })));
    assert_eq!(collect("{\"in\":{\"a\":}}"), Err(ObjectError::Syntax(SyntaxError { offset: 11 })));
}

#[test]
fn s6_the_last_of_equal_names_counts() {
    let object = br#" {"a":1,"b":{"a":9},"\u0061":2,"c":[3]}"#;
    assert_eq!(get(object, "a"), Some(&b"2"[..]));
    assert_eq!(get(object, "b"), Some(&br#"{"a":9}"#[..]));
    assert_eq!(get(object, "d"), None);
    assert_eq!(get(b"[1]", "a"), None);
    assert_eq!(get(br#"{"a":1"#, "a"), None);
}

#[test]
fn elements_are_raw() {
    assert_eq!(elements(b" [1, [2,3] ,{\"a\":\"]\"},\"x\" ] "), [&b"1"[..], b"[2,3]", b"{\"a\":\"]\"}", b"\"x\""]);
    assert!(elements(b"[ ]").is_empty());
    assert!(elements(b"{}").is_empty());
    assert!(elements(b"[1,2").is_empty());
    assert!(elements(b"").is_empty());
}

/// Runs everything on one text; the results do not matter here.
fn everything(text: &[u8]) {
    let _ = validate(text);
    let _ = members(text, &mut Collect::default());
    let _ = (get(text, "a"), elements(text), decode_string(text), raw_str_eq(text, "a"));
    let _ = (to_serde(text), parse(text), rewrite(text), canonical(text));
    let _ = (replace_member(text, "a", b"1"), remove_member(text, "a"));
}

const SAMPLE: &str = r#"{"type":"message","id":"a1","in":{"role":"user","content":[{"type":"text","text":"é\n\t\\\"\ud83c\udf75\ud800 and more than one block of plain text 🍵"}],"n":[-0.5e-7,12345678901234567890,true,false,null]},"2":"two","a":1,"\u0061":{"a":2,"a":[]},"1":{}}"#;

#[test]
fn a_text_cut_anywhere_is_an_error_and_nothing_worse() {
    assert_eq!(validate(SAMPLE.as_bytes()), Ok(Kind::Object));
    for end in 0..SAMPLE.len() {
        let cut = &SAMPLE.as_bytes()[..end];
        assert!(validate(cut).is_err_and(|error| error.offset <= end));
        assert!(members(cut, &mut Collect::default()).is_err());
        everything(cut);
        everything(&SAMPLE.as_bytes()[end..]);
    }
}

#[test]
fn any_depth_fits_on_a_small_stack() {
    const DEPTH: usize = 100_000;
    let deep = |open: &str, inside: &str, close: &str| {
        let text = [&open.repeat(DEPTH), inside, &close.repeat(DEPTH)].concat();
        format!("{{\"in\":{text},\"a\":{text}}}").into_bytes()
    };
    let texts = [
        deep("[", "", "]"),
        deep("{\"a\":", "1", "}"),
        deep("[{\"b\":", "[]", "}]"),
        // Members move at every level.
        deep("{\"b\":1.0,\"b\":", "0", ",\"1\":2}"),
        [b"[".repeat(DEPTH), b"]".repeat(DEPTH - 1)].concat(),
        b"{\"a\":".repeat(DEPTH),
        b"[{".repeat(DEPTH),
    ];
    let check = move || {
        for text in &texts[..4] {
            assert_eq!(validate(text), Ok(Kind::Object));
            assert!(members(text, &mut Collect::default()).is_ok());
            assert!(parse(text).is_some());
            assert_eq!(rewrite(&rewrite(text)), rewrite(text));
        }
        assert_eq!(rewrite(&texts[3]), deep("{\"1\":2,\"b\":", "0", "}"));
        for text in &texts {
            everything(text);
        }
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(check).unwrap().join().unwrap();
}

#[test]
fn depth_is_told_at_every_level_around_a_word() {
    for depth in [1, 2, 62, 63, 64, 65, 66, 127, 128, 129, 192, 193, 1000] {
        for pattern in 0..4 {
            let object = |level: usize| (level + pattern).is_multiple_of(pattern + 2);
            let mut text = String::new();
            (0..depth).for_each(|level| text.push_str(if object(level) { "{\"k\":" } else { "[" }));
            text.push('0');
            (0..depth).rev().for_each(|level| text.push(if object(level) { '}' } else { ']' }));
            assert!(validate(text.as_bytes()).is_ok());
            // A wrong closer anywhere is found where it stands.
            for at in text.len() - depth..text.len() {
                let mut bytes = text.clone().into_bytes();
                bytes[at] = if bytes[at] == b'}' { b']' } else { b'}' };
                assert_eq!(validate(&bytes), Err(SyntaxError { offset: at }));
            }
        }
    }
}

fn number() -> impl Strategy<Value = Value> {
    let double = any::<f64>().prop_map(|value| json!(value));
    prop_oneof![any::<i64>().prop_map(Value::from), any::<u64>().prop_map(Value::from), double]
}

fn value() -> impl Strategy<Value = Value> {
    let key = prop_oneof![".{0,6}", "[a-c]", "[0-9]{1,11}", Just("__proto__".to_owned())];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number(),
        ".{0,50}".prop_map(Value::from),
        "[\\\\\"\n\ta-c]{0,80}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 60, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..8).prop_map(|members| Value::Object(
                // One after the other, so that repeated names overwrite as they would when read.
                members.into_iter().collect()
            )),
        ]
    })
}

proptest! {
    #[test]
    fn what_serde_writes_is_read_back(value in value()) {
        for text in [serde_json::to_vec(&value).unwrap(), serde_json::to_vec_pretty(&value).unwrap(), to_vec(&value)] {
            prop_assert!(validate(&text).is_ok());
            let view = to_serde(&text);
            prop_assert!(matches!(view, std::borrow::Cow::Borrowed(_)) || text.windows(4).any(|part| part[0] == b'e'));
            // −0 is written as 0 and 1.0 as 1, so values are compared in text.
            prop_assert_eq!(canonical(&to_vec(&parse(&text).unwrap())), canonical(&text));
        }
        prop_assert_eq!(to_string(&value).into_bytes(), to_vec(&value));
    }

    #[test]
    fn s6_a_rewritten_text_stays_as_it_is(value in value()) {
        let text = serde_json::to_vec_pretty(&value).unwrap();
        let once = rewrite(&text);
        prop_assert!(validate(&once).is_ok());
        prop_assert_eq!(rewrite(&once), once.clone());
        prop_assert_eq!(canonical(&canonical(&text)), canonical(&once));
        // Order aside, it is the same value.
        prop_assert_eq!(canonical(&to_vec(&parse(&once).unwrap())), canonical(&to_vec(&parse(&text).unwrap())));
    }

    #[test]
    fn s51_validate_agrees_with_serde_json(
        value in value(),
        pretty in any::<bool>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..4u8, any::<u8>()), 0..4),
    ) {
        let written = if pretty { serde_json::to_vec_pretty(&value) } else { serde_json::to_vec(&value) };
        let mut text = written.unwrap();
        for (place, how, byte) in changes {
            if text.is_empty() {
                break;
            }
            let at = place.index(text.len());
            let structural = b"{}[]\",:\\0e-."[usize::from(byte) % 12];
            match how {
                0 => text[at] = byte,
                1 => text[at] = structural,
                2 => text.insert(at, structural),
                _ => drop(text.remove(at)),
            }
        }
        prop_assert_eq!(validate(&text).is_ok(), serde_json::from_slice::<IgnoredAny>(&text).is_ok());
        // The view is readable exactly when the text is valid, and the value is then the same everywhere.
        prop_assert_eq!(validate(&text).is_ok(), serde_json::from_str::<Value>(&to_serde(&text)).is_ok());
        everything(&text);
    }

    #[test]
    fn any_bytes_are_survived(text in prop::collection::vec(any::<u8>(), 0..200)) {
        everything(&text);
    }
}
