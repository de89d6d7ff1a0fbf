//! The tools of one session: those it knows, and those the model may call.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;

use crate::error::{Error, ErrorCode, Result};
use crate::json;
use crate::tools::{self, Tool};

pub(crate) struct Toolset {
    registered: Vec<Arc<dyn Tool>>,
    active: Vec<Arc<dyn Tool>>,
    declared: Vec<Declared>,
    version: u64,
    /// The active tools when the turn began, and their version.
    offered: (u64, Vec<Arc<dyn Tool>>),
}

/// An active tool as system messages declare it.
pub(crate) struct Declared {
    pub(crate) value: Value,
    /// `value` as compact JSON, which is how declarations are compared (S301).
    pub(crate) text: String,
}

impl Toolset {
    fn new(registered: Vec<Arc<dyn Tool>>, active: Vec<Arc<dyn Tool>>) -> Toolset {
        let mut tools =
            Toolset { registered, active: Vec::new(), declared: Vec::new(), version: 0, offered: (0, Vec::new()) };
        tools.activate(active);
        tools
    }

    /// The built-in tools of the settings are active (S281), in their order, then every tool of the host. Names of no
    /// tool are passed over.
    pub(crate) fn usual(registered: Vec<Arc<dyn Tool>>, defaults: &[String]) -> Toolset {
        let mut active: Vec<Arc<dyn Tool>> = Vec::new();
        let find = |name: &String| registered.iter().find(|tool| tool.definition().name == *name);
        for tool in defaults.iter().filter_map(find) {
            if !active.iter().any(|known| known.definition().name == tool.definition().name) {
                active.push(tool.clone());
            }
        }
        let builtin = tools::builtin_names();
        let own = |tool: &&Arc<dyn Tool>| {
            let name = tool.definition().name.as_str();
            !builtin.contains(&name) && !defaults.iter().any(|default| default == name)
        };
        active.extend(registered.iter().filter(own).cloned());
        Toolset::new(registered, active)
    }

    /// The host chose the active tools.
    pub(crate) fn chosen(registered: Vec<Arc<dyn Tool>>, names: &[String]) -> Result<Toolset> {
        let mut tools = Toolset::new(registered, Vec::new());
        tools.choose(names)?;
        Ok(tools)
    }

    /// Activates tools by name, all or none.
    pub(crate) fn choose(&mut self, names: &[String]) -> Result<()> {
        let mut active: Vec<Arc<dyn Tool>> = Vec::with_capacity(names.len());
        for name in names {
            let Some(tool) = self.registered.iter().find(|tool| tool.definition().name == *name) else {
                let known: Vec<&str> = self.registered.iter().map(|tool| tool.definition().name.as_str()).collect();
                let text = format!("unknown tool {name:?}; known tools: {}", known.join(", "));
                return Err(Error::new(ErrorCode::UnknownTool, text));
            };
            if !active.iter().any(|known| known.definition().name == *name) {
                active.push(tool.clone());
            }
        }
        self.activate_instead(active);
        Ok(())
    }

    /// Activates what a path declares, and the host's tools that it never heard of (S304).
    pub(crate) fn restore(&mut self, names: &[String], mentioned: &HashSet<String>) {
        let find = |name: &String| self.registered.iter().find(|tool| tool.definition().name == *name).cloned();
        let mut active: Vec<Arc<dyn Tool>> = names.iter().filter_map(find).collect();
        let builtin: Vec<String> = tools::builtin().iter().map(|tool| tool.definition().name.clone()).collect();
        let new = self.registered.iter().filter(|tool| {
            let name = &tool.definition().name;
            !mentioned.contains(name) && !builtin.contains(name)
        });
        active.extend(new.cloned());
        self.activate_instead(active);
    }

    /// Those that were active keep their places, the others follow (S303).
    fn activate_instead(&mut self, mut active: Vec<Arc<dyn Tool>>) {
        active.sort_by_key(|tool| {
            let name = &tool.definition().name;
            self.active.iter().position(|known| known.definition().name == *name).unwrap_or(usize::MAX)
        });
        self.activate(active);
    }

    fn activate(&mut self, active: Vec<Arc<dyn Tool>>) {
        self.declared = active
            .iter()
            .map(|tool| {
                let value = tool.definition().declaration();
                Declared { text: json::to_string(&value), value }
            })
            .collect();
        self.active = active;
        self.version += 1;
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.active.iter().map(|tool| tool.definition().name.clone()).collect()
    }

    pub(crate) fn active(&self) -> &[Arc<dyn Tool>] {
        &self.active
    }

    pub(crate) fn declared(&self) -> &[Declared] {
        &self.declared
    }

    /// Grows with every change.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// A turn begins: its calls are of the tools that are active now, whatever is chosen meanwhile (S303).
    pub(crate) fn offer(&mut self) {
        if self.offered.0 != self.version {
            self.offered = (self.version, self.active.clone());
        }
    }

    /// The tool of this name that the model was offered for this turn.
    pub(crate) fn offered(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.offered.1.iter().find(|tool| tool.definition().name == name)
    }

    /// The active tool of this name.
    pub(crate) fn find(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.active.iter().find(|tool| tool.definition().name == name)
    }
}
