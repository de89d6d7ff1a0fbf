//! HTTP to the services: one client and one pool of connections for each engine.
//!
//! `outgoing` is a request, `client` sends and repeats, `gate` is what sessions know together about a service, `failure` the words for what went
//! wrong, `secrets` keeps keys out of them, `tls` decides whom to trust.

mod client;
mod failure;
mod gate;
mod observer;
mod options;
mod outgoing;
mod secrets;
mod tls;

pub use observer::WireObserver;
pub use options::{NetworkOptions, ProxyChoice};

pub(crate) use client::{Answer, Http, RetryPolicy};
pub(crate) use failure::{Failure, Refusal, cut};
pub(crate) use outgoing::{Memo, Outgoing};
pub(crate) use secrets::Secrets;
