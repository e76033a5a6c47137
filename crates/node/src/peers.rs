//! The starts in which peers were seen, and when each was last heard.

use alloc::vec::Vec;
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::time::Time;

/// What is known of another node by the frames it sends.
#[derive(Debug)]
struct Peer {
    node: NodeId,
    /// The highest start seen.
    start: Start,
    /// The time of the turn in which the newest frame arrived.
    heard_at: Time,
}

/// The highest start seen of each peer; a lower one is refused. In the order of node ids.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    peers: Vec<Peer>,
    /// When it was last asked who was heard.
    taken_at: Time,
}

impl Peers {
    /// Takes in that a frame arrived; returns whether nothing of a later start of its source was
    /// seen.
    pub fn admit(&mut self, source: Incarnation, now: Time) -> bool {
        let Incarnation { node, start } = source;
        match self.peers.binary_search_by_key(&node, |peer| peer.node) {
            Ok(place) => {
                let peer = &mut self.peers[place];
                if peer.start > start {
                    return false;
                }
                (peer.start, peer.heard_at) = (start, now);
            }
            Err(place) => self.peers.insert(place, Peer { node, start, heard_at: now }),
        }
        true
    }

    /// Who was heard since this was last asked, and when. Who was heard at that very time may be
    /// told twice.
    pub fn take_heard(&mut self, now: Time) -> Vec<(Incarnation, Time)> {
        let since = core::mem::replace(&mut self.taken_at, now);
        let heard = self.peers.iter().filter(|peer| peer.heard_at >= since);
        let told =
            |peer: &Peer| (Incarnation { node: peer.node, start: peer.start }, peer.heard_at);
        heard.map(told).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(node: u64, start: u32) -> Incarnation {
        Incarnation { node: NodeId(node), start: Start(start) }
    }

    #[test]
    fn an_earlier_start_is_refused_once_a_later_one_was_seen() {
        let mut peers = Peers::default();
        let mut admit = |node, start| peers.admit(who(node, start), Time(0));
        assert!(admit(7, 1) && admit(3, 5) && admit(7, 2) && admit(7, 2));
        assert!(!admit(7, 1) && admit(3, 5) && !admit(3, 4));
    }

    #[test]
    fn who_was_heard_is_told_once_and_in_its_newest_start() {
        let mut peers = Peers::default();
        assert!(peers.admit(who(7, 1), Time(1)) && peers.admit(who(3, 1), Time(2)));
        assert!(peers.admit(who(7, 2), Time(3)) && !peers.admit(who(7, 1), Time(4)));
        assert_eq!(peers.take_heard(Time(5)), [(who(3, 1), Time(2)), (who(7, 2), Time(3))]);
        assert!(peers.admit(who(3, 1), Time(6)) && !peers.admit(who(7, 1), Time(6)));
        assert_eq!(peers.take_heard(Time(7)), [(who(3, 1), Time(6))], "an old start is no sign");
        assert_eq!(peers.take_heard(Time(8)), []);
    }
}
