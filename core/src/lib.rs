//! branchline: an embeddable coding-agent library.
//!
//! A host creates an [`engine`], opens a [`session`], prompts it, watches its events, moves around its [`tree`] and
//! forks it, all inside its own process. The modules below are the table of contents of the product; `docs/architecture.md`
//! shows who knows whom.

pub mod agent;
mod blank;
mod display;
pub mod engine;
pub mod error;
pub mod host;
pub mod json;
pub mod message;
pub mod permissions;
pub mod providers;
pub mod replay;
pub mod resources;
pub mod session;
mod system;
pub mod tools;
pub mod tree;

pub use agent::{Budget, BudgetExceeded, BudgetLimit, BudgetLimits, BudgetUse};
pub use display::sanitize_for_display;
pub use engine::{Engine, EngineForm, EngineOptions, StoredEntry};
pub use error::{Error, ErrorCode, Result};
pub use permissions::Permissions;
pub use resources::{Discover, ResourceOptions, Resources};
pub use session::{
    AdoptOptions, BranchOptions, BranchPoint, CompactionReason, CompactionResult, CustomMessage, Delivery, Event,
    EventKind, Events, Exploration, ExploreOptions, ExplorePrompt, ExploreResult, Fork, ForkMessage, ForkPosition,
    NavigateOptions, NavigateResult, NewSessionOptions, Phase, PromptOptions, Run, RunResult, Session, SessionOptions,
    SessionState, SubscribeOptions, SwitchOptions, WhenRunning,
};

/// Drives a future of this library to its end on the calling thread.
///
/// Any executor can do that; this one is for hosts that have none. Never call it from inside an executor's task, which
/// would block that executor's thread.
pub fn block_on<F: std::future::Future>(future: F) -> F::Output {
    pollster::block_on(future)
}
