//! Frontmatter: a block of YAML in front of a markdown text (P722).

use serde_json::Value;

use crate::message::JsonObject;

/// A markdown text taken apart.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Document {
    /// The fields of the frontmatter; empty without one.
    pub fields: JsonObject,
    /// The text behind it, trimmed; without frontmatter the whole text with its line ends made LF.
    pub body: String,
}

impl Document {
    /// A field that is a string.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.fields.get(name).and_then(Value::as_str)
    }

    /// A field that is a number, a boolean or a string, as text: `name: 12` is a name, too.
    pub fn scalar(&self, name: &str) -> Option<String> {
        match self.fields.get(name)? {
            Value::String(text) => Some(text.clone()),
            value @ (Value::Number(_) | Value::Bool(_)) => Some(value.to_string()),
            _ => None,
        }
    }
}

/// Takes a text apart.
///
/// Errors: what is wrong with the YAML, in one line.
pub fn parse(text: &str) -> Result<Document, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n").replace('\r', "\n");
    let Some((yaml, body)) = split(&text) else { return Ok(Document { fields: JsonObject::new(), body: text }) };
    Ok(Document { fields: fields(yaml)?, body: body.trim().to_owned() })
}

/// The YAML and what follows it. The YAML starts behind the fourth character, whatever that is.
fn split(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix("---")?;
    let end = rest.find("\n---")?;
    let start = rest.chars().next().map_or(0, char::len_utf8);
    Some((rest.get(start..end).unwrap_or_default(), &rest[end + "\n---".len()..]))
}

fn fields(yaml: &str) -> Result<JsonObject, String> {
    if yaml.trim().is_empty() {
        return Ok(JsonObject::new());
    }
    // YAML 1.2: `y` and `off` are texts. The parser's own budget bounds depth, aliases and size.
    let options = serde_saphyr::options! { with_snippet: false, strict_booleans: true };
    match serde_saphyr::from_str_with_options::<Value>(yaml, options) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Ok(JsonObject::new()),
        Err(error) => Err(error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_starts_and_ends() {
        assert_eq!(parse("---").unwrap().body, "---");
        assert_eq!(parse("---é\nname: x\n---\nB").unwrap().text("name"), Some("x"));
        assert_eq!(
            parse("---\n# only a comment\n---\nB").unwrap(),
            Document { body: "B".into(), ..Default::default() }
        );
        assert_eq!(parse("---\n- a\n- b\n---\nB").unwrap().fields.len(), 0);
        assert_eq!(parse("---\nname: 12\n---\n").unwrap().scalar("name").as_deref(), Some("12"));
    }

    #[test]
    fn hostile_yaml_is_an_error_and_not_a_wait() {
        let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned();
        for level in 1..30 {
            let below = format!("*a{}", level - 1);
            bomb.push_str(&format!("a{level}: &a{level} [{}]\n", [below.as_str(); 9].join(",")));
        }
        assert!(parse(&format!("---\n{bomb}---\nB")).is_err());
        let deep = "[".repeat(100_000);
        assert!(parse(&format!("---\na: {deep}\n---\nB")).is_err());
        assert!(parse("---\na: 1\na: 2\n---\nB").is_err());
    }
}
