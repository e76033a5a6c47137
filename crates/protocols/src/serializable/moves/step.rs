//! Entries by which buckets move.

use super::places::{STEWARD, bucket_of};
use crate::serializable::execute::items::Stored;
use crate::serializable::number::Version;
use crate::serializable::raw::Raw;
use crate::serializable::sound::{are_items, is_key};
use crate::vsr::are_members;
use alloc::vec::Vec;
use quorate_kernel::ids::{GroupId, NodeId};
use serde::{Deserialize, Serialize};

/// One of them. New variants are only appended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// The first group: who founds a group that is added.
    Found {
        /// The group.
        group: GroupId,
        /// Its founders.
        members: Vec<NodeId>,
    },
    /// Target: a bucket is to come here, and is copied.
    Arriving {
        /// The bucket.
        bucket: u8,
        /// Who has it.
        from: GroupId,
        /// How often it was handed over until then.
        version: u64,
    },
    /// Target: keys of a bucket that is copied, as its source has them.
    Arrived {
        /// The bucket.
        bucket: u8,
        /// The keys.
        items: Vec<(Raw, Stored)>,
    },
    /// Target: a pass over the bucket has ended, and another follows.
    Passed {
        /// The bucket.
        bucket: u8,
        /// All that the source had at this entry of its log is here.
        as_of: u64,
        /// The source's last purge of the bucket when the pass began.
        purged: u64,
        /// Whether the bucket is to be handed over before the next one.
        releases: bool,
    },
    /// Target: the copy is given up, and what has come is cleared.
    Abandon {
        /// The bucket.
        bucket: u8,
        /// Who has it.
        home: GroupId,
        /// How often it was handed over until then.
        version: u64,
        /// Whether it is to come here still.
        is_awaited: bool,
    },
    /// Source: the bucket is another group's from here on.
    Release {
        /// The bucket.
        bucket: u8,
        /// Whose.
        to: GroupId,
        /// How often it was handed over, with this time.
        version: u64,
    },
    /// Target: the bucket is here from now on, and whole.
    Take {
        /// The bucket.
        bucket: u8,
        /// How often it was handed over, with this time.
        version: u64,
        /// The source's floor.
        floor: Version,
    },
    /// Source: the target has the bucket, so nothing of it has to be kept.
    Let {
        /// The bucket.
        bucket: u8,
        /// Which handing over.
        version: u64,
    },
    /// Keys of buckets that are not here, nor kept, nor copied, are dropped.
    Clear {
        /// The keys.
        keys: Vec<Raw>,
    },
}

impl Step {
    /// The bucket whose place it is about, if it is about one.
    #[must_use]
    pub fn bucket(&self) -> Option<u8> {
        match self {
            Step::Arriving { bucket, .. }
            | Step::Passed { bucket, .. }
            | Step::Abandon { bucket, .. }
            | Step::Release { bucket, .. }
            | Step::Take { bucket, .. }
            | Step::Let { bucket, .. } => Some(*bucket),
            Step::Found { .. } | Step::Arrived { .. } | Step::Clear { .. } => None,
        }
    }

    /// Whether a correct primary can have put it into some group's log.
    pub(in crate::serializable) fn is_sound(&self) -> bool {
        match self {
            Step::Found { members, .. } => are_members(members),
            Step::Arrived { bucket, items } => {
                are_items(items) && items.iter().all(|(key, _)| bucket_of(key) == *bucket)
            }
            Step::Take { version, floor, .. } => *version > 0 && floor.has_next(),
            Step::Release { version, .. } => (1..u64::MAX).contains(version),
            Step::Abandon { version, .. } | Step::Arriving { version, .. } => *version < u64::MAX,
            Step::Passed { .. } | Step::Let { .. } => true,
            Step::Clear { keys } => keys.iter().all(is_key),
        }
    }

    /// Whether it can be one of this group.
    pub(in crate::serializable) fn is_of(&self, group: GroupId) -> bool {
        match self {
            Step::Found { group: other, .. } => group == STEWARD && *other != group,
            Step::Arriving { from: other, .. }
            | Step::Abandon { home: other, .. }
            | Step::Release { to: other, .. } => *other != group,
            _ => true,
        }
    }
}
