//! Writes to a range that a node has not taken over yet: they are done when it has.
//!
//! Done at once, a request that was done before would be done again, as its name comes with a
//! snapshot only; and what another client has written in between would be replaced.
//!
//! Where more is written than may wait, the node takes over half of it, which takes half as long,
//! and has half of the writes; and half of that, until it is soon enough. Then it takes over what
//! is beside it. So a join ends however long it takes to send all of a range.

use super::join::{Joining, Standing};
use crate::epidemic::Epidemic;
use crate::epidemic::message::Came;
use crate::epidemic::ordered::batch::{Act, BatchItem};
use crate::epidemic::replica::range::{Range, leaf, position};
use crate::epto::EventKey;
use crate::slices::position::Position;
use alloc::vec::Vec;
use quorate_kernel::{invariant, mutant, probe};

/// The most writes that wait.
const DEFERRED_MAX: usize = 16_384;
/// From how many bytes on no further one does.
const DEFERRED_BYTES: usize = 16 * 1024 * 1024;
/// How often what is taken over is halved: then it is one leaf.
const CUTS_MAX: u32 = u16::BITS;

/// What waits, in the order.
#[derive(Clone, Debug, Default)]
pub(super) struct Deferred {
    writes: Vec<(EventKey, BatchItem)>,
    bytes: usize,
}

impl Deferred {
    /// Takes one; returns whether there was room.
    fn push(&mut self, event: EventKey, asked: BatchItem) -> bool {
        let has_room = self.writes.len() < DEFERRED_MAX && self.bytes < DEFERRED_BYTES;
        if has_room {
            self.bytes += asked.bytes();
            self.writes.push((event, asked));
        }
        has_room
    }
}

impl Joining {
    /// Begins anew with half of the range, and waits no longer for it than if it had not.
    pub(super) fn take_less(&mut self) {
        let (since, heard_ready, hope) = (self.since, self.heard_ready, self.hope);
        let told = core::mem::take(&mut self.told);
        self.restart();
        // What was said of all of it is true of half of it.
        self.told = told;
        self.below.clear();
        if !mutant!("epidemic_takes_all_or_nothing") {
            self.cuts = (self.cuts + 1).min(CUTS_MAX);
            self.since = since;
        }
        if !mutant!("epidemic_hopes_anew_with_less") {
            self.hope = hope;
        }
        // Who is ready is still there: nothing is taken from others instead.
        if !mutant!("epidemic_forgets_who_was_ready") {
            self.heard_ready = heard_ready;
        }
    }
}

impl Epidemic {
    /// What this node takes over next of its range: all that is missing at one side of what it has,
    /// or a part of that beside it.
    pub(super) fn target(&self) -> Option<Range> {
        let (range, ready) = (self.state.range()?, self.state.ready);
        let missing = ready.map_or(Vec::from([range]), |ready| range.without(&ready));
        let Standing::Joining(joining) = &self.state.standing else { return None };
        let mut target = *missing.first()?;
        let is_below = ready.is_some_and(|ready| target.last < ready.first);
        // What is taken over first holds the own position: that stays whatever becomes of slices.
        let own = ready.is_none().then(|| Position::of(self.state.me.node));
        for _ in 0..joining.cuts {
            let is_own = own.is_some_and(|own| target.half(true).has(own));
            let is_upper = is_own && !mutant!("epidemic_takes_the_lower_half_first");
            target = target.half(is_below || is_upper);
        }
        Some(target)
    }

    /// A write to what is not taken over yet has its turn. Without room the snapshots must have it.
    /// So must those of what is taken over later.
    pub(in crate::epidemic) fn defer(&mut self, event: EventKey, asked: BatchItem) {
        invariant!(asked.is_write(), "who is not ready answers no read");
        let is_next = self.target().is_none_or(|target| target.has(position(&asked.key)));
        let Standing::Joining(joining) = &mut self.state.standing else {
            panic!("who has not all of its range joins")
        };
        if !is_next {
            return;
        }
        probe!("epidemic/deferred");
        if !joining.deferred.push(event, asked) {
            probe!("epidemic/deferred_full");
            joining.deferred = Deferred::default();
            joining.floor = Some(event);
            joining.take_less();
        }
        invariant!(joining.deferred.writes.len() <= DEFERRED_MAX, "few writes wait");
    }

    /// A range is taken over: what waits for it is done. What was sent again, and may be forgotten
    /// by now, others may have done when it had its turn: until one was compared with, its leaf is
    /// in doubt.
    pub(super) fn perform_deferred(&mut self, deferred: Deferred, target: &Range) {
        for (event, asked) in deferred.writes {
            if target.has(position(&asked.key)) {
                let value = match asked.act {
                    Act::Put(value) => Some(value),
                    Act::Delete | Act::Get => None,
                };
                let of_leaf = Range::of_leaf(leaf(position(&asked.key)));
                let came = self.write(event, (asked.id, asked.since), asked.key, value);
                if came == Came::Forgotten && !mutant!("epidemic_forgotten_is_done") {
                    probe!("epidemic/deferred_forgotten");
                    self.state.doubt.begin(&of_leaf);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_kernel::ids::NodeId;

    #[test]
    fn who_takes_less_waits_no_longer_and_still_for_who_is_ready() {
        let (since, heard_ready, hope) = (Some(7), Some(9), Some(8));
        let mut joining = Joining { since, heard_ready, hope, ..Joining::default() };
        joining.say(NodeId(3), (None, Vec::new()), 9);
        joining.take_less();
        assert_eq!((joining.since, joining.heard_ready, joining.cuts), (since, heard_ready, 1));
        assert_eq!(
            (joining.hope, joining.told.len()),
            (hope, 1),
            "what it has heard is true still"
        );
    }
}
