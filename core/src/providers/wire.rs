//! Reading what services send: lenient field types, and JSON that is repaired before giving up (P47, P227).

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::arguments::repair_strings;

/// A count that some service sends as a fraction, as a text or as null: anything but a number counts as absent, and a
/// negative number as 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Count(pub(crate) Option<u64>);

impl Count {
    /// The number, or 0.
    pub(crate) fn or_zero(self) -> u64 {
        self.0.unwrap_or(0)
    }
}

/// A text, borrowed from the event where it holds no escapes; anything else counts as absent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Text<'a>(pub(crate) Option<Cow<'a, str>>);

impl<'a> Text<'a> {
    /// The text, or an empty one.
    pub(crate) fn or_empty(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    /// The text, if there is one with something in it.
    pub(crate) fn filled(&self) -> Option<&str> {
        self.0.as_deref().filter(|text| !text.is_empty())
    }
}

/// What is no text, number or object counts as absent.
macro_rules! absent {
    ($value:expr) => {
        fn visit_bool<E: de::Error>(self, _: bool) -> Result<Self::Value, E> {
            Ok($value)
        }

        fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
            Ok($value)
        }

        fn visit_none<E: de::Error>(self) -> Result<Self::Value, E> {
            Ok($value)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            Ok($value)
        }
    };
}

/// So does an object.
macro_rules! absent_object {
    ($value:expr) => {
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok($value)
        }
    };
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Count, D::Error> {
        struct CountVisitor;
        impl<'de> Visitor<'de> for CountVisitor {
            type Value = Count;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a count")
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Count, E> {
                Ok(Count(Some(number)))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Count, E> {
                Ok(Count(Some(u64::try_from(number).unwrap_or(0))))
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Count, E> {
                Ok(Count(Some(number as u64)))
            }

            fn visit_str<E: de::Error>(self, _: &str) -> Result<Count, E> {
                Ok(Count(None))
            }

            absent!(Count(None));
            absent_object!(Count(None));
        }
        deserializer.deserialize_any(CountVisitor)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text<'a>, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Some(Cow::Borrowed(text))))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Some(Cow::Owned(text.to_owned()))))
            }

            fn visit_u64<E: de::Error>(self, _: u64) -> Result<Text<'de>, E> {
                Ok(Text(None))
            }

            fn visit_i64<E: de::Error>(self, _: i64) -> Result<Text<'de>, E> {
                Ok(Text(None))
            }

            fn visit_f64<E: de::Error>(self, _: f64) -> Result<Text<'de>, E> {
                Ok(Text(None))
            }

            absent!(Text(None));
            absent_object!(Text(None));
        }
        deserializer.deserialize_any(TextVisitor)
    }
}

/// A large structure that is filled where it lies: what `Deserialize` returns is moved at every level. Whatever is
/// no object leaves it as it is.
pub(crate) trait Fill<'de> {
    /// Takes in the members of an object.
    fn fill<A: MapAccess<'de>>(&mut self, map: A) -> Result<(), A::Error>;
}

/// Where a structure is filled.
pub(crate) struct Place<'a, T>(pub(crate) &'a mut T);

impl<'de, T: Fill<'de>> DeserializeSeed<'de> for Place<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de, T: Fill<'de>> Visitor<'de> for Place<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        self.0.fill(map)
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: de::Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    absent!(());
}

/// A structure that borrows from the text it is read from. Implement it for a marker type: `type Of<'a> = Event<'a>`.
pub(crate) trait Wire {
    /// The structure.
    type Of<'a>: Deserialize<'a>;
}

/// Reads one event's data and hands it over.
///
/// Errors: the data is no JSON, also after repair, or not of the structure; the parser's words.
pub(crate) fn read<W: Wire, R>(data: &str, then: impl FnOnce(W::Of<'_>) -> R) -> Result<R, String> {
    let error = match serde_json::from_str::<W::Of<'_>>(data) {
        Ok(event) => return Ok(then(event)),
        Err(error) => error.to_string(),
    };
    // Rare: raw control characters, half a surrogate pair, a key twice.
    let repaired = repair_strings(data);
    let Some(value) = crate::json::parse(repaired.as_bytes()) else { return Err(error) };
    let text = serde_json::to_string(&value).map_err(|_| error.clone())?;
    serde_json::from_str::<W::Of<'_>>(&text).map(then).map_err(|_| error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    struct Sample<'a> {
        #[serde(default)]
        n: Count,
        #[serde(default, borrow)]
        t: Text<'a>,
    }

    struct Samples;
    impl Wire for Samples {
        type Of<'a> = Sample<'a>;
    }

    fn sample(data: &str) -> Result<(Option<u64>, Option<String>), String> {
        read::<Samples, _>(data, |it| (it.n.0, it.t.0.map(Cow::into_owned)))
    }

    #[test]
    fn odd_types_count_as_absent() {
        assert_eq!(sample("{}"), Ok((None, None)));
        assert_eq!(sample(r#"{"n":7,"t":"x\n"}"#), Ok((Some(7), Some("x\n".into()))));
        assert_eq!(sample(r#"{"n":7.9,"t":5}"#), Ok((Some(7), None)));
        assert_eq!(sample(r#"{"n":-3,"t":null,"more":[{}]}"#), Ok((Some(0), None)));
        assert_eq!(sample(r#"{"n":{"a":[1]},"t":[true]}"#), Ok((None, None)));
        assert_eq!(sample(r#"{"n":null,"t":false}"#), Ok((None, None)));
        assert_eq!(sample(r#"{"n":1e300}"#), Ok((Some(u64::MAX), None)));
    }

    #[test]
    fn p227_data_is_repaired() {
        assert_eq!(sample("{\"t\":\"a\tb\\q\"}"), Ok((None, Some("a\tb\\q".into()))));
        assert_eq!(sample(r#"{"t":"\ud83d","t":"z"}"#), Ok((None, Some("z".into()))));
        assert!(sample("{\"t\":").is_err());
    }
}
