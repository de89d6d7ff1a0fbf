//! Everything a reader can see of a session, in a form that both implementations can give.

use branchline::json;
use branchline::tree::Tree;

/// A session at one leaf. Every part is canonical JSON text, so that equal means equal to the last byte but for the
/// freedom JavaScript has in writing the same value.
#[derive(Debug, PartialEq, Eq)]
pub struct State {
    /// First line of the file.
    pub header: String,
    /// Id of the leaf, or null.
    pub leaf: String,
    /// Session name, or null.
    pub name: String,
    /// Distinct entry ids.
    pub count: usize,
    /// Model and thinking level in force.
    pub settings: String,
    /// All entries in file order.
    pub entries: Vec<String>,
    /// Ids from the root to the leaf.
    pub branch: Vec<String>,
    /// The whole tree in preorder: `[depth, id, label, label time]`.
    pub tree: Vec<String>,
    /// The entries that take part in the context: `[id, number of messages]`.
    pub sources: Vec<String>,
    /// The messages the model sees.
    pub messages: Vec<String>,
}

impl State {
    /// What our tree shows at `leaf`.
    ///
    /// # Panics
    /// When the file cannot be read.
    pub fn of(tree: &Tree, leaf: Option<&str>) -> State {
        let context = tree.context(leaf).expect("a context");
        let structure = tree.structure();
        let row = |(node, depth)| {
            let label = structure.label(node);
            let text = label.as_ref().map(|label| &*label.text);
            let time = label.as_ref().map(|label| &*label.timestamp);
            format!("[{depth},{},{},{}]", quote(Some(&structure.id(node))), quote(text), quote(time))
        };
        let model = context.model().map_or_else(
            || "null".to_owned(),
            |(provider, id)| format!(r#"{{"provider":{},"modelId":{}}}"#, quote(Some(provider)), quote(Some(id))),
        );
        State {
            header: canonical(&tree.header_json()),
            leaf: quote(leaf),
            name: quote(tree.name().as_deref()),
            count: tree.entry_count(),
            settings: settings(&model, &quote(Some(context.thinking_level()))),
            entries: tree.entries().map(|entry| canonical_bytes(entry.expect("an entry").json())).collect(),
            branch: tree.branch(leaf).ids().map(|id| quote(Some(&id))).collect(),
            tree: structure.walk().map(row).collect(),
            sources: context
                .entries()
                .iter()
                .map(|e| format!("[{},{}]", quote(Some(e.id())), e.messages().len()))
                .collect(),
            messages: context.messages().map(|message| canonical_bytes(&message.raw())).collect(),
        }
    }

    /// Compares ours with pi's part by part.
    ///
    /// # Panics
    /// At the first difference, which it names.
    pub fn assert_is(&self, pi: &State, when: &str) {
        let same = |part: &str, ours: &str, theirs: &str| {
            assert!(ours == theirs, "{when}: {part} differs\nours: {ours}\npi:   {theirs}");
        };
        let same_list = |part: &str, ours: &[String], theirs: &[String]| {
            for (i, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
                same(&format!("{part} {i}"), ours, theirs);
            }
            same(&format!("number of {part}"), &ours.len().to_string(), &theirs.len().to_string());
        };
        same("header", &self.header, &pi.header);
        same_list("entries", &self.entries, &pi.entries);
        same("count", &self.count.to_string(), &pi.count.to_string());
        same("leaf", &self.leaf, &pi.leaf);
        same("name", &self.name, &pi.name);
        same_list("branch", &self.branch, &pi.branch);
        same_list("tree", &self.tree, &pi.tree);
        same("settings", &self.settings, &pi.settings);
        same_list("sources", &self.sources, &pi.sources);
        same_list("messages", &self.messages, &pi.messages);
    }
}

/// A JSON string, or null.
pub(crate) fn quote(text: Option<&str>) -> String {
    text.map_or_else(|| "null".to_owned(), |text| canonical(&serde_json::Value::from(text).to_string()))
}

pub(crate) fn settings(model: &str, thinking_level: &str) -> String {
    canonical(&format!("[{model},{thinking_level}]"))
}

/// A member of a JSON object that has it.
pub(crate) fn member<'a>(object: &'a str, name: &str) -> &'a str {
    let value = json::get(object.as_bytes(), name).unwrap_or_else(|| panic!("no {name} in {object:.200}"));
    std::str::from_utf8(value).expect("UTF-8")
}

/// The elements of a JSON array, canonical.
pub(crate) fn elements(array: &str) -> Vec<String> {
    json::elements(array.as_bytes()).into_iter().map(canonical_bytes).collect()
}

pub(crate) fn canonical(text: &str) -> String {
    canonical_bytes(text.as_bytes())
}

fn canonical_bytes(text: &[u8]) -> String {
    String::from_utf8(json::canonical(text)).expect("canonical JSON is UTF-8")
}
