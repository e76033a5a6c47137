//! How a connection to another host ends, and what is told of that.

use super::Links;
use crate::cluster::handshake::HelloError;
use crate::cluster::link::Loss;
use crate::metrics::RejectReason;
use std::time::{Duration, Instant};

/// How often connections of strangers that were refused are logged at most.
const STRANGERS_LOGGED_EVERY: Duration = Duration::from_secs(10);
/// How long a host may be without a connection before that is told.
const UNREACHED_AFTER: Duration = Duration::from_secs(10);

impl Links {
    /// A connection cannot go on: what is wrong with it is counted and told.
    pub(super) fn lose(&mut self, key: usize, why: &Loss) {
        let peer = self.links.get(key).and_then(|link| link.peer);
        match why {
            Loss::Closed => {}
            Loss::Garbage => {
                self.shared.reject(RejectReason::Frame);
                let peer = peer.and_then(|index| self.peers.get(index));
                let peer = peer.map(|peer| peer.node.to_string());
                tracing::warn!(
                    event = "peer_garbage",
                    peer,
                    "bytes are no frame; connection closed"
                );
            }
            Loss::Refused(error) => self.complain(key, peer, error),
        }
        self.close(key);
    }

    /// Tells that a connection was refused, each complaint about a peer once.
    fn complain(&mut self, key: usize, peer: Option<usize>, error: &HelloError) {
        self.shared.reject(RejectReason::Handshake);
        // Who was dialled is known; who connected is known by what it has proven to be.
        let claimed = error.node().and_then(|node| self.peers.find(node));
        let accepted = self.proofs.accepted.len();
        let peer = peer.or(claimed).and_then(|index| self.peers.get_mut(index));
        let address = match peer {
            Some(peer) => {
                if *error == HelloError::Refused {
                    peer.refusals = peer.refusals.wrapping_add(1);
                    if peer.refusals % accepted != 0 {
                        // There is another secret, which it may accept.
                        return;
                    }
                }
                if peer.complaint.as_ref() == Some(error) {
                    return;
                }
                peer.complaint = Some(error.clone());
                peer.cells.set_trouble(&error.to_string());
                peer.cells.address()
            }
            None => match self.stranger(key) {
                Some(address) => address,
                None => return,
            },
        };
        if error.is_grave() {
            tracing::error!(event = "peer_refused", %address, reason = %error);
        } else {
            tracing::warn!(event = "peer_refused", %address, reason = %error);
        }
    }

    /// How a stranger is called that was refused, if that is to be logged.
    fn stranger(&mut self, key: usize) -> Option<String> {
        let (logged, hidden) = &mut self.strangers;
        if logged.is_some_and(|at| at.elapsed() < STRANGERS_LOGGED_EVERY) {
            *hidden += 1;
            return None;
        }
        *logged = Some(Instant::now());
        let from = self.links.get(key).and_then(|link| link.stream.peer_addr().ok());
        let from = from.map_or_else(|| String::from("nowhere"), |from| from.to_string());
        Some(match std::mem::take(hidden) {
            0 => format!("a connection from {from}"),
            more => format!("a connection from {from}, and {more} before it"),
        })
    }

    /// Ends a connection. Its peer is dialled again, unless nobody names it any more.
    pub(super) fn close(&mut self, key: usize) {
        let Some(link) = self.links.try_remove(key) else { return };
        let Some(index) = link.peer else { return };
        let Some(peer) = self.peers.get_mut(index) else { return };
        if link.is_up() {
            // What was under way on it is lost, be there another connection or not.
            self.unlinked.push(peer.node);
        }
        if peer.link != Some(key) {
            return;
        }
        peer.link = None;
        peer.dial_at = Instant::now() + peer.dial_after;
        peer.cells.set_up(&self.shared, false);
        if link.is_up() {
            peer.away_since = Some(Instant::now());
            tracing::info!(event = "peer_down", peer = %peer.node);
        } else {
            self.peers.look_again(index);
        }
        self.peers.forget(index);
    }

    /// Tells of hosts to which there has been no connection for long, each once until there is one.
    /// Where that has another reason, the reason was told.
    pub(super) fn tell_unreached(&mut self, now: Instant) {
        let is_long = |since: Instant| now.saturating_duration_since(since) >= UNREACHED_AFTER;
        for peer in self.peers.iter_mut().filter(|peer| peer.is_listed) {
            if !peer.away_since.is_some_and(is_long) {
                continue;
            }
            peer.away_since = None;
            if !peer.cells.trouble().is_empty() {
                continue;
            }
            let (node, address) = (peer.node, peer.cells.address());
            let reason = match peer.resolved {
                Some(_) => {
                    "no connection for ten seconds: it does not run, or the network between \
                            the two is cut, be it one way"
                }
                None => "no connection for ten seconds: its name is not found",
            };
            peer.cells.set_trouble(reason);
            tracing::warn!(event = "peer_unreached", peer = %node, %address, reason);
        }
    }
}
