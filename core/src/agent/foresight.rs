//! Room for what is about to be said: the check on the last response knows nothing of a long new prompt (bug 26).

use crate::error::Result;
use crate::message::Message;
use crate::session::estimate::message_tokens;
use crate::session::{Actor, CompactionReason};

impl Actor {
    /// Compacts before a prompt if the context alone would fit into the window, and would not with these messages. Once:
    /// what was compacted for this prompt already is not compacted again.
    pub(super) async fn make_room_for_new(&mut self, new: &[Message]) -> Result<()> {
        let Some(model) = self.model.clone().filter(|model| model.context_window > 0) else { return Ok(()) };
        if !self.settings().compaction(Some(model.name_parts()))?.enabled {
            return Ok(());
        }
        let context = self.projection.gauge().projected();
        let coming: u64 = new.iter().map(message_tokens).sum();
        if context <= model.context_window && context.saturating_add(coming) > model.context_window {
            self.compact_by_itself(CompactionReason::Threshold, false).await?;
        }
        Ok(())
    }
}
