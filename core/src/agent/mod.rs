//! The agent.
pub mod call_id;
pub mod classify;
pub mod transform;
