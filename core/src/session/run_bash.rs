//! Commands that a person types into a host (T280–T288, R86–R89): run at once, also during a run, and recorded for the
//! model to see.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use tokio_util::sync::CancellationToken;

use super::Session;
use super::event::EventKind;
use super::shared::{Shared, closed};
use crate::error::{Error, ErrorCode, Result};
use crate::message::BashExecution;
use crate::tools::bash::BashOptions;
use crate::tools::bash_user::{self, UserCommand};

/// Output that waits for subscribers to have room. With more the command itself waits for them.
const MOST_HELD: usize = 256 * 1024;

/// Details of [`Session::run_bash`].
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RunBashOptions {
    /// The host's name for the command, in its events.
    pub id: Option<String>,
    /// The model never sees it.
    pub exclude_from_context: bool,
    /// Shell, prefix and environment. Without them the settings `shellPath` and `shellCommandPrefix` hold.
    pub bash: BashOptions,
}

impl RunBashOptions {
    /// Sets [`id`](Self::id).
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Sets [`exclude_from_context`](Self::exclude_from_context).
    pub fn exclude_from_context(mut self, exclude: bool) -> Self {
        self.exclude_from_context = exclude;
        self
    }

    /// Sets [`bash`](Self::bash).
    pub fn bash(mut self, bash: BashOptions) -> Self {
        self.bash = bash;
        self
    }
}

impl Session {
    /// Runs a command of the user in the session's working directory and stores what came of it (S239–S241). Several may
    /// run at once, also while the model works; what is run then is stored after that.
    ///
    /// Its output is told as `bash_execution_update` events; a subscriber that does not read slows the command down in
    /// the end. Permissions are not asked: a person typed it. [`abort`](Session::abort) does not end it,
    /// [`abort_bash`](Session::abort_bash) does, as does dropping the future, which stores nothing.
    ///
    /// Errors: `invalid_argument` when it cannot be started, `read_only`, `closed`.
    pub async fn run_bash(&self, command: &str, options: RunBashOptions) -> Result<UserCommand> {
        let shared = self.shared().clone();
        if shared.choices_made().read_only {
            return Err(Error::new(ErrorCode::ReadOnly, "the session was opened read-only; open it for writing"));
        }
        let cancel = shared.bash_token();
        let _ended_with_this = cancel.clone().drop_guard();
        let RunBashOptions { id, exclude_from_context, bash } = options;
        let mut bash = super::tool_settings::shell(bash, &shared.choices_made().settings);
        bash.environment.program_dir = bash.environment.program_dir.or_else(|| self.engine().program_dir.clone());
        let text = command.to_owned();
        let (operations, cwd) = (self.engine().options.operations.clone(), shared.cwd.clone());
        let (send, done) = tokio::sync::oneshot::channel();
        self.engine().handle.spawn(async move {
            let mut output = Output { shared, id: id.map(Into::into), held: String::new(), cancel: cancel.clone() };
            let (pieces, taken) = std::sync::mpsc::sync_channel::<String>(1);
            // The reader of the output hands it on here, and waits when it is not taken.
            let telling = tokio::task::spawn_blocking(move || {
                while let Ok(piece) = taken.recv() {
                    output.tell(&piece);
                }
                output.tell_rest();
            });
            let sink = move |piece: &str| drop(pieces.send(piece.to_owned()));
            let ended = bash_user::execute(&operations, &text, &cwd, &bash, &cancel, sink).await;
            let _ = telling.await;
            let _ = send.send(ended);
        });
        let ended: io::Result<UserCommand> = done.await.map_err(|_| closed())?;
        let ended = ended.map_err(|error| Error::new(ErrorCode::InvalidArgument, format!("cannot run it: {error}")))?;
        let execution = BashExecution {
            command: command.to_owned(),
            output: ended.output.clone(),
            exit_code: ended.exit_code,
            cancelled: ended.cancelled,
            truncated: ended.truncated,
            full_output_path: ended.full_output_path.as_ref().map(|path| path.display().to_string()),
            timestamp: 0,
            exclude_from_context: exclude_from_context.then_some(true),
        };
        self.record_bash(execution).await?;
        Ok(ended)
    }

    /// Ends all commands of [`run_bash`](Session::run_bash) with everything they started; each then gives what it
    /// printed so far, `cancelled`.
    pub fn abort_bash(&self) {
        self.shared().abort_bash();
    }
}

/// Output on its way to the subscribers.
struct Output {
    shared: Arc<Shared>,
    id: Option<Arc<str>>,
    held: String,
    cancel: CancellationToken,
}

impl Output {
    fn tell(&mut self, piece: &str) {
        self.held.push_str(piece);
        let room = |cx: &mut Context<'_>| self.shared.hub.poll_room(cx);
        if std::pin::pin!(std::future::poll_fn(room)).poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            if self.held.len() < MOST_HELD {
                return;
            }
            let (room, cancelled) = (pin!(std::future::poll_fn(room)), pin!(self.cancel.cancelled()));
            pollster::block_on(futures::future::select(room, cancelled));
        }
        self.tell_rest();
    }

    fn tell_rest(&mut self) {
        if !self.held.is_empty() {
            let delta = std::mem::take(&mut self.held).into();
            self.shared.hub.push(EventKind::BashExecutionUpdate { id: self.id.clone(), delta });
            self.shared.hub.wake();
        }
    }
}
