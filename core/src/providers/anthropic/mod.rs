//! Anthropic Messages (P200–P228). `request` writes the body, `messages` the conversation in it, `stream` reads the
//! answer, `threads` knows what the service holds.

mod messages;
mod request;
mod stream;
mod threads;

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use super::assemble::Assembler;
use super::http::{Memo, Outgoing, Refusal, cut};
use super::protocol::{Call, Interpreter, Protocol};
use super::transcript::is_blank;
use super::{Request, strict};

/// How many sessions are remembered whose strict tools were too much.
const REMEMBERED: usize = 4096;

/// The protocol `anthropic-messages`.
#[derive(Default)]
pub(crate) struct Anthropic {
    /// Sessions whose strict tools were refused: they go without (P228).
    lenient: Mutex<HashSet<String>>,
    threads: Arc<threads::Threads>,
}

impl Anthropic {
    fn is_lenient(&self, session: &str) -> bool {
        self.lenient.lock().is_ok_and(|known| known.contains(session))
    }
}

impl Protocol for Anthropic {
    fn api(&self) -> &'static str {
        "anthropic-messages"
    }

    fn needs_key(&self, _: &Call<'_>) -> bool {
        true
    }

    fn prepare(&self, call: &Call<'_>) -> Result<Outgoing, String> {
        request::outgoing(call, self.is_lenient(&call.request.session_id), &self.threads)
    }

    fn begin(&self, call: &Call<'_>, out: &mut Assembler) {
        if let Some(effort) = request::effort_in_place(call.request) {
            out.set("providerThinkingLevel", effort);
        }
    }

    fn interpreter(&self, request: &Request, memo: Option<Memo>) -> Box<dyn Interpreter> {
        let begun = memo.and_then(|memo| memo.downcast::<threads::Begun>().ok());
        let thread = begun.map(|begun| (self.threads.clone(), *begun));
        Box::new(stream::Messages::new(&request.model, thread))
    }

    fn refused(&self, _: &Request, refusal: &Refusal) -> String {
        // JSON on one line, however it was sent.
        let compact = serde_json::from_str::<serde_json::Value>(&refusal.body);
        let compact = compact.map(|body| match body.get("message").and_then(serde_json::Value::as_str) {
            Some(message) => message.to_owned(),
            None => body.to_string(),
        });
        let body = compact.map_or_else(|_| refusal.shown(), |body| cut(&body));
        match is_blank(&body) {
            true => format!("{} status code (no body)", refusal.status),
            false => format!("{} {body}", refusal.status),
        }
    }

    fn instead(&self, call: &Call<'_>, refused: &Outgoing, refusal: &Refusal) -> Option<Outgoing> {
        let request = call.request;
        let begun = refused.memo.as_ref().and_then(|memo| memo.downcast_ref::<threads::Begun>());
        if begun.is_some_and(|begun| self.threads.refused(begun, refusal)) {
            return self.prepare(call).ok();
        }
        let preferred = request.tools.iter().any(|tool| strict::wish(tool) == strict::Wish::Prefer);
        if !preferred || !is_about_strict_tools(refusal) || self.is_lenient(&request.session_id) {
            return None;
        }
        if let Ok(mut known) = self.lenient.lock() {
            if known.len() >= REMEMBERED {
                known.clear();
            }
            known.insert(request.session_id.clone());
        }
        self.prepare(call).ok()
    }
}

/// Whether a refusal says that the strict tools are too many or too complex.
fn is_about_strict_tools(refusal: &Refusal) -> bool {
    let body = refusal.body.to_ascii_lowercase();
    refusal.status == 400
        && (body.contains("grammar")
            || (body.contains("strict")
                && (body.contains("too many") || body.contains("limit") || body.contains("exceed"))))
}
