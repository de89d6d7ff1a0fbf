//! Where tools do something else than the reference on purpose, recognised by a case's input, and what is promised instead.

use std::path::Path;

use branchline::tools::units::normalize_for_fuzzy_match as folded;
use branchline::tools::units::normalize_to_lf as with_line_feeds;
use serde_json::Value;

use super::call::Ended;
use super::{Case, setup};

const BYTES: &str = "D-edit-bytes";
const SPAN: &str = "D-edit-span";

/// The difference that explains a case's mismatches, if what we promise instead holds.
pub(super) fn explained(
    case: &Case,
    before: &[(String, Vec<u8>)],
    ended: &[Ended],
    tmp: &Path,
) -> Option<&'static str> {
    if case.text("tool") != "edit" {
        return None;
    }
    // The call's own words are the reference's.
    let expected = &case.value["expect"];
    let [ended] = ended else { return None };
    if ended.result["isError"] != expected["isError"] || ended.result["content"] != expected["content"] {
        return None;
    }
    let broken = before.iter().any(|(_, bytes)| std::str::from_utf8(bytes).is_err());
    let same_in = |change: fn(&str) -> String| same_but_for(change, expected, ended, before, tmp);
    if broken && same_in(str::to_owned) {
        return Some(BYTES);
    }
    (needs_folding(case, before, tmp) && same_in(folded)).then_some(SPAN)
}

/// Files and details are equal after both went through `change`, and what is no UTF-8 is still there.
fn same_but_for(
    change: fn(&str) -> String,
    expected: &Value,
    ended: &Ended,
    before: &[(String, Vec<u8>)],
    tmp: &Path,
) -> bool {
    for file in expected["filesAfter"].as_array().into_iter().flatten() {
        let name = file["path"].as_str().unwrap_or_default();
        let (Ok(bytes), Some(wanted)) = (std::fs::read(tmp.join(name)), file["content"].as_str()) else { return false };
        let old = before.iter().find(|(path, _)| path == name).map(|(_, bytes)| bytes.as_slice()).unwrap_or_default();
        if change(&String::from_utf8_lossy(&bytes)) != change(wanted) || invalid(&bytes) != invalid(old) {
            return false;
        }
    }
    let text = |value: &Value| value.as_str().map(change);
    let (wanted, got) = (&expected["details"], &ended.result["details"]);
    text(&wanted["diff"]) == text(&got["diff"])
        && text(&wanted["patch"]) == text(&got["patch"])
        && wanted["firstChangedLine"] == got["firstChangedLine"]
}

/// The bytes of a text that are no UTF-8.
fn invalid(bytes: &[u8]) -> Vec<u8> {
    bytes.utf8_chunks().flat_map(|chunk| chunk.invalid().to_vec()).collect()
}

/// Whether some text to replace is not in the file as it is written.
fn needs_folding(case: &Case, before: &[(String, Vec<u8>)], tmp: &Path) -> bool {
    let arguments = setup::arguments(&case.value["args"], tmp);
    let edits = arguments["edits"].as_array().cloned().unwrap_or_default();
    before.iter().any(|(_, bytes)| {
        let file = with_line_feeds(&String::from_utf8_lossy(bytes));
        let given = |edit: &Value| edit["oldText"].as_str().map(with_line_feeds);
        edits.iter().filter_map(given).any(|old| !file.contains(&old))
    })
}
