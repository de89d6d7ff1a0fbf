//! Permissions: what calls of tools may do.
//!
//! [`Permissions`] is what a host chooses, a [preset](Preset) and rules of its own; one object holds for all tools of a
//! session or toolbox. `gate` judges a call, asks the [handler](PermissionHandler) where the policy says so, and tells
//! what was [decided](PermissionDecision). `target` finds out what a call is about, with every link followed.
//!
//! Judging names is not enough: a link may be swapped after it was looked at. So what was judged is what is opened. A
//! call that may go below some directories gets [operations](crate::tools::Operations) behind a `fence`, which opens
//! every file from those directories' descriptors (`beneath`), and a link that leads out is an error whenever it comes.
//!
//! Commands are outside of this: one that runs may do what the process may. The question before it is the only guard
//! here, and the operating system's the only strong one.

mod beneath;
mod decision;
mod effect;
mod fence;
mod fence_look;
mod fenced_files;
mod form;
mod gate;
mod grants;
mod handler;
mod policy;
mod replace_at;
mod target;

pub use decision::{DecidedBy, PermissionDecision};
pub use effect::Effect;
pub use handler::{PermissionAnswer, PermissionFuture, PermissionHandler, PermissionRequest, RequestedPath, Scope};
pub use policy::{Action, Permissions, Preset};

pub(crate) use fence::Fence;
pub(crate) use gate::{Asking, Gate, Verdict};
