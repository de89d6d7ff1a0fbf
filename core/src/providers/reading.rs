//! From the bytes of an answer to the steps of a protocol.

use std::sync::Arc;

use super::assemble::Assembler;
use super::http::cut;
use super::protocol::{Flow, Interpreter};
use super::remote::protocols;
use super::sse::SseReader;
use super::{Model, Request, StreamEvent};

/// How much of an answer is kept to be shown if it is no stream of events.
const HEAD: usize = 8192;

/// The state of reading one answer.
pub(crate) struct Reading {
    reader: SseReader,
    interpreter: Box<dyn Interpreter>,
    /// Whether there was any event, and what the answer looked like before.
    events: bool,
    head: Vec<u8>,
}

impl Reading {
    pub(crate) fn new(interpreter: Box<dyn Interpreter>) -> Reading {
        Reading { reader: SseReader::default(), interpreter, events: false, head: Vec::new() }
    }

    /// Takes in what has arrived. True once the response is complete and its message finished.
    ///
    /// Errors: the sentence with which the response fails.
    pub(crate) fn take(&mut self, bytes: &[u8], out: &mut Assembler) -> Result<bool, String> {
        if !self.events && self.head.len() < HEAD {
            self.head.extend_from_slice(&bytes[..bytes.len().min(HEAD - self.head.len())]);
        }
        self.reader.push(bytes);
        while let Some(event) = self.reader.next_event().map_err(|error| error.to_string())? {
            self.events = true;
            if self.interpreter.event(&event, out)? == Flow::Done {
                self.interpreter.end(out)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The connection has ended.
    ///
    /// Errors: the sentence with which the response fails; that it broke off, usually.
    pub(crate) fn end(&mut self, out: &mut Assembler) -> Result<(), String> {
        if let Some(event) = self.reader.finish() {
            self.events = true;
            self.interpreter.event(&event, out)?;
        }
        self.interpreter.end(out).map_err(|error| self.explain(error))
    }

    /// An answer that was no stream of events at all is shown: usually it says what is wrong.
    fn explain(&self, error: String) -> String {
        let text = String::from_utf8_lossy(&self.head);
        let text = text.trim();
        if self.events || text.is_empty() || text.starts_with(':') {
            return error;
        }
        format!("{error}. The service answered: {}", cut(text))
    }
}

/// Reads the body of an answer that was recorded, for example by a [`WireObserver`](super::WireObserver): the events a
/// request to `model` would have given. `None` if nobody implements the model's protocol.
pub fn read_recorded(model: Model, body: &[u8]) -> Option<Vec<StreamEvent>> {
    read_recorded_pieces(model, &[body])
}

/// The same of a body in the pieces in which it arrived. Where it was cut makes no difference.
pub fn read_recorded_pieces(model: Model, pieces: &[&[u8]]) -> Option<Vec<StreamEvent>> {
    let model = Arc::new(model);
    let protocol = protocols().into_iter().find(|protocol| protocol.api() == model.api)?;
    let mut out = Assembler::new(model.clone());
    out.start();
    let mut reading = Reading::new(protocol.interpreter(&Request::new(model, Vec::new()), None));
    let over = pieces.iter().try_fold(false, |over, piece| if over { Ok(true) } else { reading.take(piece, &mut out) });
    if let Err(error) = over.and_then(|over| if over { Ok(()) } else { reading.end(&mut out) }) {
        out.fail(&error);
    }
    Some(std::iter::from_fn(|| out.pop()).collect())
}
