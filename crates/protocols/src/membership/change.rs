//! What members agree on: who joins and who leaves, in one order, so that equal sets are equal.

use super::codec::{put_list, take_list};
use super::configuration::Member;
use super::number::Digest;
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::NodeId;
use quorate_kernel::limits::ROLL_CHANGE_MAX;
use quorate_kernel::mutant;

/// The change from one configuration to the next. It has all that is needed to make it: a member
/// that has heard none of the alerts installs it all the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Who joins, ascending by id.
    pub joins: Vec<Arc<Member>>,
    /// Who leaves, ascending.
    pub leaves: Vec<NodeId>,
}

impl Change {
    /// One of these, in the order that all use.
    #[must_use]
    pub fn new(mut joins: Vec<Arc<Member>>, mut leaves: Vec<NodeId>) -> Change {
        if !mutant!("roll_order_not_canonical") {
            joins.sort_by_key(|member| member.id);
            leaves.sort_unstable();
        }
        joins.dedup_by_key(|member| member.id);
        leaves.dedup();
        Change { joins, leaves }
    }

    /// Whether a correct peer can propose it: something changes, in order and within limits.
    #[must_use]
    pub fn is_well_formed(&self) -> bool {
        (1..=ROLL_CHANGE_MAX).contains(&(self.joins.len() + self.leaves.len()))
            && self.joins.windows(2).all(|pair| pair[0].id < pair[1].id)
            && self.leaves.windows(2).all(|pair| pair[0] < pair[1])
            && self.joins.iter().all(|member| member.is_well_formed())
    }

    /// What names it in votes.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(&self.encode())
    }

    /// Its bytes, in messages and in the store.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_list(&mut out, &self.joins);
        put_list(&mut out, &self.leaves);
        out
    }

    /// Takes one off the front; none if the bytes are not one that is well formed.
    pub(super) fn take(bytes: &mut &[u8]) -> Option<Change> {
        let joins = take_list(bytes, ROLL_CHANGE_MAX)?;
        let leaves = take_list(bytes, ROLL_CHANGE_MAX)?;
        let read = Change { joins, leaves };
        read.is_well_formed().then_some(read)
    }

    /// Reads one; none if the bytes are not one that is well formed.
    #[must_use]
    pub fn decode(mut bytes: &[u8]) -> Option<Change> {
        let read = Change::take(&mut bytes)?;
        bytes.is_empty().then_some(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(id: u64) -> Arc<Member> {
        Arc::new(Member { id: NodeId(id), ..Member::default() })
    }

    #[test]
    fn equal_sets_are_equal_in_whatever_order_they_were_found() {
        let one = Change::new([member(5), member(3)].into(), [NodeId(9), NodeId(1)].into());
        let leaves = [NodeId(1), NodeId(9), NodeId(1)];
        let other = Change::new([member(3), member(5)].into(), leaves.into());
        assert_eq!((one.digest(), &one), (other.digest(), &other));
        assert!(one.is_well_formed());
        assert_eq!(Change::decode(&one.encode()), Some(one));
    }

    #[test]
    fn what_a_joiner_brings_is_part_of_what_is_agreed_on() {
        let mut moved = (*member(3)).clone();
        moved.address.push('x');
        let of = |member| Change::new(Vec::from([member]), Vec::new()).digest();
        assert_ne!(of(member(3)), of(Arc::new(moved)));
    }

    #[test]
    fn what_no_correct_peer_proposes_is_not_read() {
        let wrong = [
            Change::default(),
            Change { joins: Vec::from([member(5), member(3)]), leaves: Vec::new() },
            Change { joins: Vec::new(), leaves: Vec::from([NodeId(1), NodeId(1)]) },
            Change {
                joins: Vec::new(),
                leaves: (0..=ROLL_CHANGE_MAX as u64).map(NodeId).collect(),
            },
        ];
        for change in wrong {
            assert!(!change.is_well_formed());
            assert_eq!(Change::decode(&change.encode()), None);
        }
        let right = Change::new(Vec::new(), Vec::from([NodeId(1)])).encode();
        assert_eq!(Change::decode(&[&right[..], &[0]].concat()), None, "a byte behind");
    }
}
