//! Views: what this node has installed, and what it has heard of.
//!
//! A node installs decided views one after the other, never back and never over a gap (CATS §4.1):
//! its duty as a source of data belongs to each of them. A hint only tells where to send.

use super::keys::Stored;
use super::state::Status;
use super::{Context, Linearizable};
use alloc::sync::Arc;
use quorate_kernel::probe;
use quorate_kernel::view::View;

impl Linearizable {
    /// A view was decided: install it, or keep it until the ones before it are installed.
    pub(super) fn on_decided(&mut self, view: &Arc<View>, cx: &mut Context<'_>) {
        let installed = self.durable.view.id;
        if view.id.group != installed.group || view.id.version <= installed.version {
            return;
        }
        self.volatile.install_queue.insert(view.id.version, Arc::clone(view));
        let mut next = installed.version + 1;
        while let Some(view) = self.volatile.install_queue.remove(&next) {
            self.install(view, cx);
            next += 1;
        }
        if !self.volatile.install_queue.is_empty() {
            probe!("linearizable/install_queued");
        }
    }

    fn install(&mut self, view: Arc<View>, cx: &mut Context<'_>) {
        let old = core::mem::replace(&mut self.durable.view, Arc::clone(&view));
        assert_eq!(view.id.version, old.id.version + 1, "views are installed one after the other");
        cx.fx.put_state(View::key(), View::to_bytes(&view));
        self.learn(&view);
        let was_member = old.index_of(cx.me.node).is_some();
        if !was_member && self.is_member(cx) {
            probe!("linearizable/new_member");
            let sources = old.members().to_vec();
            self.set_status(Status::Busy { sources, forgot: false }, cx);
            self.begin_refill(cx);
        } else if self.durable.status == Status::Forgot {
            // Its sources are the members of the view that it is in now: others may be gone.
            self.begin_refill(cx);
        }
    }

    /// Remembers the newest view heard of.
    pub(super) fn learn(&mut self, view: &View) {
        let route = &mut self.volatile.route;
        if view.id.group == route.id.group && view.id.version > route.id.version {
            *route = Arc::new(view.clone());
        }
    }
}
