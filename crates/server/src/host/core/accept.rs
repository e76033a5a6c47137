//! Connections that come in at the doors on the core thread.

use super::super::token::{CLUSTER, RESP};
use super::Core;
use crate::metrics::RejectReason;
use mio::Interest;
use std::io::ErrorKind;

/// The most connections accepted of one door at a time.
const ACCEPTS_MAX: usize = 256;

impl Core {
    pub(super) fn accept_clients(&mut self) {
        for _ in 0..ACCEPTS_MAX {
            match self.resp.accept() {
                Ok((stream, _)) => {
                    self.clients.accept(stream, self.clock.now, self.poll.registry());
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => {
                    self.shared.reject(RejectReason::Clients);
                    return tracing::warn!(event = "accept_failed", door = "resp", %error);
                }
            }
        }
        // More wait, and the poller will not say so again.
        self.rearm_listeners();
    }

    pub(super) fn accept_links(&mut self) {
        for _ in 0..ACCEPTS_MAX {
            match self.cluster.accept() {
                Ok((stream, _)) => self.links.accept(stream, self.poll.registry()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => {
                    return tracing::warn!(event = "accept_failed", door = "cluster", %error);
                }
            }
        }
        self.rearm_listeners();
    }

    /// Has the poller look at the listeners afresh.
    fn rearm_listeners(&mut self) {
        let registry = self.poll.registry();
        for (listener, token) in [(&mut self.resp, RESP), (&mut self.cluster, CLUSTER)] {
            if let Err(error) = registry.reregister(listener, token, Interest::READABLE) {
                tracing::warn!(event = "rearm_failed", %error);
            }
        }
    }
}
