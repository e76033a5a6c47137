//! What several messages carry: stamps of replies, what writes rest on, what nodes tell of a group.

use super::cursor;
use crate::linearizable::group::{Generation, Standing};
use crate::quorum::CrashVector;
use alloc::boxed::Box;
use quorate_kernel::operation::Cursor;
use quorate_kernel::view::{View, ViewId};
use serde::{Deserialize, Serialize};

/// What a reader wants of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Want {
    /// The newest record.
    Value,
    /// The timestamp alone, as good as the record: it will be shown to a client.
    Digest,
    /// The timestamp alone, to write above it.
    Counter,
}

/// What a node says when it is asked what keeps a host that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// What the sender is in the group, as in a beat.
    pub standing: Standing,
    /// Whether the sender may yet bring about that the host becomes a member of the group.
    pub brings: bool,
    /// Whether the sender holds something of any group.
    pub keeps: bool,
    /// Whether the sender has not heard that it leaves itself.
    pub stays: bool,
}

/// What every reply is stamped with (CATS §4): the sender's installed view, how far it may be
/// counted, and what it knows of members that forgot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// The view the sender has installed.
    pub view: ViewId,
    /// What the sender is in it.
    pub standing: Standing,
    /// What the sender knows beside it.
    pub known: Known,
    /// The members that forgot, as far as the sender knows.
    pub crashes: CrashVector,
    /// The newest view of the asked token that the sender knows, when the asker's is older.
    pub hint: Option<Box<View>>,
}

/// What a node knows of a group beside its views; nothing, where it has no part in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// How far tombstones are removed at the sender.
    pub generation: Generation,
    /// How often everything was lost at the sender.
    pub epoch: u64,
}

impl Known {
    /// What two nodes know together.
    #[must_use]
    pub fn max(self, other: Known) -> Known {
        let generation = self.generation.max(other.generation);
        Known { generation, epoch: self.epoch.max(other.epoch) }
    }
}

/// What a write rests on: what held at all of the members that its read phase counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Basis {
    /// The lowest generation number of the quorum.
    pub generation: u64,
    /// Whether it imposes what a get read; otherwise it is a client's write.
    pub is_imposed: bool,
    /// The lowest epoch of the quorum ([`crate::linearizable::refill::epoch`]).
    pub epoch: u64,
}

/// What a node says of itself in one group, unasked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beat {
    /// The view it has installed.
    pub view: ViewId,
    /// What it is in it.
    pub standing: Standing,
    /// What it knows beside it.
    pub known: Known,
    /// Whether it wants to hear how the receiver stands, who may have no reason to tell unasked.
    pub asks: bool,
}

/// What a page of a list covers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Where it begins, as it was asked for.
    #[serde(with = "cursor")]
    pub from: Cursor,
    /// Where it ends, not included; `None` at the end of the interval of the view's range.
    #[serde(with = "cursor::optional")]
    pub next: Option<Cursor>,
}
