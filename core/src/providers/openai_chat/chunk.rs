//! The shape of one streamed chunk, read without copying text and without minding what is missing.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::providers::wire::{Count, Fill, Place, Text};

/// One `chat.completion.chunk`, or what a server sends in its place.
#[derive(Debug, serde::Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) model: Text<'a>,
    #[serde(borrow, default)]
    pub(super) choices: First<Choice<'a>>,
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
    /// An error after the response began.
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
}

#[derive(Debug, Default)]
pub(super) struct Choice<'a> {
    pub(super) delta: Delta<'a>,
    pub(super) finish_reason: Text<'a>,
    /// Some services report usage here (P322).
    pub(super) usage: Option<&'a RawValue>,
    pub(super) error: Option<&'a RawValue>,
}

impl<'de: 'a, 'a> Fill<'de> for Choice<'a> {
    fn fill<A: MapAccess<'de>>(&mut self, mut map: A) -> Result<(), A::Error> {
        #[derive(serde::Deserialize)]
        #[serde(field_identifier, rename_all = "snake_case")]
        enum Field {
            Delta,
            FinishReason,
            Usage,
            Error,
            #[serde(other)]
            Other,
        }
        while let Some(field) = map.next_key()? {
            match field {
                Field::Delta => {
                    self.delta = Delta::default(); // of a key that is there twice the last one counts
                    map.next_value_seed(Place(&mut self.delta))?;
                }
                Field::FinishReason => self.finish_reason = map.next_value()?,
                Field::Usage => self.usage = map.next_value()?,
                Field::Error => self.error = map.next_value()?,
                Field::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

#[derive(Debug, Default)]
pub(super) struct Delta<'a> {
    pub(super) content: Text<'a>,
    /// The text of a declined answer, in place of content.
    pub(super) refusal: Text<'a>,
    pub(super) reasoning_content: Text<'a>,
    pub(super) reasoning: Text<'a>,
    pub(super) reasoning_text: Text<'a>,
    pub(super) reasoning_details: Option<&'a RawValue>,
    pub(super) tool_calls: Option<Vec<CallPiece<'a>>>,
}

impl<'de: 'a, 'a> Fill<'de> for Delta<'a> {
    fn fill<A: MapAccess<'de>>(&mut self, mut map: A) -> Result<(), A::Error> {
        #[derive(serde::Deserialize)]
        #[serde(field_identifier, rename_all = "snake_case")]
        enum Field {
            Content,
            Refusal,
            ReasoningContent,
            Reasoning,
            ReasoningText,
            ReasoningDetails,
            ToolCalls,
            #[serde(other)]
            Other,
        }
        while let Some(field) = map.next_key()? {
            match field {
                Field::Content => self.content = map.next_value()?,
                Field::Refusal => self.refusal = map.next_value()?,
                Field::ReasoningContent => self.reasoning_content = map.next_value()?,
                Field::Reasoning => self.reasoning = map.next_value()?,
                Field::ReasoningText => self.reasoning_text = map.next_value()?,
                Field::ReasoningDetails => self.reasoning_details = map.next_value()?,
                Field::ToolCalls => self.tool_calls = map.next_value()?,
                Field::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

impl Delta<'_> {
    /// The reasoning of this delta and the field it came in: the first one that is not empty (P323).
    pub(super) fn thinking(&self) -> Option<(&'static str, &str)> {
        [
            ("reasoning_content", &self.reasoning_content),
            ("reasoning", &self.reasoning),
            ("reasoning_text", &self.reasoning_text),
        ]
        .into_iter()
        .find_map(|(field, text)| text.filled().map(|text| (field, text)))
    }
}

/// The first element of a list; none of anything else. Boxed, since what holds it is moved a few times.
#[derive(Debug)]
pub(super) struct First<T>(pub(super) Option<Box<T>>);

impl<T> Default for First<T> {
    fn default() -> First<T> {
        First(None)
    }
}

impl<'de, T: Default + Fill<'de>> Deserialize<'de> for First<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<First<T>, D::Error> {
        struct FirstVisitor<T>(PhantomData<T>);
        impl<'de, T: Default + Fill<'de>> Visitor<'de> for FirstVisitor<T> {
            type Value = First<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_unit<E: de::Error>(self) -> Result<First<T>, E> {
                Ok(First(None))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<First<T>, A::Error> {
                let mut first = Box::<T>::default();
                if seq.next_element_seed(Place(&mut *first))?.is_none() {
                    return Ok(First(None));
                }
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(First(Some(first)))
            }
        }
        from.deserialize_any(FirstVisitor(PhantomData))
    }
}

/// A piece of one tool call.
#[derive(Debug, serde::Deserialize)]
pub(super) struct CallPiece<'a> {
    #[serde(default)]
    pub(super) index: Count,
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) function: Option<FunctionPiece<'a>>,
    /// A call of a tool with a grammar (P132).
    #[serde(borrow, default)]
    pub(super) custom: Option<CustomPiece<'a>>,
}

#[derive(Debug, serde::Deserialize)]
pub(super) struct FunctionPiece<'a> {
    #[serde(borrow, default)]
    pub(super) name: Text<'a>,
    /// A string by the rules; some servers send the finished object.
    #[serde(borrow, default)]
    pub(super) arguments: Option<&'a RawValue>,
}

#[derive(Debug, serde::Deserialize)]
pub(super) struct CustomPiece<'a> {
    #[serde(borrow, default)]
    pub(super) name: Text<'a>,
    #[serde(borrow, default)]
    pub(super) input: Text<'a>,
}

/// Token counts as services of this family report them.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct RawUsage {
    pub(super) prompt_tokens: Count,
    pub(super) completion_tokens: Count,
    pub(super) prompt_cache_hit_tokens: Count,
    pub(super) cached_tokens: Count,
    pub(super) prompt_tokens_details: Option<PromptDetails>,
    pub(super) completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct PromptDetails {
    pub(super) cached_tokens: Count,
    pub(super) cache_write_tokens: Count,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct CompletionDetails {
    pub(super) reasoning_tokens: Count,
}
