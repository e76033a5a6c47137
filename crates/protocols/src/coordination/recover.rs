//! How a host starts: from what is stored of the log and of the machine.
//!
//! Sessions, watches and what clients have asked are not stored here: clients come again, and the
//! tree knows their sessions.

use super::gateway::Gateway;
use super::state::{Context, Coordination, GROUP};
use crate::vsr::is_known;
use quorate_kernel::mutant;
use quorate_kernel::process::Recovery;

impl Coordination {
    /// Starts with what is stored: as a founder, as a member or a newcomer of before, or with
    /// nothing.
    pub(super) fn recover(&mut self, recovery: Recovery, cx: &mut Context<'_>) {
        self.gateway = Gateway::new(cx.now);
        let recovery = if mutant!("tree_memory_is_whole") { Recovery::Intact } else { recovery };
        if let Some(members) = self.settings.founders.first().cloned() {
            let founds = members.contains(&cx.me.node);
            if founds || is_known(GROUP, cx.table) {
                self.start_group(founds.then_some(&members[..]), recovery, cx);
            }
            // It was let go in an earlier start.
            self.hosted.take_if(|hosted| hosted.replica.is_empty());
        }
    }
}
