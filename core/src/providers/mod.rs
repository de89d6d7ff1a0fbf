//! Providers: services that answer requests with a stream of events.
//!
//! A wire format is a directory and knows one trait, `protocol`; what they share is around it: `sse` reads events, `wire`
//! their JSON, `assemble` makes stream events and the message, `drive` leads a request from the key to the end, `http`
//! does the network, `limits` and `cost` the numbers. [`scripted`] answers from a script and needs no network: the
//! default of demos and the backbone of tests.

mod anthropic;
mod arguments;
mod assemble;
mod auth;
mod auth_file;
mod auth_write;
mod billing;
pub mod call_id;
pub mod catalogue;
mod catalogue_merge;
mod choose;
mod compat;
mod config_value;
mod cost;
pub mod credentials;
mod custom;
mod direct;
mod drive;
mod fallbacks;
mod forms;
mod google;
mod grammar;
mod held_lock;
pub mod host;
mod http;
mod initial;
mod keys;
mod lenient_config;
pub mod limits;
mod lock_dir;
mod logins;
mod model;
mod models;
mod models_file;
mod models_shape;
mod openai_chat;
mod openai_responses;
mod openai_shared;
mod openai_tools;
mod partial_json;
mod payload;
mod protocol;
mod provider;
mod reading;
mod record;
mod remote;
pub mod repair;
mod request_options;
mod scope;
pub mod scripted;
mod services;
pub mod sse;
mod strict;
mod tool_changes;
mod transcript;
mod wire;

pub use arguments::{Arguments, parse_arguments, repair_strings};
pub use auth::{Auth, AuthFuture, Credentials};
pub use auth_write::StoredKey;
pub use catalogue::CatalogueOptions;
pub use choose::ModelChoice;
pub use compat::Compat;
pub use cost::{Prices, Rates};
pub use http::{NetworkOptions, ProxyChoice, WireObserver};
pub use keys::{Key, KeyFuture, KeyOptions, KeyRequest, KeySource};
pub use logins::{Login, LoginFuture, LoginSource};
pub use model::Model;
pub use models_file::ModelProblem;
pub use partial_json::PartialJson;
pub use payload::{Payload, PayloadFuture, PayloadHook};
pub use provider::{BlockEvent, Provider, Purpose, Request, ResponseStream, StreamEvent};
pub use reading::{read_recorded, read_recorded_pieces};
pub use record::WireRecorder;
pub use request_options::{CacheRetention, RequestOptions, ToolChoice};
pub use scope::ModelScope;
pub use strict::strict_schema;

pub(crate) use catalogue::Catalogue;
pub(crate) use choose::{choose, find, meant, unknown};
pub(crate) use credentials::{Keyring, variables};
pub(crate) use custom::custom;
pub(crate) use direct::stream_on;
pub(crate) use drive::Services;
pub(crate) use held_lock::{HeldLock, locking};
pub(crate) use http::Http;
pub(crate) use initial::first as first_model;
pub(crate) use models::Models;
pub(crate) use protocol::is_local;
pub(crate) use record::observers;
pub(crate) use remote::{Remote, RemoteProvider};
pub(crate) use scope::scope;
