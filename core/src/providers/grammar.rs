//! Input of a tool with a grammar, shown as the JSON arguments of a tool with one property (P132).

/// Turns pieces of free text into pieces of `{"<property>":"…"}`.
#[derive(Debug)]
pub(crate) struct InputAsJson {
    property: String,
    begun: bool,
}

impl InputAsJson {
    /// Text for this property.
    pub(crate) fn new(property: &str) -> InputAsJson {
        InputAsJson { property: property.to_owned(), begun: false }
    }

    fn literal(text: &str) -> String {
        let mut out = Vec::with_capacity(text.len() + 2);
        crate::json::write_string(&mut out, text);
        String::from_utf8(out).unwrap_or_default()
    }

    /// The JSON text this piece adds: nothing for an empty one.
    pub(crate) fn push(&mut self, text: &str) -> String {
        if text.is_empty() {
            return String::new();
        }
        let escaped = Self::literal(text);
        let inside = escaped.get(1..escaped.len().saturating_sub(1)).unwrap_or_default();
        if std::mem::replace(&mut self.begun, true) {
            return inside.to_owned();
        }
        self.beginning() + inside
    }

    fn beginning(&self) -> String {
        format!("{{{}:\"", Self::literal(&self.property))
    }

    /// The JSON text that closes the object.
    pub(crate) fn end(&mut self) -> String {
        if self.begun { "\"}".to_owned() } else { self.beginning() + "\"}" }
    }

    /// The whole object for a text.
    pub(crate) fn whole(property: &str, text: &str) -> String {
        let mut input = InputAsJson::new(property);
        input.push(text) + &input.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_make_an_object() {
        let mut input = InputAsJson::new("a\"b");
        assert_eq!(input.push(""), "");
        let text = input.push("x\n") + &input.push("\"y") + &input.end();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), serde_json::json!({"a\"b": "x\n\"y"}));
        assert_eq!(InputAsJson::new("p").end(), r#"{"p":""}"#);
        assert_eq!(InputAsJson::whole("p", "q"), r#"{"p":"q"}"#);
    }
}
