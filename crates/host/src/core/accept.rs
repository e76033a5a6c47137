//! Connections that come in at the door for other hosts.

use super::super::token::CLUSTER;
use super::Core;
use mio::Interest;
use std::io::ErrorKind;

/// The most connections accepted at a time.
const ACCEPTS_MAX: usize = 256;

impl Core {
    pub(super) fn accept_links(&mut self) {
        self.has_failed_accept = false;
        let registry = self.poll.registry();
        for _ in 0..ACCEPTS_MAX {
            match self.cluster.accept() {
                Ok((stream, _)) => self.links.accept(stream, registry),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => {
                    self.has_failed_accept = true;
                    return tracing::warn!(event = "accept_failed", door = "cluster", %error);
                }
            }
        }
        self.rearm_cluster();
    }

    /// Looks again after those who waited at any door and could not be taken, as while no file can
    /// be opened.
    pub(super) fn accept_again(&mut self) {
        self.clients.accept_again(self.poll.registry());
        if self.has_failed_accept {
            self.rearm_cluster();
        }
    }

    /// Somebody waits, and the poller will not say so again.
    fn rearm_cluster(&mut self) {
        let registry = self.poll.registry();
        let listener = &mut self.cluster;
        if let Err(error) = registry.reregister(listener, CLUSTER, Interest::READABLE) {
            tracing::warn!(event = "rearm_failed", door = "cluster", %error);
        }
    }
}
