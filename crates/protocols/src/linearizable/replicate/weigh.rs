//! Where in its groups a node has how much to do, for the load balancer.
//!
//! Every key is looked at, a few at a time, so that keys that stand close together (in a keyspace
//! in key order they do) are weighed rightly; groups of hashed keys that are large are sampled
//! instead, as their keys stand evenly. Operations are counted, and a sample of their tokens is
//! kept. What was weighed while groups moved is thrown away: a token is moved only by what was
//! weighed since the last one was.

use super::load::estimate;
use crate::linearizable::group::Group;
use crate::linearizable::keys::{segments, token_of};
use crate::linearizable::{Context, Linearizable};
use crate::order::Order;
use crate::placement;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::{GroupId, NodeId};
use quorate_kernel::limits::{LIST_KEYS_MAX, PIECES_MAX};
use quorate_kernel::ring::{Piece, Ring};
use quorate_kernel::storage::Class;
use quorate_kernel::time::Time;
use quorate_kernel::view::Range;

/// How many marks are kept of a group's keys, and of operations.
const MARKS_MAX: usize = 256;
/// Into how many parts a group is cut by its keys, and again by its operations.
const PARTS_MAX: usize = 4;

/// A sample of tokens with weights that add up to all that was noted.
#[derive(Debug)]
pub(crate) struct Marks {
    list: Vec<(u64, u64)>,
    stride: u64,
    noted: u64,
    pending: u64,
}

impl Default for Marks {
    fn default() -> Marks {
        Marks { list: Vec::new(), stride: 1, noted: 0, pending: 0 }
    }
}

impl Marks {
    /// Notes something at a token.
    pub fn note(&mut self, token: u64, weight: u64) {
        self.noted += 1;
        self.pending += weight;
        if self.noted.is_multiple_of(self.stride) {
            self.list.push((token, core::mem::take(&mut self.pending)));
        }
        if self.list.len() >= MARKS_MAX {
            // Half of them stand for all from here on.
            let pairs = self.list.chunks(2).map(|pair| {
                let weight = pair.iter().map(|(_, weight)| weight).sum();
                (pair[pair.len() - 1].0, weight)
            });
            self.list = pairs.collect();
            self.stride *= 2;
        }
    }

    fn total(&self) -> u64 {
        self.list.iter().map(|(_, weight)| weight).sum()
    }

    /// The weight of what was noted in a range.
    fn within(&self, range: &Range) -> u64 {
        let inside = self.list.iter().filter(|(token, _)| range.contains(*token));
        inside.map(|(_, weight)| weight).sum()
    }

    /// Tokens that cut what was noted in a range into so many parts of about one weight.
    fn cuts(&self, range: &Range, parts: usize) -> Vec<u64> {
        let reach = |token: u64| token.wrapping_sub(range.low).wrapping_sub(1);
        let inside = self.list.iter().filter(|(token, _)| range.contains(*token));
        let mut marks: Vec<(u64, u64)> = inside.map(|(at, weight)| (reach(*at), *weight)).collect();
        marks.sort_unstable();
        let total: u64 = marks.iter().map(|(_, weight)| weight).sum();
        let (mut sum, mut cuts) = (0, Vec::new());
        for (reach, weight) in marks {
            let part = |sum: u64| u128::from(sum) * parts as u128 / u128::from(total.max(1));
            if part(sum) != part(sum + weight) {
                cuts.push(range.low.wrapping_add(1).wrapping_add(reach));
            }
            sum += weight;
        }
        cuts
    }
}

/// A walk over the keys of all groups.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    /// The groups that are not finished; the last one is being walked.
    left: Vec<GroupId>,
    /// The last key seen in that one.
    after: Option<Bytes>,
    seen: (u64, u64),
    marks: Marks,
    done: BTreeMap<GroupId, Marks>,
}

/// What is weighed at present.
#[derive(Debug, Default)]
pub(crate) struct Weighing {
    /// On which ring; none while groups move.
    pub shape: Option<u64>,
    /// Since when.
    pub since: Time,
    /// Where operations were served.
    pub operations: Marks,
    walk: Walk,
}

impl Linearizable {
    /// The shape of the ring, if no group of this node moves or is about to.
    fn quiescent_shape(&self) -> Option<u64> {
        let ring = self.volatile.ring.as_ref()?;
        let is_moving = |group: &Group| {
            let is_lacking = group.is_member() && !group.is_serving();
            let is_awaiting = group.is_member() && !group.record.owed.is_empty();
            is_lacking || is_awaiting || group.transfer.is_some() || group.wished.is_some()
        };
        (!self.durable.groups.values().any(is_moving)).then(|| ring.shape())
    }

    /// Weighs some more. Returns whether all was weighed on one ring, at rest.
    pub(crate) fn weigh(&mut self, cx: &mut Context<'_>) -> bool {
        let shape = self.quiescent_shape();
        if shape.is_none() || self.volatile.weighing.shape != shape {
            self.weigh_anew(shape, cx.now);
            return false;
        }
        let mut walk = core::mem::take(&mut self.volatile.weighing.walk);
        let (mut budget, order) = (LIST_KEYS_MAX, self.settings.order);
        while let Some(id) = walk.left.last().filter(|_| budget > 0) {
            let group = self.durable.groups.get_mut(id).filter(|group| group.is_member());
            if group.is_none_or(|group| walk.step(group, order, &mut budget, cx)) {
                walk.left.pop();
            }
        }
        let is_done = walk.left.is_empty();
        self.volatile.weighing.walk = walk;
        is_done && cx.now >= self.volatile.weighing.since + self.settings.pace.weigh
    }

    /// Forgets what was weighed and begins again.
    pub(crate) fn weigh_anew(&mut self, shape: Option<u64>, now: Time) {
        let members = self.durable.groups.iter().filter(|(_, group)| group.is_member());
        let walk = Walk { left: members.map(|(id, _)| *id).collect(), ..Walk::default() };
        self.volatile.weighing = Weighing { shape, since: now, walk, ..Weighing::default() };
    }

    /// The parts of the ring to which this node is the closest member, as they were weighed.
    /// `operations` a second were served in all.
    pub(crate) fn pieces(&self, operations: u64, me: NodeId) -> Vec<Piece> {
        let weighing = &self.volatile.weighing;
        let Some(ring) = &self.volatile.ring else { return Vec::new() };
        let is_mine = |group: &&Group| is_closest(group, ring, me);
        let groups: Vec<&Group> = self.durable.groups.values().filter(is_mine).collect();
        let parts = (PIECES_MAX / 2 / groups.len().max(1)).clamp(1, PARTS_MAX);
        let all = u128::from(weighing.operations.total().max(1));
        let mut pieces = Vec::new();
        for group in groups {
            let range = group.view.range;
            let Some(keys) = weighing.walk.done.get(&group.view.id.group) else { continue };
            let total = u128::from(keys.total().max(1));
            let reach = |token: &u64| token.wrapping_sub(range.low).wrapping_sub(1);
            let cuts = keys.cuts(&range, parts).into_iter();
            let cuts = cuts.chain(weighing.operations.cuts(&range, parts)).chain([range.high]);
            let cuts: BTreeSet<u64> = cuts.map(|token| reach(&token)).collect();
            let mut low = range.low;
            for cut in cuts {
                let high = range.low.wrapping_add(1).wrapping_add(cut);
                let part = Range { low, high };
                let share = |part: u64, all: u128, of: u64| {
                    u64::try_from(u128::from(part) * u128::from(of) / all).unwrap_or(u64::MAX)
                };
                let served = share(weighing.operations.within(&part), all, operations);
                pieces.push(Piece {
                    range: part,
                    replicas: u8::try_from(self.settings.replicas).unwrap_or(u8::MAX),
                    bytes: share(keys.within(&part), total, group.share.bytes()),
                    operations: u32::try_from(served).unwrap_or(u32::MAX),
                });
                low = high;
            }
        }
        if pieces.len() > PIECES_MAX {
            pieces.sort_by_key(|piece| core::cmp::Reverse((piece.operations, piece.bytes)));
            pieces.truncate(PIECES_MAX);
        }
        pieces
    }
}

fn is_closest(group: &Group, ring: &Ring, me: NodeId) -> bool {
    group.is_serving() && placement::proposer(&group.view, ring) == Some(me)
}

impl Walk {
    /// Looks at keys of a group while the budget lasts; returns whether it is finished.
    fn step(
        &mut self,
        group: &mut Group,
        order: Order,
        budget: &mut usize,
        cx: &mut Context<'_>,
    ) -> bool {
        let slot = group.record.slot;
        let after = self.after.take();
        // The part that holds the last key seen, and those behind it.
        let at = after.as_ref().and_then(|key| slot.data_key(key)).map_or(0, token_of);
        for (first, last) in segments(&group.view.range).filter(|(_, last)| *last >= at) {
            let from = match &after {
                Some(key) if at >= first => key.clone(),
                _ => slot.first_at(first),
            };
            let mut rest = None;
            cx.table.scan(Class::Data, &from, &mut |stored, record| {
                let Some(key) = slot.data_key(stored) else { return false };
                let token = token_of(key);
                if token > last {
                    return false;
                }
                if after.as_ref().is_some_and(|after| stored <= &after[..]) {
                    return true;
                }
                if *budget == 0 {
                    return false;
                }
                *budget -= 1;
                let size = (key.len() + record.len()) as u64;
                self.seen = (self.seen.0 + 1, self.seen.1 + size);
                self.marks.note(token, size);
                rest = (*budget == 0).then(|| Bytes::copy_from_slice(stored));
                true
            });
            if rest.is_some() {
                if order == Order::Hash && self.seen.0 >= LIST_KEYS_MAX as u64 {
                    return self.finish_by_sample(group, cx);
                }
                self.after = rest;
                return false;
            }
        }
        let (keys, bytes) = core::mem::take(&mut self.seen);
        group.share.set(keys, bytes);
        self.done.insert(group.view.id.group, core::mem::take(&mut self.marks));
        true
    }

    /// Hashed keys stand evenly, so a sample tells how many there are, and the middle is the
    /// middle.
    fn finish_by_sample(&mut self, group: &mut Group, cx: &mut Context<'_>) -> bool {
        let (keys, bytes) = estimate(group, cx);
        group.share.take(keys, bytes);
        let Range { low, high } = group.view.range;
        let width = match high.wrapping_sub(low) {
            0 => 1 << 64,
            width => u128::from(width),
        };
        let mut marks = Marks::default();
        for part in 1..=PARTS_MAX as u128 {
            marks.note(low.wrapping_add((width * part / PARTS_MAX as u128) as u64), 1);
        }
        (self.seen, self.marks) = ((0, 0), Marks::default());
        self.done.insert(group.view.id.group, marks);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_stand_for_all_that_was_noted() {
        let mut marks = Marks::default();
        (0..4096).for_each(|token| marks.note(token, 2));
        assert!(marks.list.len() < MARKS_MAX && marks.total() == 8192);
        let range = Range { low: u64::MAX, high: 4095 };
        let cuts = marks.cuts(&range, 4);
        let is_about = |(cut, wanted): (&u64, u64)| cut.abs_diff(wanted) < 4096 / 64;
        assert!(cuts.len() == 4 && cuts.iter().zip([1023, 2047, 3071, 4095]).all(is_about));
        assert!(marks.within(&Range { low: 1023, high: 2047 }).abs_diff(2048) < 128);
    }

    #[test]
    fn cuts_of_a_range_that_wraps_follow_the_ring() {
        let mut marks = Marks::default();
        for token in [u64::MAX - 1, 1, 2, 3, 500] {
            marks.note(token, 1);
        }
        let range = Range { low: u64::MAX - 5, high: 10 };
        assert_eq!(marks.cuts(&range, 4), [u64::MAX - 1, 1, 2, 3]);
        let hot = [7_u64; 50];
        let mut marks = Marks::default();
        hot.iter().for_each(|token| marks.note(*token, 1));
        let cuts: BTreeSet<u64> = marks.cuts(&range, 4).into_iter().collect();
        assert!(cuts.into_iter().eq([7]), "one token cannot be cut");
    }
}
