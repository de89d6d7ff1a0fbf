//! Generated conversations and answers of services: branchline sends, tells and stores what the real pi does. Skipped, with one
//! line, when pi cannot be installed because the package registry is out of reach.
//!
//! `BRANCHLINE_GENERATED=5000 cargo test -p branchline-interop --test protocols` makes more of them; what is left out, and
//! why, is at the top of `protocols.mjs`.

use branchline_interop::script;

#[test]
fn generated_conversations_and_answers() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let count = std::env::var("BRANCHLINE_GENERATED").unwrap_or_else(|_| "400".to_owned());
    let cases = folder.path().join("cases");
    let arguments = ["1".as_ref(), count.as_ref(), cases.as_os_str()];
    let Some(status) = script("protocols.mjs", &arguments) else { return };
    assert!(status.success(), "protocols.mjs: {status}");
    let report = branchline_conformance::run(&[folder.path().to_path_buf()]).expect("cases");
    assert_eq!(report.total().to_string(), count);
    assert_eq!(report.failed, 0, "{}{}", report.details(), report.last_line());
}
