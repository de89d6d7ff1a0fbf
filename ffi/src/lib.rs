//! The C ABI of branchline.
//!
//! One C type a file; `include/branchline.h` is generated from here, so the documentation of every exported function is
//! written for C programmers. The rules of the boundary live in four places: [`boundary`] (panics, errors, fork),
//! [`handle`] (tokens instead of addresses), [`input`] and [`output`] (what crosses, and how it is checked).
//! `docs/c-abi.md` is the contract in prose.

#![allow(unreachable_pub, reason = "what is exported is exported by its symbol, and documented for the header")]
#![allow(non_camel_case_types, reason = "types carry the names they have in C")]
#![allow(clippy::upper_case_acronyms, reason = "so do enum constants")]
#![allow(clippy::missing_safety_doc, reason = "each function states its contract for C callers: Ownership, Threads")]

mod block_on;
mod boundary;
mod budget;
mod call;
mod callbacks;
mod display;
mod engine;
mod error;
mod event;
mod events;
mod exploration;
mod finished;
mod fork_guard;
mod handle;
mod host_models;
mod input;
mod json;
mod models;
mod options;
mod output;
mod permissions;
mod replay;
mod request;
mod requests;
mod resources;
mod session;
mod session_append;
mod session_context;
mod session_run;
mod session_siblings;
mod session_tree;
mod status;
mod stored;
mod string;
mod subscription;
mod tool;
mod tool_hook;
mod toolbox;
mod version;
