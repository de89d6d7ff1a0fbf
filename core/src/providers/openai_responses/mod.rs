//! The Responses API of OpenAI and of services that speak it too (P400–P426).
//!
//! * `compat`: how services differ. * `request`, `input`, `changes`: from a request to its JSON body.
//! * `event`, `stream`: from streamed events to the response. `tier`: what a service tier costs.

mod changes;
mod compat;
mod event;
mod input;
mod request;
mod stream;
#[cfg(test)]
mod tests;
mod tier;

use secrecy::ExposeSecret;

use compat::ResponsesCompat;
use stream::ResponsesStream;

use super::assemble::Assembler;
use super::http::{Memo, Outgoing, Refusal};
use super::openai_shared::{self as shared, SessionHeaders};
use super::openai_tools::grammar_tools;
use super::protocol::{Call, Interpreter, Protocol};
use super::{CacheRetention, Request};

/// The protocol's name in models.
pub(crate) const API: &str = "openai-responses";

/// The Responses API.
pub(crate) struct OpenAiResponses;

impl Protocol for OpenAiResponses {
    fn api(&self) -> &'static str {
        API
    }

    fn prepare(&self, call: &Call<'_>) -> Result<Outgoing, String> {
        let request = call.request;
        let key = call.auth.key.as_ref().map(|key| key.expose_secret());
        let compat = ResponsesCompat::of(&request.model, key);
        let transcript = input::prepare(request, compat.system_in_place);
        let body = request::body(request, &compat, &transcript)?;
        let mut out = Outgoing::new(format!("{}/responses", call.base_url()), &body);
        out.header("accept", "application/json");
        call.bearer(&mut out);
        let session = &request.session_id;
        if request.options.cache_retention != CacheRetention::None && !session.is_empty() {
            let names: &[&str] = match compat.session_headers {
                SessionHeaders::Usual => &["session-id", "x-client-request-id"],
                SessionHeaders::WithoutSession => &["x-client-request-id"],
                SessionHeaders::Routed => &["x-session-id"],
            };
            names.iter().for_each(|name| out.private_header(name, session));
        }
        Ok(out)
    }

    fn begin(&self, call: &Call<'_>, out: &mut Assembler) {
        let key = call.auth.key.as_ref().map(|key| key.expose_secret());
        let compat = ResponsesCompat::of(&call.request.model, key);
        if let Some(effort) = request::effort_in_place(call.request, &compat) {
            out.set("providerThinkingLevel", effort);
        }
    }

    fn interpreter(&self, request: &Request, _: Option<Memo>) -> Box<dyn Interpreter> {
        let grammar = request.model.compat.is("supportsOpenAIGrammarTools", false);
        let tier = request::service_tier(request);
        Box::new(ResponsesStream::new(grammar_tools(&request.tools, grammar), tier))
    }

    fn refused(&self, request: &Request, refusal: &Refusal) -> String {
        let provider = match request.model.provider.as_str() {
            "openai" => "OpenAI",
            other => other,
        };
        let detail = match shared::refusal_text(&refusal.body) {
            detail if detail.is_empty() => format!("{} status code (no body)", refusal.status),
            detail if detail.starts_with('{') => detail,
            detail => format!("{} {detail}", refusal.status),
        };
        super::http::cut(&format!("{provider} API error ({}): {detail}", refusal.status))
    }
}
