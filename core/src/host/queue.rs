//! The queue in which questions to the host wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::bell::Bell;
use super::request::{Answer, NoAnswer, Question, Request};
use crate::error::Result;
use crate::providers::host::HostResponse;

/// What happens in a queue of requests.
#[derive(Debug)]
pub enum Notice {
    /// A question. Answer it, or drop it, which is a failure of what it is about.
    Asked(Request),
    /// The answer to the question with this [id](Request::id) is not wanted any more; it may have been answered
    /// meanwhile.
    Cancelled(u64),
}

/// Makes a queue: the end that asks and the end that is asked.
pub fn requests() -> (Asker, Requests) {
    // Unbounded, but not without a bound: there is one question for each thing under way, which waits for its answer.
    let (sender, receiver) = async_channel::unbounded();
    let bell = Arc::<Bell>::default();
    let asking = Asking { sender, ids: AtomicU64::default(), bell: bell.clone() };
    (Asker { asking: Arc::new(asking) }, Requests { receiver, bell })
}

/// The end of a queue that asks. Cheap to clone. When all are gone the queue [ends](Requests::next).
#[derive(Debug, Clone)]
pub struct Asker {
    asking: Arc<Asking>,
}

/// What all clones of an [`Asker`] share.
#[derive(Debug)]
struct Asking {
    sender: async_channel::Sender<Notice>,
    ids: AtomicU64,
    bell: Arc<Bell>,
}

impl Asking {
    /// False when nobody takes notices any more.
    fn send(&self, notice: Notice) -> bool {
        let sent = self.sender.try_send(notice).is_ok();
        self.bell.update(|| self.sender.is_empty() && !self.sender.is_closed()); // it may have been taken meanwhile
        sent
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.sender.close();
        self.bell.ring();
    }
}

impl Asker {
    /// Asks and waits for the answer of the kind that `pick` takes, until the future is dropped. `who` is asked, for errors:
    /// "the program that has the keys".
    pub(super) async fn ask_for<T>(
        self,
        question: Question,
        who: &'static str,
        pick: fn(Answer) -> Option<T>,
    ) -> std::result::Result<T, String> {
        match self.ask(question, CancellationToken::new()).await {
            Ok(answer) => pick(answer).ok_or_else(|| format!("{who} gave no answer")),
            Err(NoAnswer::Failed(message)) => Err(message),
            Err(NoAnswer::Dropped | NoAnswer::Cancelled) => Err(format!("{who} gave no answer")),
            Err(NoAnswer::Closed) => Err(format!("{who} takes no more questions")),
        }
    }

    /// Asks, and waits for the answer or until `cancel` fires. Dropping the future is the same as cancelling.
    pub(crate) async fn ask(
        &self,
        question: Question,
        cancel: CancellationToken,
    ) -> std::result::Result<Answer, NoAnswer> {
        let id = self.asking.ids.fetch_add(1, Ordering::Relaxed) + 1;
        let (reply, mut answer) = oneshot::channel();
        let response = question.response.clone();
        let mut waiting =
            Waiting { asking: &self.asking, id, cancelled: CancellationToken::new(), response, over: false };
        let request = Request::new(id, question, waiting.cancelled.clone(), reply);
        if !self.asking.send(Notice::Asked(request)) {
            waiting.over = true;
            return Err(NoAnswer::Closed);
        }
        let ended = tokio::select! {
            biased;
            ended = &mut answer => ended,
            () = cancel.cancelled() => return Err(NoAnswer::Cancelled),
        };
        waiting.over = true;
        match ended {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(message)) => Err(NoAnswer::Failed(message)),
            Err(_) if self.asking.sender.is_closed() => Err(NoAnswer::Closed),
            Err(_) => Err(NoAnswer::Dropped),
        }
    }
}

/// A question under way. When it goes before the answer came, the host hears of it.
struct Waiting<'a> {
    asking: &'a Asking,
    id: u64,
    cancelled: CancellationToken,
    /// Of a model: it is read to its end before the host has said that it is done.
    response: Option<HostResponse>,
    over: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.over && !self.response.as_ref().is_some_and(HostResponse::is_over) {
            self.cancelled.cancel();
            self.asking.send(Notice::Cancelled(self.id));
        }
    }
}

/// The end of a queue that is asked: the host's.
#[derive(Debug)]
pub struct Requests {
    receiver: async_channel::Receiver<Notice>,
    bell: Arc<Bell>,
}

impl Requests {
    /// The next notice, in the order in which things happened. `None` when there will be none: nobody can ask any more,
    /// or the queue was closed.
    pub async fn next(&self) -> Option<Notice> {
        self.taken(self.receiver.recv().await.ok())
    }

    /// The next notice if there is one now.
    pub fn try_next(&self) -> Option<Notice> {
        self.taken(self.receiver.try_recv().ok())
    }

    fn taken(&self, notice: Option<Notice>) -> Option<Notice> {
        self.bell.update(|| self.receiver.is_empty() && !self.receiver.is_closed());
        notice
    }

    /// A file descriptor to poll in an event loop: readable while notices are queued, and when there will be none. It is
    /// created on the first call and lives as long as this queue or who asks: do not read from it or close it.
    ///
    /// Errors: `storage_failed` when the process has no descriptor left.
    #[cfg(unix)]
    pub fn fd(&self) -> Result<std::os::fd::RawFd> {
        let fd = self.bell.fd()?;
        self.taken(None);
        Ok(fd)
    }

    /// Takes no more questions: those to come fail. What is in the queue can still be taken.
    pub fn close(&self) {
        self.receiver.close();
        self.bell.ring();
    }
}

impl Drop for Requests {
    /// Nobody will take what is in the queue, so it fails.
    fn drop(&mut self) {
        self.close();
        while self.try_next().is_some() {}
    }
}
