//! Resources.
pub mod settings;
