//! `appender FILE none|entry`: opens a session and appends until it is killed. Prints each id once it is acknowledged.
#![allow(clippy::print_stdout)] // the ids go to stdout

use std::io::Write;

use branchline::message::Message;
use branchline::tree::{Cursor, Durability, OpenOptions, Tree};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("a file")?;
    let durability = match args.next().as_deref() {
        Some("entry") => Durability::Entry,
        _ => Durability::None,
    };
    let mut cursor = Cursor::new(Tree::open(path, OpenOptions { durability, ..Default::default() })?);
    let mut out = std::io::stdout();
    for n in 0.. {
        // Long and short lines, so that a kill can hit the middle of a write.
        let text = "text ".repeat(if n % 7 == 0 { 8_000 } else { n % 50 });
        let id = cursor.append_message(&Message::user(&text, vec![], n as i64))?;
        writeln!(out, "{id}")?;
        out.flush()?;
    }
    Ok(())
}
