//! Chat completions: the protocol of OpenAI that most other services and local servers speak too (P300–P325).
//!
//! * `compat`: how services differ. * `request`, `messages`, `thinking`: from a request to its JSON body.
//! * `chunk`, `stream`, `usage`, `details`: from streamed chunks to the response.

mod chunk;
mod compat;
mod details;
mod messages;
mod request;
mod stream;
#[cfg(test)]
mod tests;
mod thinking;
mod usage;

use compat::ChatCompat;
use stream::{ChatStream, ChatStreamOptions};

use super::call_id;
use super::http::{Memo, Outgoing, Refusal};
use super::openai_shared::{self as shared, SessionHeaders};
use super::openai_tools::grammar_tools;
use super::protocol::{Call, Interpreter, Protocol};
use super::transcript::{UniqueIds, target, transcript};
use super::{CacheRetention, Request};
use crate::message::Message;

/// The protocol's name in models.
pub(crate) const API: &str = "openai-completions";

/// Chat completions.
pub(crate) struct OpenAiChat;

impl Protocol for OpenAiChat {
    fn api(&self) -> &'static str {
        API
    }

    fn prepare(&self, call: &Call<'_>) -> Result<Outgoing, String> {
        let (request, compat) = (call.request, ChatCompat::of(&call.request.model));
        // The longest id the original service takes; others are not known to have a limit.
        let unique = UniqueIds::new(request, 40);
        let target = target(&request.model);
        let normalize = |id: &str, _: &Message| unique.unique(id, call_id::chat_completions(id, &target));
        let transcript = transcript(request, Some(&normalize), compat.system_in_place);
        let body = request::body(request, &compat, &transcript)?;
        let mut out = Outgoing::of_text(format!("{}/chat/completions", call.base_url()), body);
        out.header("accept", "application/json");
        call.bearer(&mut out);
        let session = &request.session_id;
        if request.options.cache_retention != CacheRetention::None && !session.is_empty() {
            let names: &[&str] = match compat.session_headers {
                Some(SessionHeaders::Usual) => &["session_id", "x-client-request-id", "x-session-affinity"],
                Some(SessionHeaders::WithoutSession) => &["x-client-request-id", "x-session-affinity"],
                Some(SessionHeaders::Routed) => &["x-session-id"],
                None => &[],
            };
            names.iter().for_each(|name| out.private_header(name, session));
        }
        Ok(out)
    }

    fn interpreter(&self, request: &Request, _: Option<Memo>) -> Box<dyn Interpreter> {
        let compat = ChatCompat::of(&request.model);
        Box::new(ChatStream::new(ChatStreamOptions {
            supports_finish_reason: compat.finish_reason,
            bills: compat.bills,
            grammar_tools: grammar_tools(&request.tools, compat.grammar_tools),
        }))
    }

    fn refused(&self, _: &Request, refusal: &Refusal) -> String {
        let detail = shared::refusal_text(&refusal.body);
        if detail.is_empty() {
            return format!("{} status code (no body)", refusal.status);
        }
        // An object is announced; other bodies just follow.
        let between = if detail.starts_with('{') { ":" } else { "" };
        super::http::cut(&format!("{}{between} {detail}", refusal.status))
    }
}
