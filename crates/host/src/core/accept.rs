//! Connections that come in at the door for other hosts.

use super::super::token::CLUSTER;
use super::Core;
use mio::Interest;
use std::io::ErrorKind;

/// The most connections accepted at a time.
const ACCEPTS_MAX: usize = 256;

impl Core {
    pub(super) fn accept_links(&mut self) {
        let registry = self.poll.registry();
        for _ in 0..ACCEPTS_MAX {
            match self.cluster.accept() {
                Ok((stream, _)) => self.links.accept(stream, registry),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => {
                    return tracing::warn!(event = "accept_failed", door = "cluster", %error);
                }
            }
        }
        // More wait, and the poller will not say so again.
        let listener = &mut self.cluster;
        if let Err(error) = registry.reregister(listener, CLUSTER, Interest::READABLE) {
            tracing::warn!(event = "rearm_failed", door = "cluster", %error);
        }
    }
}
