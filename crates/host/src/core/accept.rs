//! Connections that come in at the door for other hosts, and who could not come in at any.

use super::Core;

/// The most connections accepted at a time.
const ACCEPTS_MAX: usize = 256;

impl Core {
    pub(super) fn accept_links(&mut self) {
        let registry = self.poll.registry();
        for _ in 0..ACCEPTS_MAX {
            let Ok(Some(stream)) = self.cluster.next() else { return };
            self.links.accept(stream, registry);
        }
        self.cluster.rearm(registry);
    }

    /// Looks again after those who waited at any door and could not be taken, as while no file can
    /// be opened.
    pub(super) fn accept_again(&mut self) {
        let registry = self.poll.registry();
        self.clients.accept_again(registry);
        self.cluster.rearm_failed(registry);
    }
}
