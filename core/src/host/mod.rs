//! Questions to the host: run this tool of yours, may this happen, which key is it.
//!
//! Hazard: a library that calls a host's function and waits for it holds up its own threads, and deadlocks with a host
//! whose lock (an interpreter's, a window's event loop) the waiting thread needs. So nothing here calls anybody. A
//! question is a [`Request`] in a queue, [`Requests`]; the host takes it when it likes and answers from any thread. What
//! the question is about waits in a future, is cancellable, and ends at once when the answer is not wanted any more.
//!
//! * `request`: the question and its answer; `queue`: where questions wait; `bell`: tells an event loop of it.
//! * `tool`: tools that a host written in another language provides.
//! * `permission`: permission questions that such a host decides.
//! * `hook`: hooks around tool calls that it provides.
//! * `model`: models that it serves.
//! * `key`: keys that it hands out; `login`: logins that it makes anew; `payload`: its say in what is sent to services.
//! * `definition`, `result`: their JSON forms, which are the same in all languages.

mod bell;
mod definition;
mod hook;
mod key;
mod login;
mod model;
mod payload;
mod permission;
mod queue;
mod request;
mod result;
mod tool;

pub use hook::HostHook;
pub use key::HostKeys;
pub use login::HostLogins;
pub use model::{HostModels, provider_from_value};
pub use payload::HostPayloads;
pub use permission::HostPermissions;
pub use queue::{Asker, Notice, Requests, requests};
pub use request::{Request, RequestKind};
pub use tool::HostTool;
