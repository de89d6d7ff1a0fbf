//! Sessions: one cursor over one tree, with its model, tools, queues and agent loop.
//!
//! A [`Session`] is a handle to an actor: a task of the engine's runtime that owns all state and works through a queue
//! of commands. Handles are cheap, `Send` and `Sync`, and every call is legal from any thread and from inside any
//! callback: what a call waits for is a channel, so any executor, or [`block_on`](crate::block_on), can drive it.
//! Everything a run does is told by [`Event`]s; what is persisted is what `message_end` says.

mod actor;
mod adopt;
mod asked;
mod branch_summary;
mod command;
mod compact;
pub mod compaction;
mod custom;
pub mod estimate;
mod event;
mod event_json;
mod events;
mod explore;
mod explore_options;
mod family;
pub mod files;
mod fork;
mod forms;
mod handle;
mod hub;
mod knowledge;
mod navigate;
mod open;
mod options;
mod pending;
mod queue;
mod replace;
mod run;
mod run_bash;
pub mod serialise;
#[expect(clippy::module_inception, reason = "the handle, named as the design names it")]
mod session;
mod shared;
mod sibling;
mod state;
pub mod stats;
pub mod summary;
mod summary_request;
mod tool_settings;

pub use adopt::AdoptOptions;
pub use asked::{
    CustomMessage, Delivery, Fork, ForkMessage, ForkPosition, NavigateOptions, NavigateResult, PromptOptions,
    SubscribeOptions, WhenRunning,
};
pub use event::{CompactionReason, CompactionResult, Event, EventKind, RetryWait};
pub use events::Events;
pub use explore::Exploration;
pub use explore_options::{ExploreOptions, ExplorePrompt, ExploreResult};
pub use forms::BranchForm;
pub use options::SessionOptions;
pub use replace::{NewSessionOptions, SwitchOptions};
pub use run::{Run, RunResult};
pub use run_bash::RunBashOptions;
pub use session::Session;
pub use sibling::{BranchOptions, BranchPoint};
pub use state::{Phase, SessionState};

pub(crate) use actor::Actor;
pub(crate) use command::{Accepted, Input};
pub(crate) use open::{Source, start};
pub(crate) use pending::Pending;
pub(crate) use replace::import_session;
pub(crate) use shared::{Shared, Step};
