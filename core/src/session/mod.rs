//! Sessions.
pub mod files;
pub mod serialise;
pub mod stats;
pub mod thinking;
