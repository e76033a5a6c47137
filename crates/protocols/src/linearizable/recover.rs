//! From stored bytes back to state.

use super::keys::{Lost, Stored};
use super::state::{Durable, Status, Volatile};
use super::{Context, Linearizable};
use crate::quorum::CrashVector;
use alloc::sync::Arc;
use quorate_kernel::process::Recovery;
use quorate_kernel::view::View;

impl Linearizable {
    /// Loads the recorded state and answers at once: a crash is a partition (CATS §5). The view is
    /// the one last recorded, however old. Only a lane that forgot refills first, even on a node
    /// that is no member any more: a new member may still count on the data of those it replaced.
    pub(super) fn recover(&mut self, recovery: Recovery, cx: &mut Context<'_>) {
        let stored = View::load(cx.table);
        let is_born = stored.is_none();
        let view = stored.map_or_else(|| Arc::clone(&self.durable.view), Arc::new);
        let crashes = CrashVector::load(cx.table).unwrap_or_default();
        let lost = Lost::load(cx.table).unwrap_or_default().0;
        let status = match (recovery, Status::load(cx.table)) {
            (Recovery::Intact, stored) => stored.unwrap_or(Status::Ready),
            (Recovery::Forgot, Some(Status::Busy { sources, .. })) => {
                Status::Busy { sources, forgot: true }
            }
            (Recovery::Forgot, _) => Status::Forgot,
        };
        self.volatile = Volatile::new(Arc::clone(&view));
        self.volatile.crashes = crashes.clone();
        self.durable = Durable { view, status: status.clone(), crashes, lost };
        if is_born {
            cx.fx.put_state(View::key(), View::to_bytes(&self.durable.view));
        }
        self.set_status(status, cx);
        self.begin_refill(cx);
    }
}
