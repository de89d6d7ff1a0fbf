//! Kinds of entries (S17–S28), in one byte for the index.

use crate::message::Role;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EntryKind {
    /// A message with its role (S17).
    Message(Role),
    /// `thinking_level_change` (S18).
    ThinkingLevelChange,
    /// `model_change` (S19).
    ModelChange,
    /// `usage` (S20).
    Usage,
    /// `compaction` (S21).
    Compaction,
    /// `branch_summary` (S22).
    BranchSummary,
    /// `custom` (S23).
    Custom,
    /// `custom_message` (S24).
    CustomMessage,
    /// `context_edit` (S25).
    ContextEdit,
    /// `label` (S26).
    Label,
    /// `session_info` (S27).
    SessionInfo,
    /// Any other type; kept (S28).
    Unknown,
}

const TYPES: [(&str, EntryKind); 10] = [
    ("thinking_level_change", EntryKind::ThinkingLevelChange),
    ("model_change", EntryKind::ModelChange),
    ("usage", EntryKind::Usage),
    ("compaction", EntryKind::Compaction),
    ("branch_summary", EntryKind::BranchSummary),
    ("custom", EntryKind::Custom),
    ("custom_message", EntryKind::CustomMessage),
    ("context_edit", EntryKind::ContextEdit),
    ("label", EntryKind::Label),
    ("session_info", EntryKind::SessionInfo),
];

const ROLES: [Role; 9] = [
    Role::System,
    Role::User,
    Role::Assistant,
    Role::ToolResult,
    Role::BashExecution,
    Role::Custom,
    Role::BranchSummary,
    Role::CompactionSummary,
    Role::Other,
];

/// Codes from here on are messages.
const MESSAGE: u8 = 16;

impl EntryKind {
    /// The kind of an entry whose `type` is `name`; a message's role is set separately.
    pub fn parse(name: &str) -> EntryKind {
        if name == "message" {
            return EntryKind::Message(Role::Other);
        }
        TYPES.iter().find(|(text, _)| *text == name).map_or(EntryKind::Unknown, |(_, kind)| *kind)
    }

    /// The word written as `type`; an unknown type gives `"unknown"` (the entry's JSON has the real word).
    pub fn type_name(self) -> &'static str {
        match self {
            EntryKind::Message(_) => "message",
            EntryKind::Unknown => "unknown",
            _ => TYPES.iter().find(|(_, kind)| *kind == self).map_or("unknown", |(text, _)| text),
        }
    }

    /// Whether an entry of this kind brings a session file into being (S42).
    pub(crate) fn is_conversation(self) -> bool {
        matches!(self, EntryKind::Message(Role::User | Role::Assistant))
    }

    pub(crate) fn code(self) -> u8 {
        match self {
            EntryKind::Message(role) => MESSAGE + ROLES.iter().position(|other| *other == role).unwrap_or(8) as u8,
            _ => TYPES.iter().position(|(_, kind)| *kind == self).unwrap_or(TYPES.len()) as u8,
        }
    }

    pub(crate) fn from_code(code: u8) -> EntryKind {
        if code >= MESSAGE {
            return EntryKind::Message(ROLES.get(usize::from(code - MESSAGE)).copied().unwrap_or(Role::Other));
        }
        TYPES.get(usize::from(code)).map_or(EntryKind::Unknown, |(_, kind)| *kind)
    }
}

/// What the index remembers of the `message` of a `message` entry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct MessagePlace {
    /// Where it begins in the line, if it is the line's last member and begins in the first 64 KiB; else 0. The usual
    /// case, and then nothing of the line need be read to find it.
    pub(crate) at: u16,
    /// It is an object. Without one the entry contributes nothing (S138).
    pub(crate) exists: bool,
    /// Its content is there and not null, so that S127 has nothing to do.
    pub(crate) has_content: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_round_trip() {
        let kinds =
            TYPES.iter().map(|(_, kind)| *kind).chain(ROLES.map(EntryKind::Message)).chain([EntryKind::Unknown]);
        for kind in kinds {
            assert_eq!(EntryKind::from_code(kind.code()), kind);
        }
    }
}
