//! JSON that is nested deeper than most readers go: the tree of a long conversation.

use branchline::json;
use serde_json::{Map, Value};

/// The value of a JSON text, whatever its depth; `None` when it is not JSON.
pub fn parse(text: &[u8]) -> Option<Value> {
    match too_deep(text) {
        false => json::parse(text),
        true => json::validate(text).is_ok().then(|| value(text)),
    }
}

/// More brackets are open at once than the library reads; those in strings do no harm here.
fn too_deep(text: &[u8]) -> bool {
    let mut depth = 0usize;
    text.iter().any(|byte| {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > 90
    })
}

#[derive(Default)]
struct Object(Map<String, Value>);

impl<'a> json::Members<'a> for Object {
    fn member(&mut self, _depth: u8, key: &'a [u8], raw: &'a [u8]) {
        let key = json::decode_string(&[b"\"", key, b"\""].concat()).unwrap_or_default();
        self.0.insert(key, value(raw));
    }

    fn descend(&mut self, _key: &'a [u8]) -> bool {
        false
    }
}

fn value(raw: &[u8]) -> Value {
    let raw = raw.trim_ascii();
    match raw.first() {
        _ if !too_deep(raw) => json::parse(raw).unwrap_or_default(),
        Some(b'[') => json::elements(raw).into_iter().map(value).collect(),
        _ => {
            let mut object = Object::default();
            let _ = json::members(raw, &mut object);
            Value::Object(object.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_below() {
        let mut text = r#"{"at":"\ud800 end"}"#.to_owned();
        for n in 0..200 {
            text = format!(r#"{{"id":{n},"below":[{text}, 1]}}"#);
        }
        let mut at = &parse(text.as_bytes()).expect("JSON");
        for n in (0..200).rev() {
            assert_eq!(at["id"], n);
            assert_eq!(at["below"][1], 1);
            at = &at["below"][0];
        }
        assert_eq!(at["at"], "\u{fffd} end");
        assert_eq!(parse(b"{"), None);
    }
}
