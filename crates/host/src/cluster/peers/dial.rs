//! Whom this host dials, and when.

use super::{Peer, Peers};
use std::time::Instant;

impl Peers {
    /// Whether this host dials a peer now or later, rather than wait to be dialled.
    fn is_dialled(&self, peer: &Peer) -> bool {
        let is_mine = self.me < peer.node || !peer.has_come;
        is_mine && peer.link.is_none() && peer.resolved.is_some()
    }

    /// The peers that must be dialled now.
    pub fn due(&self, now: Instant) -> Vec<usize> {
        let is_due = |peer: &Peer| self.is_dialled(peer) && peer.dial_at <= now;
        self.peers.iter().filter_map(|(index, peer)| is_due(peer).then_some(index)).collect()
    }

    /// When the next peer must be dialled.
    pub fn next_dial(&self) -> Option<Instant> {
        self.iter().filter(|peer| self.is_dialled(peer)).map(|peer| peer.dial_at).min()
    }
}

#[cfg(test)]
mod tests {
    use super::super::PATIENCE;
    use super::super::tests::{hello, ring};
    use super::*;
    use crate::samples::shared as sample;
    use quorate_kernel::ids::NodeId;
    use quorate_kernel::ring::Standing;
    use std::sync::Arc;

    #[test]
    fn a_host_with_a_lower_node_is_dialled_only_if_it_never_came() {
        let known = ring(&[(1, "127.0.0.1:1", Standing::Up)]);
        let mut peers = Peers::new(NodeId(5), known.hosts(), &[], Vec::new(), Arc::new(sample()));
        let now = Instant::now();
        assert!(peers.due(now).is_empty(), "it is given time to dial");
        assert_eq!(peers.due(now + 2 * PATIENCE).len(), 1);
        assert!(peers.greet(&hello(1, 1, 1)).is_ok());
        assert!(peers.due(now + 2 * PATIENCE).is_empty());
    }
}
