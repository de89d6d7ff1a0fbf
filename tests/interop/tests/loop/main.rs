//! The whole agent loop beside the real pi's: generated scenarios over scripted replies, played by both, must give the same
//! events, requests, session files and states. Skipped, with one line, when pi cannot be installed.
//!
//! `SEEDS=FROM..TO cargo test -p branchline-interop --test loop` plays other seeds than the committed ones; `SEEDS_KEEP=FOLDER` writes
//! scenarios that differ and both results there.

mod acts;
mod compare;
mod generate;
mod replies;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use branchline_conformance::traces;
use branchline_interop::Peer;
use branchline_interop::generated::ask;
use serde_json::{Value, json};

/// What both make of a scenario: nothing, or the first difference.
fn play(peer: &mut Peer, seed: u64) -> Option<String> {
    let scenario = &generate::scenario(seed);
    let folder = tempfile::tempdir().expect("a temporary folder");
    // Names of one length, so that estimates of tokens agree.
    let [ours, theirs] = ["ours", "pi's"].map(|name| {
        let dir = folder.path().join(name);
        for (file, text) in scenario.files {
            let path = dir.join(file);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        }
        dir
    });
    let request = json!({"do": "play", "scenario": scenario.json, "dir": theirs});
    let theirs = settled(ask(peer, request), scenario, &theirs);
    let ours = settled(traces::play(&scenario.json, &ours).map_err(|error| json!(error)), scenario, &ours);
    // Texts of their own differ in length, and so do estimates of what holds them.
    let words = theirs.to_string().matches("{{").count() as f64;
    let about = if scenario.json["builtins"] == json!([]) { words.min(10.0) * 40.0 } else { 1_500.0 };
    let parts = ["error", "outcomes", "events", "requests", "files", "context", "state"];
    let found = parts.iter().find_map(|part| compare::difference(part, &ours[*part], &theirs[*part], about));
    if let (Some(_), Some(folder)) = (&found, std::env::var_os("SEEDS_KEEP")) {
        for (name, value) in [("scenario", &scenario.json), ("ours", &ours), ("pi", &theirs)] {
            let text = serde_json::to_string_pretty(value).expect("JSON");
            let path = Path::new(&folder).join(format!("{seed}-{name}.json"));
            std::fs::write(path, text).expect("a folder to keep results in");
        }
    }
    found
}

fn settled(results: Result<Value, impl std::fmt::Debug>, scenario: &generate::Scenario, dir: &Path) -> Value {
    match results {
        Ok(mut results) => {
            for outcome in results["outcomes"].as_array_mut().into_iter().flatten() {
                // Refusals have words of their own.
                if outcome.get("error").is_some() {
                    outcome["error"] = "refused".into();
                }
            }
            compare::settled(results, &scenario.json, &dir.display().to_string())
        }
        Err(error) => json!({"error": format!("{error:?}")}),
    }
}

fn seeds() -> std::ops::Range<u64> {
    let given = std::env::var("SEEDS").ok();
    let given = given.as_deref().and_then(|text| text.split_once(".."));
    given.map_or(0..100, |(from, to)| from.parse().expect("a number")..to.parse().expect("a number"))
}

/// Scenarios mostly wait: several are played at a time.
const PEERS: usize = 4;

#[test]
fn generated_scenarios_come_out_the_same() {
    let seeds = seeds();
    let next = AtomicU64::new(seeds.start);
    let play_on = || {
        let mut differences = Vec::new();
        let Some(mut peer) = Peer::start_script("loop.mjs") else { return differences };
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return differences;
            }
            differences.extend(play(&mut peer, seed).map(|found| (seed, found)));
        }
    };
    let mut differences: Vec<(u64, String)> = std::thread::scope(|scope| {
        let players: Vec<_> = (0..PEERS).map(|_| scope.spawn(play_on)).collect();
        players.into_iter().flat_map(|player| player.join().expect("a player that does not panic")).collect()
    });
    differences.sort();
    let told: Vec<String> = differences.iter().map(|(seed, found)| format!("seed {seed}: {found}")).collect();
    assert!(told.is_empty(), "{} differ\n{}", told.len(), told.join("\n"));
}
