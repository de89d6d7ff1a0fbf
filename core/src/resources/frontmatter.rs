//! Frontmatter: a block of YAML in front of a markdown text (P722).

use serde_json::Value;

use crate::blank;
use crate::message::JsonObject;

/// A markdown text taken apart.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Document {
    /// The fields of the frontmatter; empty without one.
    pub fields: JsonObject,
    /// The frontmatter when it is no mapping of fields but a list or a single value; else `null`.
    pub other: Value,
    /// The text behind it, trimmed; without frontmatter the whole text with its line ends made LF.
    pub body: String,
}

impl Document {
    /// A field that is a string.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.fields.get(name).and_then(Value::as_str)
    }
}

/// Takes a text apart.
///
/// Errors: what is wrong with the YAML, in one line.
pub fn parse(text: &str) -> Result<Document, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n").replace('\r', "\n");
    let Some((yaml, body)) = split(&text) else { return Ok(Document { body: text, ..Document::default() }) };
    let (fields, other) = read(yaml)?;
    Ok(Document { fields, other, body: blank::trim(body).to_owned() })
}

/// The YAML and what follows it. The YAML starts behind the fourth character, whatever that is.
fn split(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix("---")?;
    let end = rest.find("\n---")?;
    let start = rest.chars().next().map_or(0, char::len_utf8);
    Some((rest.get(start..end).unwrap_or_default(), &rest[end + "\n---".len()..]))
}

fn read(yaml: &str) -> Result<(JsonObject, Value), String> {
    if blank::trim(yaml).is_empty() {
        return Ok((JsonObject::new(), Value::Null));
    }
    // YAML 1.2: `y` and `off` are texts. The parser's own budget bounds depth, aliases and size.
    let options = serde_saphyr::options! {
        with_snippet: false, strict_booleans: true, underscored_numbers_as_strings: true,
        merge_keys: serde_saphyr::options::MergeKeyPolicy::AsOrdinary,
        non_finite_float_policy: serde_saphyr::options::NonFiniteFloatPolicy::PassThrough,
    };
    match serde_saphyr::from_str_with_options::<Value>(yaml, options) {
        Ok(Value::Object(fields)) => Ok((fields, Value::Null)),
        Ok(other) => Ok((JsonObject::new(), other)),
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
        let list = parse("---\n- a\n- b\n---\nB").unwrap();
        assert_eq!((list.fields.len(), list.other), (0, serde_json::json!(["a", "b"])));
        assert_eq!(parse("---\nname: 12\n---\n").unwrap().text("name"), None, "a name is a text");
    }

    /// P722: scalars are YAML 1.2's, and blank is what JavaScript trims.
    #[test]
    fn p722_scalars_and_blanks() {
        let text = "---\na: y\nb: 1_000\nc: 1e3\nd: .inf\ne: 0o17\n<<: {f: 1}\n---\n\u{feff} \u{85}B\u{a0}";
        let document = parse(text).unwrap();
        let wanted = serde_json::json!({"a": "y", "b": "1_000", "c": 1000.0, "d": null, "e": 15, "<<": {"f": 1}});
        assert_eq!((Value::Object(document.fields), document.body.as_str()), (wanted, "\u{85}B"));
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
