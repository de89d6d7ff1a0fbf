//! Content blocks (S29), read in place.

use serde_json::Value;

use super::field;

/// One content block of a message.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Block<'a> {
    /// Plain text.
    Text(TextBlock<'a>),
    /// A picture.
    Image(ImageBlock<'a>),
    /// The model's reasoning.
    Thinking(ThinkingBlock<'a>),
    /// A call of a tool.
    ToolCall(ToolCallBlock<'a>),
    /// Anything else, as it stands.
    Other(&'a Value),
}

/// `{type:"text", text, textSignature?}`.
#[derive(Debug, Clone, Copy)]
pub struct TextBlock<'a> {
    /// The text.
    pub text: &'a str,
    /// Opaque signature of the provider.
    pub signature: Option<&'a str>,
}

/// `{type:"image", data, mimeType}`.
#[derive(Debug, Clone, Copy)]
pub struct ImageBlock<'a> {
    /// Base64 data.
    pub data: &'a str,
    /// For example `image/png`.
    pub mime_type: &'a str,
}

/// `{type:"thinking", thinking, thinkingSignature?, redacted?}`.
#[derive(Debug, Clone, Copy)]
pub struct ThinkingBlock<'a> {
    /// The reasoning text, possibly empty.
    pub thinking: &'a str,
    /// Opaque signature of the provider.
    pub signature: Option<&'a str>,
    /// The provider hid the text.
    pub redacted: bool,
}

/// `{type:"toolCall", id, name, arguments, …}`.
#[derive(Debug, Clone, Copy)]
pub struct ToolCallBlock<'a> {
    /// The call's id.
    pub id: &'a str,
    /// The tool's name.
    pub name: &'a str,
    /// The arguments as the model gave them; an object unless another program wrote something else.
    pub arguments: &'a Value,
    /// Set when the model's argument text was not a JSON object; `arguments` is then `{}`.
    pub arguments_error: Option<&'a str>,
    /// The group of tools the service found the tool in, if it has such groups.
    pub namespace: Option<&'a str>,
}

impl<'a> Block<'a> {
    /// Reads a block; one without the fields of its type is `Other`.
    pub fn new(value: &'a Value) -> Block<'a> {
        let Value::Object(object) = value else { return Block::Other(value) };
        let get = |key: &str| field(object, key);
        let string = |key: &str| get(key).and_then(Value::as_str);
        let typed = match string("type") {
            Some("text") => {
                string("text").map(|text| Block::Text(TextBlock { text, signature: string("textSignature") }))
            }
            Some("image") => string("data")
                .zip(string("mimeType"))
                .map(|(data, mime_type)| Block::Image(ImageBlock { data, mime_type })),
            Some("thinking") => string("thinking").map(|thinking| {
                let redacted = get("redacted").and_then(Value::as_bool).unwrap_or(false);
                Block::Thinking(ThinkingBlock { thinking, signature: string("thinkingSignature"), redacted })
            }),
            Some("toolCall") => string("id").zip(string("name")).map(|(id, name)| {
                let arguments = get("arguments").unwrap_or(&Value::Null);
                let (arguments_error, namespace) = (string("argumentsError"), string("namespace"));
                Block::ToolCall(ToolCallBlock { id, name, arguments, arguments_error, namespace })
            }),
            _ => None,
        };
        typed.unwrap_or(Block::Other(value))
    }
}
