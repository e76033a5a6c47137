//! After a loss that left nobody to ask ([`super::amnesia`]): whom a member refill hears, and whose
//! lists count.
//!
//! As many as in any refill must have lost it too, or be complete. Beyond those it hears each that
//! may hold something of before, or give a write its last acknowledgement that counts others from
//! before the loss: nobody is passed over but members that were not there, or say that they began
//! to lack data since. Of those none had been complete, or they would have been heard.

use super::told::{Reach, Source};
use super::transfer::Transfer;
use crate::quorum::CrashVector;
use alloc::vec::Vec;
use quorate_kernel::ids::{Incarnation, NodeId};

/// A loss after which this node goes on.
#[derive(Debug, Default)]
pub(super) struct Loss {
    /// The incarnations that lacked data at that moment.
    lost: Vec<Incarnation>,
    /// Those of them that had not forgotten: newcomers, and who left before they had everything.
    remembering: Vec<Incarnation>,
    /// Who was complete when it was noted, beside hosts that are gone.
    whole: Vec<NodeId>,
}

impl Loss {
    pub fn new(lost: &[Incarnation], sources: &[Source], crashes: &CrashVector) -> Loss {
        let remembers = |who: &&Incarnation| crashes.of(who.node) < who.start;
        let whole = sources.iter().filter(|source| source.is_whole);
        Loss {
            lost: lost.to_vec(),
            remembering: lost.iter().filter(remembers).copied().collect(),
            whole: whole.map(|source| source.node).collect(),
        }
    }

    fn is_none(&self) -> bool {
        self.lost.is_empty()
    }

    /// Whether it concerned this source in the start of which it speaks, if it does.
    fn concerned(&self, source: &Source) -> bool {
        let node = source.node;
        source.lacks.is_none_or(|start| self.lost.contains(&Incarnation { node, start }))
    }

    /// Whether a member may hold something of before, or may have stored something that it counts.
    fn owes(&self, member: &Source) -> bool {
        let was_lost = self.lost.iter().any(|who| who.node == member.node);
        member.lacks.is_none() || was_lost || self.whole.contains(&member.node)
    }

    /// Whether one that has left holds what it stored while it lacked data.
    fn is_remembered_by(&self, source: &Source) -> bool {
        let is_it = |who: &Incarnation| {
            who.node == source.node && source.lacks.is_none_or(|start| start == who.start)
        };
        self.remembering.iter().any(is_it)
    }
}

impl Transfer {
    /// Whether it goes on after a loss with as many as in any refill, not with all.
    fn is_refill_after_loss(&self) -> bool {
        self.is_member_refill && !self.hears_all && !self.loss.is_none()
    }

    /// Whether what a source lists counts in a quorum.
    pub fn counts(&self, source: &Source) -> bool {
        let is_refill = self.is_member_refill && !self.hears_all;
        source.is_whole || is_refill && (self.loss.is_none() || self.loss.concerned(source))
    }

    /// Takes in that one of those that lost everything has forgotten once more: what it holds now
    /// is heard, and counts for nobody. Returns whether it is such a one.
    pub fn note_again(&mut self, from: Incarnation) -> bool {
        let is_earlier = |who: &Incarnation| who.node == from.node && who.start < from.start;
        let is_again = self.is_refill_after_loss() && self.loss.lost.iter().any(is_earlier);
        let Some(source) = self.source(from).filter(|_| is_again) else { return false };
        if source.lacks.replace(from.start) != Some(from.start) {
            (source.is_whole, source.has_gathered) = (false, false);
            self.ask_again();
        }
        true
    }

    /// How far those have listed that must be heard after a loss.
    pub fn heard_of_lost(&self) -> Option<Reach<'_>> {
        let is_member = |node| self.quorums.iter().any(|(nodes, _)| nodes.contains(&node));
        let has_left = |node| self.or_whole.iter().any(|(nodes, _)| nodes.contains(&node));
        let is_owed = |source: &&Source| {
            let node = source.node;
            is_member(node) && self.loss.owes(source)
                || has_left(node) && self.loss.is_remembered_by(source)
        };
        let owed = self.reachable().filter(is_owed);
        let least = owed.map(|source| Reach::of(source.next.as_ref())).min();
        least.filter(|_| self.is_refill_after_loss())
    }
}
