//! What the chain is made of.

use alloc::string::String;
use alloc::vec::Vec;
use quorate_kernel::ids::{Incarnation, LaneId, NodeId};
use quorate_kernel::keyspace::{Birth, Settings, is_name};
use quorate_kernel::limits::{FIRST_GROUPS_MAX, PARTITIONS_MAX, SETTING_BYTES_MAX, SETTINGS_MAX};
use quorate_kernel::view::{Change, View};
use serde::{Deserialize, Serialize};

/// One change of the catalog. New variants are only appended.
///
/// Keyspaces are named by their lanes, which are never given twice: what was meant for a keyspace
/// never meets another one that took its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Decree {
    /// A new keyspace, on the next free lane.
    Create {
        /// Its name, which is free.
        name: String,
        /// The name of one that all hosts have.
        engine: String,
        /// All its settings.
        settings: Settings,
        /// Where its groups begin.
        birth: Birth,
        /// The node of each partition, of an engine that is placed by partitions.
        places: Vec<NodeId>,
    },
    /// A keyspace is set otherwise.
    Alter {
        /// Which keyspace; a name may be given again later, a lane never.
        lane: LaneId,
        /// The settings that change.
        settings: Settings,
    },
    /// A keyspace ends, and its data with it.
    Drop {
        /// Which keyspace; a name may be given again later, a lane never.
        lane: LaneId,
    },
    /// Another node has a partition from now on, or the same one has it anew, without its past.
    Replace {
        /// The keyspace's lane.
        lane: LaneId,
        /// Which partition.
        partition: u32,
        /// The decree that gave it to the node that has it: of two that want to replace it, the
        /// second finds it replaced.
        since: u64,
        /// The node that shall have it.
        to: NodeId,
    },
    /// A node that has a partition has fetched all that it needs to stand for it. It says nothing
    /// of one that has it no more: what was written there since, nobody else may have.
    Settle {
        /// The keyspace's lane.
        lane: LaneId,
        /// Which partition.
        partition: u32,
        /// The decree that gave it to the node.
        since: u64,
    },
    /// The system group has other members.
    Members(Change),
    /// A node that has partitions, or had some and has not handed them over, is gone for good: what
    /// it alone has is lost, and nothing is taken from it.
    Gone {
        /// The keyspace's lane.
        lane: LaneId,
        /// The one of which nothing more is awaited.
        node: NodeId,
    },
    /// A node has handed over all that it had of a partition which another node has now.
    HandOver {
        /// The keyspace's lane.
        lane: LaneId,
        /// Which partition.
        partition: u32,
        /// The decree that had given it to the node.
        since: u64,
    },
}

/// Who wanted a decree, so that it is known again wherever it turns up: two hosts that want the
/// same still want two things.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Origin {
    /// The host, in its start.
    pub who: Incarnation,
    /// Counts what it wanted in this start.
    pub number: u64,
}

/// A link of the chain. Its number is the version of the view that it makes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Who wanted it.
    pub origin: Origin,
    /// What.
    pub decree: Decree,
}

impl Entry {
    /// Whether a correct peer can have sent it. Whether it fits the catalog only those can say who
    /// know the catalog that it follows.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        match &self.decree {
            Decree::Create { name, engine, settings, birth, places } => {
                is_name(name)
                    && engine.len() <= SETTING_BYTES_MAX
                    && are_bounded(settings)
                    && is_birth(birth)
                    && places.len() <= PARTITIONS_MAX
            }
            Decree::Alter { settings, .. } => are_bounded(settings),
            Decree::Members(Change::Split { .. }) => false,
            Decree::Drop { .. }
            | Decree::Replace { .. }
            | Decree::Settle { .. }
            | Decree::Gone { .. }
            | Decree::HandOver { .. }
            | Decree::Members(_) => true,
        }
    }
}

/// Whether settings keep their bounds.
pub(super) fn are_bounded(settings: &Settings) -> bool {
    let is_short =
        |(name, value): (&String, &String)| name.len().max(value.len()) <= SETTING_BYTES_MAX;
    settings.len() <= SETTINGS_MAX && settings.iter().all(is_short)
}

/// Whether a birth keeps the rules of views.
pub(super) fn is_birth(birth: &Birth) -> bool {
    match birth {
        Birth::Groupless => true,
        Birth::Groups(views) => {
            views.len() <= FIRST_GROUPS_MAX && views.iter().all(View::is_well_formed)
        }
    }
}
