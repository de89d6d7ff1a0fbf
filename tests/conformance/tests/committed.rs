//! The committed cases all pass.

use std::path::Path;

#[test]
fn committed_cases_pass() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let report = branchline_conformance::run(&[folder]).expect("the folder holds cases");
    assert!(report.total() > 100, "{}", report.last_line());
    assert_eq!(report.failed, 0, "{}{}", report.details(), report.last_line());
}

#[test]
fn committed_tool_cases_pass() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools");
    let report = branchline_conformance::run(&[folder]).expect("the folder holds cases");
    assert!(report.total() > 200, "{}", report.last_line());
    assert_eq!(report.failed, 0, "{}{}", report.details(), report.last_line());
}

#[test]
fn committed_traces_pass() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces");
    let report = branchline_conformance::run(&[folder]).expect("the folder holds cases");
    assert!(report.total() > 80, "{}", report.last_line());
    assert_eq!(report.failed, 0, "{}{}", report.details(), report.last_line());
}

#[test]
fn committed_provider_cases_pass() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("providers");
    let report = branchline_conformance::run(&[folder]).expect("the folder holds cases");
    assert!(report.total() > 45, "{}", report.last_line());
    assert_eq!(report.failed, 0, "{}{}", report.details(), report.last_line());
}

#[test]
fn every_difference_has_a_reason() {
    let text = include_str!("../../../docs/differences.md");
    for section in text.split("\n## ").skip(1) {
        let id = section.split([':', ' ', '\n']).next().unwrap_or_default();
        assert!(
            branchline_conformance::report::reason(id).is_some(),
            "{id} has no paragraph that begins with **Why.**"
        );
    }
}
