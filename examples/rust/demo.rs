//! The tour of branchline in Rust: a session with the built-in scripted model, its events, a second branch, a fork.
//!
//! ```sh
//! cargo run --example demo
//! ```
#![allow(clippy::print_stdout)] // it shows what happens

use branchline::tree::{EntryKind, Tree};
use branchline::{
    Engine, EngineOptions, EventKind, ForkPosition, NavigateOptions, Permissions, PromptOptions, SessionOptions,
};

fn main() -> branchline::Result<()> {
    // Any executor drives these futures; this program has none of its own.
    branchline::block_on(run())
}

async fn run() -> branchline::Result<()> {
    let dir = std::env::temp_dir().join(format!("branchline-demo-{}", std::process::id()));
    let engine = Engine::new(EngineOptions::default())?;
    // The demo model only looks around, and its tools run without a question.
    let permissions = Permissions::allow();
    let options = SessionOptions::new(".").session_dir(&dir).model("scripted/demo").permissions(permissions);
    let session = engine.create_session(options).await?;

    let run = session.prompt("What is in this folder?", PromptOptions::default()).await?;
    while let Some(event) = run.next().await {
        match event.kind() {
            EventKind::ToolExecutionStart { name, args, .. } => println!("\n  [{name} {args}]"),
            _ => print!("{}", event.text_delta().unwrap_or_default()),
        }
    }
    let result = run.result().await?;
    println!("\n  stopped: {:?}", result.stop_reason);

    // Back to before the question, and another one: a second branch in the same file.
    let question = first_user_message(&session.tree())?;
    let moved = session.navigate(&question, NavigateOptions::default()).await?;
    println!("\nback at {:?}; it was asked: {:?}", moved.leaf, moved.editor_text);
    let run = session.prompt("And what would you read first?", PromptOptions::default()).await?;
    println!("{}", run.result().await?.text);

    // The first question's path, in a file of its own.
    let fork = session.fork(&question, ForkPosition::At).await?;
    println!("\nfork: {}", fork.session.path().unwrap_or_default().display());
    show(&session.tree(), session.leaf().as_deref());

    engine.shutdown().await;
    let _ = std::fs::remove_dir_all(dir);
    Ok(())
}

fn first_user_message(tree: &Tree) -> branchline::Result<String> {
    for entry in tree.entries() {
        let entry = entry?;
        if entry.kind() == EntryKind::Message(branchline::message::Role::User) {
            return Ok(entry.id().to_owned());
        }
    }
    Err(branchline::Error::new(branchline::ErrorCode::EntryNotFound, "nobody asked anything yet"))
}

/// Prints the tree; only forks of the road are indented.
fn show(tree: &Tree, leaf: Option<&str>) {
    let shape = tree.structure();
    let mut open: Vec<(u32, usize)> = shape.roots().iter().rev().map(|root| (*root, 0)).collect();
    while let Some((node, indent)) = open.pop() {
        let id = shape.id(node);
        let mark = if Some(&*id) == leaf { "  <- leaf" } else { "" };
        println!("{:indent$}{id} {:?}{mark}", "", shape.kind(node));
        let children = shape.children(node);
        let deeper = if children.len() > 1 { indent + 2 } else { indent };
        open.extend(children.iter().rev().map(|child| (*child, deeper)));
    }
}
