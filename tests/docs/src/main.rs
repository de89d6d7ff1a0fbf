//! The Rust of README.md and docs/*.md. Each block is compiled as the body of a function; those that need no service are
//! run by `tests/run.rs`, in a directory of their own: `branchline-docs PAGE:LINE`, or without arguments the list.
#![allow(clippy::print_stdout)]

mod context;

use std::error::Error;
use std::future::Future;
use std::pin::Pin;

use branchline::{Engine, Session};

pub(crate) type Outcome = Result<(), Box<dyn Error + Send + Sync>>;
pub(crate) type Snippet = fn(Engine, Session) -> Pin<Box<dyn Future<Output = Outcome>>>;

/// The blocks, with what they take for granted.
#[allow(unused, clippy::all, non_local_definitions, clippy::print_stdout)]
mod snippets {
    use std::collections::HashMap;
    use std::future::ready;
    use std::path::{Path, PathBuf};
    use std::sync::{Arc, Mutex};

    use branchline::permissions::*;
    use branchline::providers::host::HostProvider;
    use branchline::providers::{Model, Payload, PayloadFuture};
    use branchline::replay::ReplayOptions;
    use branchline::resources::settings::Settings;
    use branchline::tools::*;
    use branchline::*;
    use serde_json::json;

    use crate::context::*;
    use crate::{Outcome, Snippet};

    include!(concat!(env!("OUT_DIR"), "/snippets.rs"));
}

fn main() -> Outcome {
    let Some(name) = std::env::args().nth(1) else {
        for (name, _) in snippets::ALL {
            println!("{name}");
        }
        return Ok(());
    };
    let (_, snippet) = snippets::ALL.iter().find(|(known, _)| *known == name).ok_or("no such block")?;
    branchline::block_on(async {
        let (engine, session) = context::made().await?;
        snippet(engine.clone(), session).await?;
        engine.shutdown().await;
        Ok(())
    })
}
