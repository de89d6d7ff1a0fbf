//! What the calls of a session take and give.

use serde::Serialize;
use serde_json::Value;

use super::Session;

/// What a prompt does when a run is active (S202).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WhenRunning {
    /// It is refused with `running`.
    #[default]
    Refuse,
    /// It is delivered before the next request of the run.
    Steer,
    /// It is delivered when the run would end.
    FollowUp,
}

/// Details of a prompt.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PromptOptions {
    /// Image blocks `{type:"image", data, mimeType}` (base64) behind the text.
    pub images: Vec<Value>,
    /// What happens when a run is active.
    pub when_running: WhenRunning,
    /// `/skill:name` and `/name` at the start of the text are replaced by the skill or prompt template they call, if there
    /// is one (P726, P751). Default true.
    pub expand: bool,
    /// A system prompt for this run alone, in the place of the session's; one text, without sections, stored nowhere (S305,
    /// P777). Tools stay. Only for a prompt that begins a run.
    pub forced_prompt: Option<String>,
    /// Events the [`Run`](super::Run) holds before the session waits for its reader. Default 1024.
    pub capacity: usize,
}

impl Default for PromptOptions {
    fn default() -> Self {
        PromptOptions {
            images: Vec::new(),
            when_running: WhenRunning::Refuse,
            expand: true,
            forced_prompt: None,
            capacity: DEFAULT_CAPACITY,
        }
    }
}

impl PromptOptions {
    /// Sets [`images`](Self::images).
    pub fn images(mut self, images: Vec<Value>) -> Self {
        self.images = images;
        self
    }

    /// Sets [`when_running`](Self::when_running).
    pub fn when_running(mut self, when_running: WhenRunning) -> Self {
        self.when_running = when_running;
        self
    }

    /// Sets [`capacity`](Self::capacity).
    pub fn capacity(mut self, capacity: usize) -> Self {
        self.capacity = capacity;
        self
    }
}

/// Events a subscription holds unless told otherwise: some seconds of a fast stream, a few hundred kilobytes.
const DEFAULT_CAPACITY: usize = 1024;

/// Details of a subscription.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct SubscribeOptions {
    /// Events held before the session waits for the reader. At least 1; default 1024.
    pub capacity: usize,
}

impl Default for SubscribeOptions {
    fn default() -> Self {
        SubscribeOptions { capacity: DEFAULT_CAPACITY }
    }
}

impl SubscribeOptions {
    /// Sets [`capacity`](Self::capacity).
    pub fn capacity(mut self, capacity: usize) -> Self {
        self.capacity = capacity;
        self
    }
}

/// Details of [`Session::navigate`].
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct NavigateOptions {
    /// Label for the summary entry, or the target when there is none (S171).
    pub label: Option<String>,
    /// Store a summary of what is left behind (S166).
    pub summarize: bool,
    /// What the summary should pay attention to.
    pub instructions: Option<String>,
    /// `instructions` replace the usual ones instead of adding to them.
    pub replace_instructions: bool,
}

impl NavigateOptions {
    /// Sets [`label`](Self::label).
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Sets [`summarize`](Self::summarize).
    pub fn summarize(mut self, summarize: bool) -> Self {
        self.summarize = summarize;
        self
    }

    /// Sets [`instructions`](Self::instructions).
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Sets [`replace_instructions`](Self::replace_instructions).
    pub fn replace_instructions(mut self, replace: bool) -> Self {
        self.replace_instructions = replace;
        self
    }
}

/// Where [`Session::navigate`] arrived.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct NavigateResult {
    /// The leaf now.
    pub leaf: Option<String>,
    /// The text of the user message that was chosen, to be edited and sent again (S169).
    pub editor_text: Option<String>,
    /// Nothing was changed, because the summary was aborted.
    pub cancelled: bool,
    /// Id of the summary entry.
    pub summary_entry: Option<String>,
}

/// A message of the host that the model sees, as if a user had said it (S24, S37).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CustomMessage {
    /// What kind it is, for the host.
    pub custom_type: String,
    /// A string, or a list of text and image blocks.
    pub content: Value,
    /// Whether people should see it. The model does in any case.
    pub display: bool,
    /// Data of the host that the model does not see.
    pub details: Option<Value>,
}

impl CustomMessage {
    /// A displayed message.
    pub fn new(custom_type: impl Into<String>, content: impl Into<Value>) -> Self {
        CustomMessage { custom_type: custom_type.into(), content: content.into(), display: true, details: None }
    }

    /// Sets [`display`](Self::display).
    pub fn display(mut self, display: bool) -> Self {
        self.display = display;
        self
    }

    /// Sets [`details`](Self::details).
    pub fn details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }
}

/// When a custom message reaches the model (S238).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Delivery {
    /// It is stored: at once on an idle session, after the current turn during a run.
    #[default]
    Store,
    /// During a run it is delivered before the next request; on an idle session it is stored at once.
    Steer,
    /// During a run it is delivered when the run would end; on an idle session it is stored at once.
    FollowUp,
    /// It follows the message of the next prompt. It is lost when none comes.
    NextTurn,
}

/// A user message to fork before (S183).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ForkMessage {
    /// Its entry.
    pub entry_id: String,
    /// Its text.
    pub text: String,
}

/// Which side of an entry a fork takes (S184).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ForkPosition {
    /// Everything before a user message; its text is returned for editing.
    #[default]
    Before,
    /// Everything up to and including any entry.
    At,
}

/// A session made by [`Session::fork`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Fork {
    /// The new session, with a file of its own.
    pub session: Session,
    /// The text of the user message it was forked before.
    pub editor_text: Option<String>,
}
