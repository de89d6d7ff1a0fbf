//! Providers: services that answer requests with a stream of events, one wire format a file.
//!
//! [`scripted`] answers from a script and needs no network: the default of demos and the backbone of tests.

mod models;
mod provider;
pub mod scripted;

pub use models::Model;
pub use provider::{BlockEvent, Provider, Purpose, Request, ResponseStream, StreamEvent};

pub(crate) use models::Models;
