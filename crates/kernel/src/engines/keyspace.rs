//! Keyspaces as the catalog has them: the words that catalog, node, engines and doors share.

use crate::ids::{LaneId, NodeId, Start};
use crate::limits::{KEYSPACE_NAME_BYTES_MAX, PARTITIONS_MAX, VALUE_BYTES_DEFAULT};
use crate::part::{Holder, Holds, Part, PartName};
use crate::storage::Durability;
use crate::view::{Range, View};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Settings by name. In the catalog all that the engine has are there, each in one spelling.
pub type Settings = BTreeMap<String, String>;

/// A keyspace as the catalog has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keyspace {
    /// Its name; see [`is_name`].
    pub name: String,
    /// The lane that serves it on every node. No other keyspace ever has it.
    pub lane: LaneId,
    /// The engine that serves it.
    pub engine: String,
    /// How it is set.
    pub settings: Settings,
    /// How it was set when it was made: who founds its groups follows from that, whatever is
    /// altered later.
    pub founding: Settings,
    /// The number of the decree that created it.
    pub created: u64,
    /// The number of the decree that changed it last: of two records, the higher is the newer.
    pub changed: u64,
    /// Where it began.
    pub birth: Birth,
    /// Who holds what, of an engine that is placed by partitions; empty otherwise.
    pub partitions: Vec<Partition>,
    /// Who held what, and has not handed it over yet.
    pub former: Vec<Tenure>,
    /// The nodes that held something and are gone for good: nothing is expected of them any more,
    /// and nothing taken.
    pub gone: BTreeSet<NodeId>,
}

/// Where a keyspace of groups began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Birth {
    /// Without views: it has no groups.
    Groupless,
    /// With these views, which cover the ring. Their members begin with them, also late; everybody
    /// else may take them for a hint.
    Groups(Vec<View>),
}

/// One of a keyspace's fixed partitions. Its keys are held by it and the partitions that follow,
/// see [`Keyspace::holders`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partition {
    /// The node that has it.
    pub node: NodeId,
    /// The number of the decree that gave it to the node. Partition and number together name what
    /// stores there, and never name anything else.
    pub since: u64,
    /// Whether the node has fetched what it needs to stand for the partition.
    pub is_settled: bool,
}

/// A partition that a node had, until it was given to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tenure {
    /// Which partition.
    pub partition: u32,
    /// The number of the decree that had given it to the node.
    pub since: u64,
    /// The node that had it.
    pub node: NodeId,
}

/// What a node has done of what the catalog waits for at a partition. The two are different words:
/// who has copied everything may have taken writes since that nobody else has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Settlement {
    /// It has fetched what it needs to stand for the partition, which it has.
    Joined,
    /// It keeps nothing that others need of the partition, which it has no more.
    HandedOver,
}

impl Keyspace {
    /// A keyspace of a cluster's birth, or of one decree, without partitions.
    #[must_use]
    pub fn new(
        name: &str,
        lane: LaneId,
        engine: &str,
        settings: Settings,
        created: u64,
    ) -> Keyspace {
        Keyspace {
            name: name.into(),
            lane,
            engine: engine.into(),
            founding: settings.clone(),
            settings,
            created,
            changed: created,
            birth: Birth::Groupless,
            partitions: Vec::new(),
            former: Vec::new(),
            gone: BTreeSet::new(),
        }
    }

    /// A setting. Every setting of the engine is there.
    #[must_use]
    pub fn setting(&self, name: &str) -> &str {
        self.settings.get(name).map_or("", String::as_str)
    }

    /// How many nodes hold each key.
    #[must_use]
    pub fn replicas(&self) -> usize {
        self.setting("replicas").parse().unwrap_or(1)
    }

    /// How many nodes held each key when it was made.
    #[must_use]
    pub fn founding_replicas(&self) -> usize {
        self.founding.get("replicas").and_then(|text| text.parse().ok()).unwrap_or(1)
    }

    /// The longest value in bytes that it takes.
    #[must_use]
    pub fn value_bytes_max(&self) -> usize {
        self.setting("value").parse().unwrap_or(VALUE_BYTES_DEFAULT)
    }

    /// How durable its data is.
    #[must_use]
    pub fn durability(&self) -> Durability {
        self.setting("durability").parse().unwrap_or_default()
    }

    /// The keys of each of its partitions, and who holds them: the partition itself and those that
    /// follow, as many as a key has replicas; of the last keys the last ones. Who had one of them,
    /// and has not handed over, holds its keys too.
    #[must_use]
    pub fn parts(&self, quorum: fn(usize) -> usize) -> Vec<Part> {
        let (count, replicas) = (self.partitions.len(), self.replicas());
        assert!(count == 0 || count >= replicas, "each replica of a key is at its own partition");
        // Rounded up; the partitions of the last part end with the space.
        let first_of = |home: usize| ((home as u128) << 64).div_ceil(count as u128);
        let part = |home: usize| {
            let window = self.holders(home);
            let has = window.clone().map(|partition| {
                let Partition { node, is_settled, .. } = self.partitions[partition];
                let holds = if is_settled { Holds::Recorded } else { Holds::Some };
                Holder { node, holds, has_seat: partition == home }
            });
            let had = self.former.iter().filter(|one| window.contains(&(one.partition as usize)));
            let had = had.map(|one| Holder {
                node: one.node,
                holds: Holds::Some,
                has_seat: one.partition as usize == home,
            });
            let low = (first_of(home) as u64).wrapping_sub(1);
            Part {
                name: PartName::Partition(home as u32),
                range: Range { low, high: (first_of(home + 1) - 1) as u64 },
                holders: has.chain(had).collect(),
                quorum: quorum(replicas),
                owes: false,
                here: None,
                awaited: Vec::new(),
            }
        };
        (0..count).map(part).collect()
    }

    /// The partition of a hash: equal parts of the hash space, in order.
    #[must_use]
    pub fn partition_of(&self, hash: u64) -> Option<usize> {
        let count = self.partitions.len();
        assert!(count <= PARTITIONS_MAX, "partitions are bounded");
        // The product is below 2^64 times the count, so the quotient is below the count.
        (count > 0).then(|| ((u128::from(hash) * count as u128) >> 64) as usize)
    }

    /// The partitions that hold the keys of one: itself and those that follow. Where too few follow
    /// they are the last ones.
    pub fn holders(&self, partition: usize) -> core::ops::Range<usize> {
        let (count, replicas) = (self.partitions.len(), self.replicas().min(self.partitions.len()));
        let first = partition.min(count - replicas);
        first..first + replicas
    }
}

/// What a node is told of the keyspaces there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keyspaces {
    /// How many decrees it rests on.
    pub version: u64,
    /// The system group, whose majority decides what follows.
    pub members: Vec<NodeId>,
    /// The keyspaces in the order of their lanes, each with the start in which this node first
    /// heard of it: a lane cannot have forgotten what was before that.
    pub list: Vec<(Arc<Keyspace>, Start)>,
    /// The lanes of keyspaces that this node once had and that are dropped.
    pub dropped: Vec<LaneId>,
}

/// A keyspace that is to be: what an operator asks for, and what a cluster is born with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewKeyspace {
    /// What clients call it by; no other keyspace has it.
    pub name: String,
    /// The name of one that all hosts have; it never changes.
    pub engine: String,
    /// The settings that shall not have their default.
    pub settings: Settings,
}

/// What an operator asks of the catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyspaceOrder {
    /// A new keyspace.
    Create(NewKeyspace),
    /// Other settings for one there is.
    Alter {
        /// Which keyspace.
        name: String,
        /// The settings to change.
        settings: Settings,
    },
    /// An end to one, and to its data.
    Drop {
        /// Which keyspace.
        name: String,
    },
    /// Another node for a partition.
    Replace {
        /// The keyspace's name.
        name: String,
        /// Which partition.
        partition: u32,
        /// The node that shall have it.
        to: NodeId,
    },
}

/// Why the catalog stays as it is. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CatalogRefusal {
    /// The name is taken.
    #[error("there is a keyspace `{name}` already")]
    Exists {
        /// What a keyspace is called already.
        name: String,
    },
    /// No keyspace has the name.
    #[error("there is no keyspace `{name}`")]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// The name breaks the rules of names.
    #[error(
        "keyspace name `{name}` is not allowed; use 1 to {KEYSPACE_NAME_BYTES_MAX} of a-z, 0-9, \
         `-` and `_`, not beginning with a digit"
    )]
    Name {
        /// What was asked for.
        name: String,
    },
    /// No engine of this build has the name.
    #[error("unknown engine `{name}`; this build has: {known}")]
    Engine {
        /// The name asked for.
        name: String,
        /// Those there are.
        known: String,
    },
    /// The engine has no such setting.
    #[error("engine `{engine}` has no setting `{name}`; it has: {known}")]
    Setting {
        /// By name, the one of the keyspace.
        engine: String,
        /// The setting asked for.
        name: String,
        /// Those there are.
        known: String,
    },
    /// The keyspace was made before its engine had the setting.
    #[error(
        "the keyspace says nothing of `{name}`: it was made by a build whose engine `{engine}` had \
         no such setting; set it, or make the keyspace anew"
    )]
    Unset {
        /// By name, the one of the keyspace.
        engine: String,
        /// The setting.
        name: String,
    },
    /// The setting does not take the value.
    #[error("setting `{name}` cannot be `{value}`; use {expected}")]
    Value {
        /// The setting.
        name: String,
        /// The value asked for.
        value: String,
        /// What it takes.
        expected: String,
    },
    /// The setting cannot be changed.
    #[error("setting `{name}` stays as it is: {why}")]
    Fixed {
        /// The setting.
        name: String,
        /// What would go wrong if it changed.
        why: String,
    },
    /// There are too few hosts.
    #[error("{needed} hosts that take part and answer are needed, and {there} are there")]
    Hosts {
        /// How many are needed.
        needed: usize,
        /// How many are there.
        there: usize,
    },
    /// The partitions cannot be spread over the hosts.
    #[error("{why}")]
    Partitions {
        /// A sentence that says what is missing.
        why: String,
    },
    /// The catalog is full.
    #[error("the catalog is full: it takes {limit} {what}")]
    Full {
        /// What it holds too many of, such as "keyspaces".
        what: String,
        /// How many it takes.
        limit: usize,
    },
    /// The host has just joined.
    #[error("this host has not learnt the catalog yet; try again")]
    NotLearnt,
}

/// Whether a keyspace may have this name.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let allowed =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    (1..=KEYSPACE_NAME_BYTES_MAX).contains(&name.len())
        && name.bytes().all(allowed)
        && !name.as_bytes()[0].is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn names_have_rules() {
        for name in ["default", "a", "x-1_y", &"x".repeat(64)] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "9lives", "Upper", "with space", &"x".repeat(65), "ä"] {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn partitions_divide_the_hash_space_and_the_last_ones_hold_what_too_few_follow() {
        let place = |node| Partition { node: NodeId(node), since: 1, is_settled: true };
        let settings = Settings::from([("replicas".to_string(), "3".to_string())]);
        let mut keyspace = Keyspace::new("k", LaneId(16), "fast", settings, 1);
        keyspace.partitions = (1..=5).map(place).collect();
        assert_eq!(keyspace.partition_of(0), Some(0));
        assert_eq!(keyspace.partition_of(u64::MAX), Some(4));
        assert_eq!(keyspace.partition_of(u64::MAX / 5 + 1), Some(1));
        assert_eq!([0, 2, 3, 4].map(|at| keyspace.holders(at)), [0..3, 2..5, 2..5, 2..5]);
        keyspace.partitions.clear();
        assert_eq!(keyspace.partition_of(7), None);
    }
}
