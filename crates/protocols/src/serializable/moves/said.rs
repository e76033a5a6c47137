//! What groups say to each other of buckets that move.

use super::places::bucket_of;
use crate::serializable::execute::items::Stored;
use crate::serializable::number::Version;
use crate::serializable::raw::Raw;
use crate::serializable::sound::are_items;
use alloc::vec::Vec;
use quorate_kernel::ids::GroupId;
use serde::{Deserialize, Serialize};

/// What is said. New variants are only appended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Said {
    /// Target to source, when its `Arriving` is committed, and again until it is answered.
    Pull {
        /// Names the copy: where it was begun in the target's log, and in which life of that.
        id: u64,
        /// What entries of the source's log up to this one have made is here.
        since: u64,
        /// Where the page begins.
        cursor: Raw,
        /// How often the bucket was handed over until the source had it.
        stay: u64,
        /// Whether the bucket is to be handed over before it is answered: if this is still its last
        /// purge, as the source tells it.
        releases: Option<u64>,
    },
    /// The answer: keys that were changed since, as they were committed when it was sent.
    Page {
        /// Of the question.
        id: u64,
        /// Of the question.
        since: u64,
        /// Of the question.
        cursor: Raw,
        /// The keys.
        items: Vec<(Raw, Stored)>,
        /// Where the next page begins; none after the last.
        next: Option<Raw>,
        /// The source's entry as of which they are.
        as_of: u64,
        /// How often the bucket was handed over until the source had it.
        stay: u64,
        /// The source's floor.
        floor: Version,
        /// The source's last entry that has purged tombstones of the bucket, 0 if none has, and in
        /// which life of its log.
        purged: u64,
        /// Whether the bucket is handed over to who asks: its version then.
        released: Option<u64>,
    },
    /// The answer of a group that does not have the bucket: who has it, as far as it knows.
    Elsewhere {
        /// Who.
        home: GroupId,
        /// How often it was handed over until then.
        version: u64,
    },
    /// Source to target, when its `Release` is committed, and again until it is answered.
    Gone {
        /// How often it was handed over.
        version: u64,
    },
    /// Target to source, when its `Take` is committed: what the source keeps is not needed.
    Took {
        /// Which handing over.
        version: u64,
    },
    /// The answer of a group that is not to hand the bucket over to who asks, as far as is known
    /// where it is led.
    Stays {
        /// Of the question.
        id: u64,
    },
}

impl Said {
    /// Whether a correct group can have said it of a bucket.
    pub(in crate::serializable) fn is_sound(&self, bucket: u8) -> bool {
        match self {
            Said::Pull { cursor, .. } => bucket_of(cursor) == bucket && !cursor.is_empty(),
            Said::Page { cursor, items, next, floor, stay, released, .. } => {
                let is_its = |key: &Raw| bucket_of(key) == bucket && !key.is_empty();
                let are_its = are_items(items) && items.iter().all(|(key, _)| is_its(key));
                let goes_on = next.as_ref().is_none_or(|next| is_its(next) && next > cursor);
                let is_next = released.is_none_or(|version| Some(version) == stay.checked_add(1));
                let is_version = is_next && *stay < u64::MAX - 1;
                is_its(cursor) && are_its && goes_on && floor.has_next() && is_version
            }
            Said::Elsewhere { version, .. } => *version < u64::MAX,
            Said::Stays { .. } => true,
            Said::Gone { version } | Said::Took { version } => (1..u64::MAX).contains(version),
        }
    }
}
