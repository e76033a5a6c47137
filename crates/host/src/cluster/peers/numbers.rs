//! The numbers of hosts: names for people, never identities.
//!
//! Those of the hosts that the directory names stand in it. A host that joined later was given one
//! by the host that invited it, and says so when it connects. Two that joined at one moment may
//! have been given the same: then neither is called by it.

use super::Peers;
use quorate_kernel::ids::NodeId;

impl Peers {
    /// A host says which number it was given. One that the directory names has that number.
    pub(super) fn claim(&mut self, index: usize, number: u32) {
        let peer = &mut self.peers[index];
        if peer.is_numbered || peer.claim == number {
            return;
        }
        peer.claim = number;
        self.renumber();
    }

    /// Calls each host by the number that it claims, if no other has it.
    pub(super) fn renumber(&mut self) {
        let of = |number: u32| self.iter().filter(|peer| peer.claim == number).count();
        let mut shown = Vec::new();
        for (index, peer) in &self.peers {
            let is_own = peer.claim != self.shared.host && of(peer.claim) == 1;
            shown.push((index, if peer.is_numbered || is_own { peer.claim } else { 0 }));
        }
        let mut has_changed = false;
        for (index, number) in shown {
            has_changed |= self.peers[index].cells.set_host(number) != number;
        }
        if has_changed {
            self.are_numbers_taken = false;
            self.publish();
        }
    }

    /// The numbers of all hosts that have one, this one included, if they have changed since this
    /// was last asked.
    pub fn take_numbers(&mut self) -> Option<Vec<(NodeId, u32)>> {
        if std::mem::replace(&mut self.are_numbers_taken, true) {
            return None;
        }
        let others = self.iter().map(|peer| (peer.node, peer.cells.host()));
        let all = others.chain([(self.me, self.shared.host)]);
        Some(all.filter(|(_, number)| *number != 0).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{hello, peers, ring};
    use super::*;
    use quorate_kernel::ring::Standing;

    /// Of this host, number 1, and another that the directory calls number 2.
    #[test]
    fn who_joined_is_called_by_its_number_unless_another_has_it() {
        let mut peers = peers();
        let mut joins = |node: u64, number: u32| {
            let mut hello = hello(node, 1, 1);
            hello.number = number;
            peers.greet(&hello).expect("it may be joining");
            let numbers = peers.take_numbers().unwrap_or_default();
            numbers.iter().map(|(node, number)| (node.0, *number)).collect::<Vec<_>>()
        };
        assert_eq!(joins(7, 3), [(2, 2), (7, 3), (1, 1)]);
        assert_eq!(joins(7, 3), [], "nothing has changed");
        assert_eq!(joins(8, 2), [], "the directory gives that to another");
        assert_eq!(joins(9, 1), [], "this host has that");
        assert_eq!(joins(2, 5), [], "the directory calls it by another");
        assert_eq!(joins(10, 3), [(2, 2), (1, 1)], "two were given one number");
        assert_eq!(joins(10, 4), [(2, 2), (7, 3), (10, 4), (1, 1)]);
    }

    #[test]
    fn a_number_goes_with_its_host() {
        let mut peers = peers();
        let of = |node| {
            let mut hello = hello(node, 1, 1);
            hello.number = 3;
            hello
        };
        let first = peers.greet(&of(7)).expect("it may be joining");
        peers.greet(&of(8)).expect("it may be joining");
        peers.set_ring(&ring(&[(8, "127.0.0.1:8", Standing::Up)]));
        peers.forget(first);
        let numbers = peers.take_numbers().expect("they have changed");
        assert!(numbers.contains(&(NodeId(8), 3)), "{numbers:?}");
    }
}
