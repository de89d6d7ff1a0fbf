//! Runs conformance corpora against branchline's public interface.
//!
//! Each corpus has a module here that recognises its folders by their content and runs their cases.

pub mod compare;
pub mod deep;
pub mod providers;
pub mod report;
pub mod resource_units;
pub mod session;
pub mod tools;
pub mod traces;

use std::path::{Path, PathBuf};

use report::Report;

/// Runs every case found in `folders`.
///
/// # Errors
/// A folder holds no case of any corpus, or cannot be read.
pub fn run(folders: &[PathBuf]) -> Result<Report, String> {
    let mut report = Report::default();
    for folder in folders {
        let before = report.total();
        run_folder(folder, &mut report)?;
        if report.total() == before {
            return Err(format!("{}: no case found", folder.display()));
        }
    }
    Ok(report)
}

/// One corpus may keep its cases in `cases/`, or the folder itself holds them.
fn run_folder(folder: &Path, report: &mut Report) -> Result<(), String> {
    if !folder.is_dir() {
        return Err(format!("{}: not a folder", folder.display()));
    }
    for candidate in [folder.to_path_buf(), folder.join("cases")] {
        let cases = session::find(&candidate)?;
        for case in &cases {
            session::run(case, report);
        }
        for case in &traces::find(&candidate)? {
            traces::run(case, report);
        }
        for case in &tools::find(&candidate)? {
            tools::run(case, report);
        }
        for case in &providers::find(&candidate)? {
            providers::run(case, report);
        }
        for case in &resource_units::find(&candidate) {
            resource_units::run(case, report);
        }
    }
    Ok(())
}
