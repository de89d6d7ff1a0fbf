//! JSON as JavaScript reads and writes it.
//!
//! A session file is JSONL that other programs may have written (S1, S51): lone surrogates in escapes, nesting of any
//! depth, integers beyond 2^53, very long lines and invalid UTF-8 all occur. `serde_json` rejects or changes some of
//! these, so lines are first read as bytes here, and only handed to it through [`to_serde`].
//!
//! * [`validate`], [`members`], [`get`], [`elements`]: find things in a text without building a tree.
//! * [`decode_string`], [`raw_str_eq`], [`write_string`], [`utf16_len`]: strings (S3).
//! * [`to_serde`], [`parse`]: the way from foreign text to `serde_json`; [`parse_given`] from that of a host.
//! * [`form()`]: from JSON of hosts to structs of options.
//! * [`write()`], [`write_value`], [`to_vec`], [`to_string`]: the way from `serde` types to text (S2–S4).
//! * [`rewrite()`], [`canonical`]: a text written again as JavaScript would (S6).
//! * [`replace_member`], [`remove_member`]: change one member and leave every other byte alone.
//!
//! Nothing here recurses over the input and nothing panics, whatever the bytes are.

mod block;
mod edit;
mod form;
mod lossy;
mod members;
mod number;
mod rewrite;
mod scan;
mod string;
mod text;
mod tokens;
mod write;

#[cfg(test)]
mod tests;

pub use edit::{remove_member, replace_member};
pub use form::form;
pub use lossy::{MAX_DEPTH, parse, parse_given, to_serde};
pub use members::{Members, ObjectError, elements, get, members};
pub use rewrite::{canonical, rewrite};
pub use scan::{Kind, SyntaxError, validate};
pub use text::{decode_string, raw_str_eq, utf16_len, write_string};
pub use write::{to_string, to_vec, write, write_object, write_value};
