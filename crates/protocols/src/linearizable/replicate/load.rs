//! How much this node has to do for the keyspace, for the load balancer and the console (CATS §5).
//!
//! Operations are counted. Keys and bytes are not: now and then a few neighbouring keys of each
//! group are looked at, from a random token on, and how close they stand says how many there
//! are. So nothing is paid for it on any operation, and a restart forgets nothing. Where load is
//! to be evened out they are [weighed](super::weigh) besides.

use crate::linearizable::group::Group;
use crate::linearizable::keys::segments;
use crate::linearizable::{Context, Linearizable};
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::GroupId;
use quorate_kernel::limits::LIST_KEYS_MAX;
use quorate_kernel::ring::{Load, Weighed};
use quorate_kernel::storage::Class;
use quorate_kernel::time::Time;

/// How many keys of a group are looked at, beside those that share the last one's token.
const SAMPLE_KEYS: u64 = 64;
/// The most keys of a group that are looked at. Where keys are in their own order, any number of
/// them may share a token.
const LOOK_KEYS_MAX: u64 = LIST_KEYS_MAX as u64;
/// How many groups are looked at in one turn.
const SAMPLE_GROUPS: usize = 8;

/// What was counted and estimated.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    /// Reads and writes answered as a member since the load was last told.
    pub served: u64,
    told_at: Option<Time>,
    /// The group that was looked at last; the next ones are next.
    sampled: Option<GroupId>,
}

/// A group's share, smoothed over several looks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Share {
    keys: u64,
    bytes: u64,
    is_known: bool,
}

impl Share {
    /// The bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// All was counted.
    pub fn set(&mut self, keys: u64, bytes: u64) {
        *self = Share { keys, bytes, is_known: true };
    }

    /// A part was looked at.
    pub fn take(&mut self, keys: u64, bytes: u64) {
        let smooth = |old: u64, new: u64| old - old / 4 + new / 4;
        *self = match self.is_known {
            true => {
                Share { keys: smooth(self.keys, keys), bytes: smooth(self.bytes, bytes), ..*self }
            }
            false => Share { keys, bytes, is_known: true },
        };
    }
}

impl Linearizable {
    /// An operation was served at a token.
    pub(crate) fn note_served(&mut self, token: u64) {
        self.volatile.meter.served += 1;
        if self.settings.pace.is_weighing {
            self.volatile.weighing.operations.note(token, 1);
        }
    }

    /// Tells the overlay the load, if it is time.
    pub(crate) fn tell_load(&mut self, cx: &mut Context<'_>) {
        let told_at = *self.volatile.meter.told_at.get_or_insert(cx.now);
        let is_weighed = self.settings.pace.is_weighing && self.weigh(cx);
        // While there is something to weigh, what was counted meanwhile is told with it.
        let is_waiting = self.volatile.weighing.shape.is_some() && !is_weighed;
        if cx.now < told_at + self.settings.pace.weigh || is_waiting {
            return;
        }
        let elapsed_ms = (cx.now - told_at).0 / 1_000_000;
        let operations = self.volatile.meter.served * 1000 / elapsed_ms.max(1);
        self.volatile.meter.told_at = Some(cx.now);
        self.volatile.meter.served = 0;
        if !self.settings.pace.is_weighing {
            self.sample(cx);
        }
        let mut weighed = Weighed { load: self.load(operations), shape: 0, pieces: Vec::new() };
        if let Some(shape) = self.volatile.weighing.shape.filter(|_| is_weighed) {
            weighed.shape = shape;
            weighed.pieces = self.pieces(operations, cx.me.node);
            self.weigh_anew(Some(shape), cx.now);
        }
        cx.fx.announce_load(Arc::new(weighed));
    }

    /// All that this node is a member of.
    pub(crate) fn load(&self, operations: u64) -> Load {
        let members = || self.durable.groups.values().filter(|group| group.is_member());
        Load {
            keys: members().map(|group| group.share.keys).sum(),
            bytes: members().map(|group| group.share.bytes).sum(),
            operations: u32::try_from(operations).unwrap_or(u32::MAX),
        }
    }

    /// Looks at some groups, each in its turn.
    fn sample(&mut self, cx: &mut Context<'_>) {
        use core::ops::Bound::{Excluded, Unbounded};
        for _ in 0..SAMPLE_GROUPS {
            let after = self.volatile.meter.sampled.map_or(Unbounded, Excluded);
            let groups = &mut self.durable.groups;
            let Some((id, group)) = groups.range_mut((after, Unbounded)).next() else {
                self.volatile.meter.sampled = None;
                return;
            };
            self.volatile.meter.sampled = Some(*id);
            let (keys, bytes) = estimate(group, cx);
            group.share.take(keys, bytes);
        }
    }
}

/// About how many keys and bytes a group has here. If more keys share a token than are looked at,
/// those beyond are left out, and the estimate is a lower bound.
pub(crate) fn estimate(group: &Group, cx: &mut Context<'_>) -> (u64, u64) {
    let slot = group.record.slot;
    let (mut keys, mut bytes) = (0, 0);
    for (first, last) in segments(&group.view.range) {
        let width = u128::from(last - first) + 1;
        let from = first + cx.rng.below(last - first + u64::from(last - first < u64::MAX));
        let (mut seen, mut size, mut end) = (0_u64, 0_u64, last);
        cx.table.scan(Class::Data, &slot.first_at(from), &mut |stored, record| {
            let Some(key) = slot.data_key(stored) else { return false };
            let token = crate::linearizable::keys::token_of(key);
            if token > last {
                return false;
            }
            let is_enough = seen >= SAMPLE_KEYS && token > end;
            if is_enough || seen >= LOOK_KEYS_MAX {
                return false;
            }
            seen += 1;
            size += (key.len() + record.len()) as u64;
            end = if seen >= SAMPLE_KEYS { token } else { last };
            true
        });
        let covered = u128::from(end - from) + 1;
        let scale =
            |part: u64| u64::try_from(u128::from(part) * width / covered).unwrap_or(u64::MAX);
        keys += scale(seen);
        bytes += scale(size);
    }
    (keys, bytes)
}
