//! Several attempts at once over one session file, and going on with the best of them.
//!
//! ```sh
//! cargo run --example explore
//! ```
#![allow(clippy::print_stdout)] // it shows what happens

use branchline::{AdoptOptions, Engine, EngineOptions, EventKind, ExploreOptions, PromptOptions, SessionOptions};

fn main() -> branchline::Result<()> {
    // Any executor drives these futures; this program has none of its own.
    branchline::block_on(run())
}

async fn run() -> branchline::Result<()> {
    let dir = std::env::temp_dir().join(format!("branchline-explore-{}", std::process::id()));
    let engine = Engine::new(EngineOptions::default())?;
    let options =
        SessionOptions::new(".").session_dir(&dir).model("scripted/demo").permissions(branchline::Permissions::allow());
    let session = engine.create_session(options).await?;
    session.prompt("What is in this folder?", PromptOptions::default()).await?.result().await?;

    // Three siblings begin at the leaf, two at a time. What they send begins with the same bytes, so a provider's cache
    // serves them all.
    let prompts = ["Use recursion.", "Use iteration.", "Use a table."];
    let exploration = session.explore(prompts, ExploreOptions::default().limit(2)).await?;
    while let Some(event) = exploration.next().await {
        match event.kind() {
            EventKind::AgentStart => println!("sibling {} begins", event.sibling()),
            EventKind::ToolExecutionStart { name, .. } => println!("sibling {} calls {name}", event.sibling()),
            EventKind::AgentSettled { .. } => println!("sibling {} is done", event.sibling()),
            _ => {}
        }
    }
    let results = exploration.results().await?;
    for (prompt, result) in prompts.iter().zip(&results) {
        let first = result.text.lines().next().unwrap_or_default();
        println!("{prompt:16} {:?}, {} tokens: {first}", result.stop_reason, result.usage.total_tokens);
    }

    // The session goes on with the first one, knowing what the others found.
    let adopted = session.adopt(&results[0].session, AdoptOptions::default().summarize_others(true)).await?;
    println!("at {:?}, with the summary {:?}", adopted.leaf, adopted.summary_entry);
    let answer = session.prompt("And now?", PromptOptions::default()).await?.result().await?;
    println!("{}", answer.text);

    engine.shutdown().await;
    let _ = std::fs::remove_dir_all(dir);
    Ok(())
}
