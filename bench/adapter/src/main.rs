//! Our participant in the benchmark: `branchline-bench-adapter <case> '<params JSON>'` prints one JSON line, with the same
//! cases, parameters and `check` facts as `bench/adapters/pi/` (see `bench/README.md` for the contract).
#![allow(clippy::print_stdout)] // the answer goes to stdout

mod agent;
mod cancel;
mod session;
mod stream;
mod tools;

use serde_json::{Value, json};
use std::io::Write;
use std::time::Instant;

/// Any failure ends the process with `ok: false`.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() {
    let mut args = std::env::args().skip(1);
    let case = args.next().unwrap_or_default();
    let params = args.next().unwrap_or_else(|| "{}".to_owned());
    let answer = serde_json::from_str(&params).map_err(Into::into).and_then(|params| {
        let other = || tools::run(&case, &params).or_else(|| agent::run(&case, &params));
        let answer = other().or_else(|| cancel::run(&case, &params)).or_else(|| stream::run(&case, &params));
        answer.unwrap_or_else(|| session::run(&case, &params))
    });
    let ok = answer.is_ok();
    let mut answer = answer.unwrap_or_else(|error| json!({"error": error.to_string()}));
    answer["case"] = json!(case);
    answer["ok"] = json!(ok);
    // One write, not println's flush by line: a reader that went away is no panic.
    let _ = writeln!(std::io::stdout(), "{answer}");
    std::process::exit(i32::from(!ok));
}

/// Time of one call in ms, and its result.
fn timed<T>(call: impl FnOnce() -> Result<T>) -> Result<(f64, T)> {
    let start = Instant::now();
    let value = call()?;
    Ok((start.elapsed().as_secs_f64() * 1e3, value))
}

/// Peak memory of what follows [`Memory::start`], as Linux counts it.
struct Memory {
    base_kb: u64,
}

impl Memory {
    /// Sets the peak back to the present resident size.
    fn start() -> Memory {
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        Memory { base_kb: status("VmRSS") }
    }

    /// The answer's common part.
    fn report(&self, ms: &[f64], check: Value) -> Value {
        json!({"ms": ms, "base_kb": self.base_kb, "hwm_kb": status("VmHWM"), "rss_kb": status("VmRSS"), "check": check})
    }
}

fn status(key: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(key));
    line.and_then(|line| line.split_whitespace().nth(1)).and_then(|kb| kb.parse().ok()).unwrap_or(0)
}
