//! The starts in which peers were seen.

use alloc::vec::Vec;
use quorate_kernel::ids::{Incarnation, NodeId, Start};

/// The highest start seen of each peer; a lower one is refused. In the order of node ids.
#[derive(Debug, Default)]
pub(crate) struct Peers(Vec<(NodeId, Start)>);

impl Peers {
    /// Whether nothing of a later start of this peer was seen.
    pub fn admit(&mut self, source: Incarnation) -> bool {
        match self.0.binary_search_by_key(&source.node, |(node, _)| *node) {
            Ok(place) => {
                let highest = &mut self.0[place].1;
                *highest = source.start.max(*highest);
                *highest == source.start
            }
            Err(place) => {
                self.0.insert(place, (source.node, source.start));
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_earlier_start_is_refused_once_a_later_one_was_seen() {
        let mut peers = Peers::default();
        let mut admit =
            |node, start| peers.admit(Incarnation { node: NodeId(node), start: Start(start) });
        assert!(admit(7, 1) && admit(3, 5) && admit(7, 2) && admit(7, 2));
        assert!(!admit(7, 1) && admit(3, 5) && !admit(3, 4));
    }
}
