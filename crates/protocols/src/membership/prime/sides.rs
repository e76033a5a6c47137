//! Sides of a division: two rolls of one cluster, each without the other's members, and which of
//! them gives way when they meet.
//!
//! A member tells one host, drawn from all that are known, which views it went through, every few
//! rounds. If neither of two went through the other's newest view, each asks the members of its own
//! view whether that is theirs, as in any doubt: who has a hole finds out. If both are sure, who is
//! in the smaller view gives way; of two that are as large, the one with the lower name. It goes on
//! from the state of the other, or comes again, if it is no member there.

use super::super::number::RollId;
use super::message::{Message, Whole};
use super::node::{Action, LOG_MAX, Prime};
use super::repair::Doubt;
use alloc::vec::Vec;
use quorate_kernel::ids::NodeId;
use quorate_kernel::{invariant, mutant, probe};

/// After how many rounds a host is told again.
const MEET_ROUNDS: u64 = 8;
/// After how many rounds of doubt one that has found no majority follows one that has.
const LOST_ROUNDS: u64 = 64;

/// What a node knows of other sides.
#[derive(Clone, Debug, Default)]
pub(super) struct Sides {
    /// The view that a majority of its members went through, as they said last.
    pub sure: Option<RollId>,
    /// Whose state was asked for to go on from it, and the view that it was in.
    follows: Option<(NodeId, RollId)>,
}

impl Sides {
    /// Whether this is the state to go on from.
    pub fn is_of(&self, from: NodeId, whole: &Whole) -> bool {
        let is_it = |view: RollId| whole.ledger.chain().any(|one| one == view);
        self.follows.is_some_and(|(node, view)| node == from && is_it(view))
    }
}

impl Prime {
    /// Tells one host which views it went through.
    pub(super) fn meet(&mut self, targets: &[NodeId], out: &mut Vec<Action>) {
        let is_due = self.round % MEET_ROUNDS == self.me.node.0 % MEET_ROUNDS;
        if let Some(target) = targets.first().filter(|_| is_due && !mutant!("prime_never_meets")) {
            self.tell_views(*target, out);
        }
    }

    fn tell_views(&self, to: NodeId, out: &mut Vec<Action>) {
        let Some(ledger) = &self.ledger else { return };
        let configuration = ledger.configuration();
        let message = Message::Meet {
            chain: ledger.chain().collect(),
            members: configuration.members.len() as u64,
            is_sure: self.sides.sure == Some(configuration.id),
        };
        out.push(Action::Send { to: Vec::from([to]), message });
    }

    pub(super) fn on_meet(
        &mut self,
        from: NodeId,
        chain: &[RollId],
        (members, is_sure): (u64, bool),
        out: &mut Vec<Action>,
    ) {
        invariant!(from != self.me.node, "nobody meets itself");
        invariant!(self.log.len() <= LOG_MAX, "the log is bounded");
        let Some(ledger) = self.ledger.as_ref().filter(|_| self.epto.has_place()) else { return };
        let Some(other) = chain.last().copied() else { return };
        let configuration = ledger.configuration();
        let own = configuration.id;
        if ledger.chain().any(|view| view == other) {
            if other != own && !configuration.contains(from) {
                // It may have been removed, and hear it from nobody else.
                self.tell_views(from, out);
            }
            return;
        }
        if chain.contains(&own) {
            return self.hear_of(other);
        }
        let is_lost = self.doubt.lasts(self.round) >= LOST_ROUNDS;
        if self.sides.sure != Some(own) && !is_lost {
            self.doubt.begin(self.round);
            return;
        }
        if (members, other) < (configuration.members.len() as u64, own) && !is_lost {
            self.tell_views(from, out);
        } else if is_sure {
            self.sides.follows = Some((from, other));
            out.push(Action::Send { to: Vec::from([from]), message: Message::Fetch });
        }
    }

    /// Gives up its place and its view for another's, which it may not come to by itself.
    pub(super) fn start_over(&mut self, whole: &Whole, out: &mut Vec<Action>) {
        probe!("prime/starts_over");
        (self.doubt, self.sides) = (Doubt::default(), super::sides::Sides::default());
        let other = whole.ledger.configuration();
        if other.has_left(self.me.node) {
            return self.end(out);
        }
        let mut told = Vec::new();
        self.epto.leave_place(&mut told);
        self.act(told, out);
        self.set_ledger(whole.ledger.clone());
    }
}
