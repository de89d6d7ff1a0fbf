//! Generated session files, steps on them and folders of them, and what the real pi makes of them: opening and migrating,
//! trees, contexts at any leaf, conversions, plans of summaries, appends, extracted paths, forks, listings. Skipped, with one
//! line, when pi cannot be installed because the package registry is out of reach.
//!
//! `BRANCHLINE_GENERATED=50000 cargo test -p branchline-interop --test sessions` makes more of them, `BRANCHLINE_SEED=1000`
//! others; what is left out, and why, is at the top of `sessions.mjs`.

use branchline_interop::script;

#[test]
fn generated_files_steps_and_folders() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let variable = |name: &str, usual: &str| std::env::var(name).unwrap_or_else(|_| usual.to_owned());
    let (seed, count) = (variable("BRANCHLINE_SEED", "1"), variable("BRANCHLINE_GENERATED", "500"));
    let cases = folder.path().join("cases");
    let arguments = [seed.as_ref(), count.as_ref(), cases.as_os_str()];
    let Some(status) = script("sessions.mjs", &arguments) else { return };
    assert!(status.success(), "sessions.mjs: {status}");
    let report = branchline_conformance::run(&[folder.path().to_path_buf()]).expect("cases");
    assert_eq!(report.total().to_string(), count);
    assert_eq!(report.failed, 0, "{}{}", report.details(), report.last_line());
}
