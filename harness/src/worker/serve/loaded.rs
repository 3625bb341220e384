//! A plugin with a handle, and the question that every case begins with.

use super::refusal::{Refusal, failed, violation};
use crate::worker::loader::{Handle, Plugin, Written};

/// A plugin with a handle.
pub(super) struct Loaded {
    pub(super) plugin: Plugin,
    pub(super) handle: Handle,
    pub(super) engines: Vec<i64>,
}

impl Loaded {
    /// One call, as the host makes it: room for as many ids as the plugin has engines.
    pub(super) fn applicable(&self, graph: &[u8]) -> Result<Vec<i64>, Refusal> {
        const CALL: &str = "GetApplicableEngineIds";
        let max = self.engines.len() as u32;
        let Written {
            ids,
            count,
            overflow,
        } = self
            .plugin
            .applicable(self.handle, graph, max)
            .map_err(failed(CALL))?;
        if overflow {
            let what = format!("ids written behind the buffer of {max}");
            return Err(violation(CALL, what));
        }
        if count > max {
            let what = format!("More applicable engines than expected: {count} of {max}");
            return Err(violation(CALL, what));
        }
        for (i, id) in ids.iter().enumerate() {
            if ids[..i].contains(id) {
                let what = format!("Duplicate engine IDs found: {id}");
                return Err(violation(CALL, what));
            }
            if !self.engines.contains(id) {
                let what = format!("Engine ID not found in the plugin's known IDs: {id}");
                return Err(violation(CALL, what));
            }
        }
        Ok(ids)
    }
}
