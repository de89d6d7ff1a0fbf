//! D-cycles: members of a cycle, which the reference shows nowhere, are in our trees once each.

use std::collections::BTreeSet;

use serde_json::Value;

use super::difference::each_tree;
use super::input::Input;

/// Puts what our trees show of cycles into the expected trees, if each member is there once, below the parent it names or
/// as a root. Whether anything was put back.
pub(super) fn put_back(expected: &mut Value, actual: &Value, facts: &Input) -> bool {
    let mut ours = Vec::new();
    each_tree(&mut actual.clone(), &mut |tree| ours.push(tree.clone()));
    let (mut at, mut any) = (0, false);
    each_tree(expected, &mut |tree| {
        let wanted = ours.get(at).and_then(Value::as_array);
        at += 1;
        let (Some(wanted), Some(stated)) = (wanted, tree.as_array_mut()) else { return };
        let is_cyclic = |node: &Value| node["id"].as_str().is_some_and(|id| facts.cyclic.contains(id));
        let mut seen = BTreeSet::new();
        if stated.iter().any(is_cyclic)
            || !wanted.iter().filter(|root| is_cyclic(root)).all(|root| fits(root, facts, &mut seen))
        {
            return;
        }
        // All or, in a session that was made anew, none.
        if seen != facts.cyclic {
            return;
        }
        for (place, root) in wanted.iter().enumerate().filter(|(_, root)| is_cyclic(root)) {
            stated.insert(place.min(stated.len()), root.clone());
        }
        any = true;
    });
    any
}

/// A node and all below it are members or hang on them, each once, each below the parent it names.
fn fits(node: &Value, facts: &Input, seen: &mut BTreeSet<String>) -> bool {
    let id = node["id"].as_str().unwrap_or_default();
    if !facts.cyclic.contains(id) || !seen.insert(id.to_owned()) {
        return false;
    }
    let children = node["children"].as_array().map_or(&[][..], Vec::as_slice);
    children.iter().all(|child| {
        let parent = child["id"].as_str().and_then(|id| facts.parents.get(id)).and_then(Option::as_deref);
        parent == Some(id) && fits(child, facts, seen)
    })
}
