//! Writes `include/branchline.h` from `ffi/src`, or with `--check` fails when the committed one is not what would be
//! written. cbindgen is pinned, so the result is the same everywhere.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The order of the header, which is the order in which a reader needs things.
const SOURCES: &[&str] = &[
    "version",
    "status",
    "error",
    "string",
    "display",
    "block_on",
    "engine",
    "budget",
    "session",
    "options",
    "callbacks",
    "subscription",
    "session_run",
    "events",
    "event",
    "session_tree",
    "session_siblings",
    "exploration",
    "session_context",
    "session_append",
    "tool",
    "request",
    "requests",
    "toolbox",
    "permissions",
    "tool_hook",
    "models",
    "host_models",
    "stored",
    "replay",
    "resources",
    "call",
    "boundary",
];

fn main() -> ExitCode {
    match run(std::env::args().any(|argument| argument == "--check")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stderr, reason = "a command for developers")]
fn report(text: &str) {
    eprintln!("branchline-header: {text}");
}

fn run(check: bool) -> Result<(), Box<dyn Error>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root: PathBuf = here.join("../..");
    let header = generate(here, &root)?;
    let path = root.join("include/branchline.h");
    if !check {
        return Ok(std::fs::write(&path, header)?);
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    if let Some(n) = first_difference(&committed, &header) {
        return Err(format!("include/branchline.h differs from ffi/src at line {n}; run it without --check").into());
    }
    Ok(())
}

/// The number of the first line that differs.
fn first_difference(a: &str, b: &str) -> Option<usize> {
    if a == b {
        return None;
    }
    let same = a.lines().zip(b.lines()).take_while(|(a, b)| a == b).count();
    Some(same + 1)
}

fn generate(here: &Path, root: &Path) -> Result<String, Box<dyn Error>> {
    let mut config = cbindgen::Config::from_file(here.join("cbindgen.toml"))?;
    config.header = Some(std::fs::read_to_string(here.join("top.txt"))?.trim_end().to_owned());
    config.after_includes = Some(version_macros());
    config.trailer = Some(std::fs::read_to_string(here.join("init.txt"))?.trim_end().to_owned());
    let mut builder = cbindgen::Builder::new().with_config(config);
    for source in SOURCES {
        let path = root.join("ffi/src").join(source).with_extension("rs");
        builder = builder.with_src(path);
    }
    let mut out = Vec::new();
    builder.generate()?.write(&mut out);
    Ok(String::from_utf8(out)?)
}

/// The version the header belongs to, for the preprocessor.
fn version_macros() -> String {
    let number = |text: &str| text.parse::<u32>().unwrap_or_default();
    let (major, minor, patch) = (
        number(env!("CARGO_PKG_VERSION_MAJOR")),
        number(env!("CARGO_PKG_VERSION_MINOR")),
        number(env!("CARGO_PKG_VERSION_PATCH")),
    );
    format!(
        "\n/** The version this header belongs to; compare with branchline_version(). */\n\
         #define BRANCHLINE_VERSION \"{}\"\n\
         #define BRANCHLINE_VERSION_MAJOR {major}\n\
         #define BRANCHLINE_VERSION_MINOR {minor}\n\
         #define BRANCHLINE_VERSION_PATCH {patch}\n\
         /** The same as one number; compare with branchline_version_number(). */\n\
         #define BRANCHLINE_VERSION_NUMBER {}",
        env!("CARGO_PKG_VERSION"),
        major * 1_000_000 + minor * 1_000 + patch,
    )
}
