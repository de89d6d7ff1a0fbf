//! The native half of the Node package. It holds no behaviour: it starts calls of the core and hands results over.
//!
//! Hazard: promises made natively keep the process alive for as long as they are pending, a worker thread may be
//! terminated at any instruction, and a garbage collector decides when a handle goes. The usual way, one thread-safe
//! function a promise and a runtime of its own, gets at least one of these wrong. So:
//!
//! - Every asynchronous call has a *ticket*, a number drawn in JavaScript. Its [`outcome`](outcome::Outcome) travels
//!   through the environment's single thread-safe function, which is unref'd. JavaScript refs it while a ticket is
//!   open that should keep the process alive; waiting for events of an idle session is none.
//! - What is a function in JavaScript (a tool, a hook, a handler, a model, a source of keys or logins) is asked by a request in a queue
//!   that JavaScript waits at with a ticket ([`tools`]). Nothing native ever calls it.
//! - Futures of the core wait on channels only, so one thread an environment drives them all ([`executor`]).
//! - Nothing is shared between environments: main thread and workers have a [`bridge`] each, with engines of its own.
//! - When an environment ends, its engines are shut down and its thread is joined before Node takes things apart.
//!
//! Data crosses as JSON text, checked against the engine's string limit before a JavaScript string is made of it.

// Node calls these functions; what they do for people is documented in index.d.ts.
#![allow(missing_docs)]

mod bridge;
mod context;
mod engine;
mod executor;
mod failure;
mod feed;
mod models;
mod options;
mod outcome;
mod policy;
mod replay;
mod resources;
mod session;
mod siblings;
mod stored;
mod tools;
mod tree;
