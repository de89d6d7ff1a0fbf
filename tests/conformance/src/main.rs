//! `branchline-conformance DIR…`: runs every case of the given corpus folders; see `README.md`.

use std::path::PathBuf;
use std::process::ExitCode;

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "this is a program")]
fn main() -> ExitCode {
    let folders: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    if folders.is_empty() {
        eprintln!("usage: branchline-conformance DIR…");
        return ExitCode::from(2);
    }
    let report = match branchline_conformance::run(&folders) {
        Ok(report) => report,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::from(2);
        }
    };
    print!("{}", report.details());
    println!("{}", report.last_line());
    ExitCode::from(u8::from(report.failed > 0))
}
