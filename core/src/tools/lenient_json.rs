//! JSON as models write it inside strings.

use serde_json::Value;

/// Reads JSON, also with raw control characters inside its strings, which are not allowed there but plain.
pub(super) fn parse(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().or_else(|| serde_json::from_str(&escape_controls(text)).ok())
}

fn escape_controls(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let (mut inside, mut escaped) = (false, false);
    for c in text.chars() {
        match c {
            '"' if !escaped => inside = !inside,
            c if inside && c.is_ascii_control() => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
                escaped = false;
                continue;
            }
            _ => {}
        }
        escaped = inside && c == '\\' && !escaped;
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn control_characters() {
        assert_eq!(parse("[\"a\n\tb\"]"), Some(serde_json::json!(["a\n\tb"])));
        assert_eq!(parse("[\"a\\\"\n\"]"), Some(serde_json::json!(["a\"\n"])));
        assert_eq!(parse("[{bad"), None);
    }
}
