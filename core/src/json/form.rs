//! Forms: JSON objects of hosts that become structs of options.

use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{DeserializeOwned, Deserializer, Error, IntoDeserializer, Unexpected, Visitor};
use serde_json::Value;

/// Reads a form, at any depth: as `serde_json::from_value`, but where a struct belongs there has to be an object.
///
/// Hazard: what serde derives takes a list for a struct as well, its fields in the order of their declaration. A list that
/// somebody gave by mistake would be options without a word in them, `[]`, or some that nobody meant.
///
/// # Errors
/// What is wrong, in the words of `serde_json`. They may hold values: read by hand what is secret.
pub fn form<T: DeserializeOwned>(value: Value) -> serde_json::Result<T> {
    T::deserialize(Form(value))
}

struct Form(Value);

impl<'de> IntoDeserializer<'de, serde_json::Error> for Form {
    type Deserializer = Form;

    fn into_deserializer(self) -> Form {
        self
    }
}

impl Form {
    fn list<'de, V: Visitor<'de>>(list: Vec<Value>, visitor: V) -> serde_json::Result<V::Value> {
        let mut items = SeqDeserializer::new(list.into_iter().map(Form));
        let read = visitor.visit_seq(&mut items)?;
        items.end().map(|()| read)
    }

    fn object<'de, V: Visitor<'de>>(
        object: serde_json::Map<String, Value>,
        visitor: V,
    ) -> serde_json::Result<V::Value> {
        let mut members = MapDeserializer::new(object.into_iter().map(|(name, value)| (name, Form(value))));
        let read = visitor.visit_map(&mut members)?;
        members.end().map(|()| read)
    }
}

impl<'de> Deserializer<'de> for Form {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> serde_json::Result<V::Value> {
        match self.0 {
            Value::Array(list) => Form::list(list, visitor),
            Value::Object(object) => Form::object(object, visitor),
            plain => plain.deserialize_any(visitor),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> serde_json::Result<V::Value> {
        match self.0 {
            Value::Array(_) => Err(Error::invalid_type(Unexpected::Other("a list"), &"an object")),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> serde_json::Result<V::Value> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> serde_json::Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> serde_json::Result<V::Value> {
        self.0.deserialize_enum(name, variants, visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(rename_all = "camelCase", deny_unknown_fields, default)]
    struct Outer {
        inner: Inner,
        maybe: Option<Inner>,
        many: Vec<Inner>,
        word: Word,
        any: Value,
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Inner {
        count: u32,
        part: f64,
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(rename_all = "camelCase")]
    enum Word {
        #[default]
        First,
        Of(u32),
    }

    #[test]
    fn a_list_is_no_struct_at_any_depth() {
        let wrong =
            [json!([]), json!({"inner": []}), json!({"inner": [3, 4]}), json!({"maybe": []}), json!({"many": [[]]})];
        for value in wrong {
            let problem = form::<Outer>(value.clone()).unwrap_err().to_string();
            assert_eq!(problem, "invalid type: a list, expected an object", "{value}");
        }
        for value in [json!(5), json!({"inner": 5}), json!({"x": 1}), json!({"many": {}}), json!({"word": "third"})] {
            form::<Outer>(value.clone()).expect_err(&value.to_string());
        }
    }

    #[test]
    fn everything_else_is_read_as_ever() {
        let value = json!({
            "inner": {"count": 3, "part": 1},
            "maybe": null,
            "many": [{}, {"count": 4_000_000_000_u32, "part": 0.5}],
            "word": {"of": 7},
            "any": [[], {"a": [1.5, null]}],
        });
        assert_eq!(form::<Outer>(value.clone()).unwrap(), serde_json::from_value(value.clone()).unwrap());
        assert_eq!(form::<Value>(value.clone()).unwrap(), value);
        assert_eq!(form::<Outer>(json!({})).unwrap(), Outer::default());
        assert_eq!(form::<(u8, String)>(json!([1, "x"])).unwrap(), (1, "x".to_owned()));
        form::<(u8, String)>(json!([1, "x", 2])).unwrap_err();
    }
}
