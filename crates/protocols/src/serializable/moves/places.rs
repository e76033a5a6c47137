//! Where buckets are, as the log of a group has it.

use crate::serializable::raw::Raw;
use crate::serializable::state::State;
use crate::vsr::are_members;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use quorate_kernel::ids::{GroupId, NodeId};
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::process::Table;
use serde::{Deserialize, Serialize};

/// The group that notes who founds groups; it is there from the beginning.
pub const STEWARD: GroupId = GroupId(1);

/// How many times keys that were dropped are looked at in one step.
pub const ROUNDS_MAX: usize = 16;
/// How many keys are looked at in one step for whether there is any, and about how many bytes.
const LOOKED_AT: (usize, usize) = (64, 64 * 1024);

/// How many bits of what is told of a place are the place. The others are left for the life, which
/// is named by an epoch: after 65536 epochs they begin anew.
const PLACE_BITS: u32 = 48;

/// What a look for the keys of a bucket has come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// The first key that is left.
    Found(Raw),
    /// None is left before this one: there is more to look at.
    Upto(Raw),
    /// None is left.
    Nothing,
}

/// The bucket of a stored key: its first byte.
#[must_use]
pub fn bucket_of(key: &[u8]) -> u8 {
    key.first().copied().unwrap_or_default()
}

/// The least key of a bucket.
#[must_use]
pub fn first_key(bucket: u8) -> Raw {
    Raw(bytes::Bytes::copy_from_slice(&[bucket]))
}

/// A bucket on its way here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrival {
    /// The place of the entry that has begun it: names the copy.
    pub id: u64,
    /// Who has it.
    pub from: GroupId,
    /// All that the source had at this entry of its log is here; 0 before the first pass.
    pub since: u64,
    /// The source's last purge of the bucket when the first pass began, as it was told; none before
    /// that has ended.
    pub purged: Option<u64>,
    /// How many passes have ended.
    pub passes: u8,
    /// Whether the bucket is to be handed over before the next one.
    pub releases: bool,
}

/// What a group knows of a bucket beyond the founding placement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// How often it was handed over.
    pub version: u64,
    /// Who had it then.
    pub home: GroupId,
    /// Whether keys of it are kept here for its next group.
    pub is_kept: bool,
    /// Whether it is to come here: requests wait.
    pub is_awaited: bool,
    /// The copy that is under way.
    pub arrival: Option<Arrival>,
}

/// What has moved, in a head.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moves {
    /// Buckets that are, or were, on their way from or to this group.
    pub buckets: BTreeMap<u8, Moved>,
    /// At the first group: who founds groups that were added.
    pub founded: BTreeMap<GroupId, Vec<NodeId>>,
    /// The last entry that has purged tombstones of a bucket: no pass that begins later tells of
    /// those.
    pub purged: BTreeMap<u8, u64>,
}

impl Moves {
    /// Whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.has_moved() && self.purged.is_empty()
    }

    /// Whether buckets have moved, or groups were added.
    #[must_use]
    pub fn has_moved(&self) -> bool {
        !(self.buckets.is_empty() && self.founded.is_empty())
    }

    /// The last entry that has purged tombstones of a bucket; 0 if none has.
    #[must_use]
    pub fn purged(&self, bucket: u8) -> u64 {
        self.purged.get(&bucket).copied().unwrap_or_default()
    }

    /// The copy of a bucket that is under way to here.
    #[must_use]
    pub fn arrival(&self, bucket: u8) -> Option<&Arrival> {
        self.buckets.get(&bucket)?.arrival.as_ref()
    }

    /// Whether a bucket is to come here.
    #[must_use]
    pub fn is_awaited(&self, bucket: u8) -> bool {
        self.buckets.get(&bucket).is_some_and(|moved| moved.is_awaited)
    }

    /// Whether keys of a bucket are kept for its next group.
    #[must_use]
    pub fn is_kept(&self, bucket: u8) -> bool {
        self.buckets.get(&bucket).is_some_and(|moved| moved.is_kept)
    }

    /// Whether it can be that of a group.
    pub(in crate::serializable) fn is_sound(&self, group: GroupId) -> bool {
        let is_place = |place: u64| place >> PLACE_BITS == 0;
        let is_moved = |moved: &Moved| {
            let is_away = moved.home != group;
            let is_idle = !moved.is_kept && !moved.is_awaited && moved.arrival.is_none();
            let is_one = !moved.is_kept || moved.arrival.is_none();
            let is_named = moved.arrival.as_ref().is_none_or(|arrival| is_place(arrival.id));
            (is_away || is_idle) && is_one && is_named && moved.version < u64::MAX
        };
        let are_noted = self.founded.is_empty() || group == STEWARD;
        let are_founded = self.founded.values().all(|members| are_members(members));
        let are_places = self.purged.values().copied().all(is_place);
        self.buckets.values().all(is_moved) && are_places && are_noted && are_founded
    }
}

/// A place in a group's log as other groups are told it: with the life of that log, as after a loss
/// places are counted anew, and one place of two lives is not one. (Buckets move with `sync` alone,
/// where no life ends: so that this rests on no setting.)
pub fn told(life: u64, place: u64) -> u64 {
    invariant!(place >> PLACE_BITS == 0, "no log gets so long");
    let life = if mutant!("txn_places_of_any_life") { 0 } else { life };
    (life << PLACE_BITS) | place
}

/// Whether tombstones of a bucket were purged since a copy began, so that it may lack them.
pub fn has_purged(first: u64, now: u64) -> bool {
    first != now && !mutant!("txn_copies_over_a_purge")
}

impl State {
    /// Where a bucket is as far as this group's log knows: how often it was handed over, and who
    /// has it.
    #[must_use]
    pub fn home(&self, bucket: u8) -> (u64, GroupId) {
        match self.head.moves.buckets.get(&bucket) {
            Some(moved) => (moved.version, moved.home),
            None => (0, self.founding.map_or(self.group, |shape| shape.of_bucket(bucket))),
        }
    }

    /// Whether a bucket is of this group.
    #[must_use]
    pub fn is_here(&self, bucket: u8) -> bool {
        self.home(bucket).1 == self.group
    }

    /// Whether a key is of this group.
    #[must_use]
    pub fn has(&self, key: &[u8]) -> bool {
        self.is_here(bucket_of(key))
    }

    /// Looks for the first key that is stored of a bucket, also a tombstone, from a key on; not
    /// beyond some thousand keys that were dropped and are still stored.
    pub(in crate::serializable) fn look_for(
        &self,
        bucket: u8,
        mut from: Raw,
        table: &dyn Table,
    ) -> Look {
        for _ in 0..ROUNDS_MAX {
            let (items, next) = self.items.range(&from, LOOKED_AT, table);
            if let Some((key, _)) = items.first() {
                let is_of = bucket_of(key) == bucket;
                return if is_of { Look::Found(key.clone()) } else { Look::Nothing };
            }
            // Keys that were dropped lately are looked at, and not shown.
            match next.filter(|key| bucket_of(key) == bucket) {
                Some(next) => from = next,
                None => return Look::Nothing,
            }
        }
        Look::Upto(from)
    }

    /// Asserts what must hold of places.
    pub(in crate::serializable) fn check_places(&self) {
        for key in self.locks.keys() {
            invariant!(self.has(&key), "what is held is here");
        }
        for (bucket, moved) in &self.head.moves.buckets {
            let is_idle = moved.arrival.is_none() && !moved.is_kept && !moved.is_awaited;
            invariant!(is_idle || !self.is_here(*bucket), "what is here is whole");
        }
    }
}
