//! Which partitions hold which keys, for ever, and which host holds each partition, for now.
//!
//! A keyspace has a fixed number of **partitions**. The space of hashes is cut into as many equal
//! parts, the **homes**, and a home's replicas are the `replicas` partitions from its own on; the
//! last homes share the last partitions, so nothing wraps around and any hosts in turn, three or
//! more for three replicas, give every key distinct ones. Which keys a partition holds never
//! changes: a clock that was used for other keys would make new ones look deleted (T3). What
//! changes is the **map** from partitions to hosts. A catalog decides its versions; the engine only
//! takes them.

use super::keys::hash_of;
use crate::dots::dot::Partition;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::ops::RangeInclusive;
use quorate_kernel::ids::NodeId;
use quorate_kernel::keyspace::Keyspace;
use quorate_kernel::limits::{GROUP_MEMBERS_MAX, PARTITIONS_MAX};
use serde::{Deserialize, Serialize};

/// How many partitions a keyspace has unless it says otherwise.
pub const PARTITIONS_DEFAULT: u16 = 64;

/// What never changes of a keyspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// How many partitions.
    pub partitions: u16,
    /// How many of them hold each key.
    pub replicas: u16,
}

impl Shape {
    /// A shape; 1 to 7 replicas, and at least as many partitions.
    #[must_use]
    pub fn new(partitions: u16, replicas: u16) -> Shape {
        assert!(usize::from(partitions) <= PARTITIONS_MAX, "at most 1024 partitions");
        assert!((1..=GROUP_MEMBERS_MAX as u16).contains(&replicas), "1 to 7 replicas");
        assert!(replicas <= partitions, "each replica of a key is at a partition of its own");
        Shape { partitions, replicas }
    }

    /// The home of a hash.
    #[must_use]
    pub fn home(&self, hash: u64) -> u16 {
        ((u128::from(hash) * u128::from(self.partitions)) >> 64) as u16
    }

    /// The hashes of these homes.
    #[must_use]
    pub fn hashes(&self, homes: &RangeInclusive<u16>) -> RangeInclusive<u64> {
        let first_of = |home: u16| (u128::from(home) << 64).div_ceil(u128::from(self.partitions));
        let end = first_of(homes.end() + 1) - 1;
        first_of(*homes.start()) as u64..=end as u64
    }

    /// The partitions that hold a home's keys.
    #[must_use]
    pub fn replicas_of(&self, home: u16) -> RangeInclusive<u16> {
        let first = home.min(self.partitions - self.replicas);
        first..=first + self.replicas - 1
    }

    /// The partitions that hold a wire key.
    #[must_use]
    pub fn replicas_of_key(&self, data_key: &[u8]) -> RangeInclusive<u16> {
        self.replicas_of(self.home(hash_of(data_key)))
    }

    /// Whether a partition holds a home's keys.
    #[must_use]
    pub fn holds(&self, partition: Partition, home: u16) -> bool {
        self.replicas_of(home).contains(&partition.0)
    }

    /// The homes whose keys a partition holds; empty where a peer names one that there is not.
    #[must_use]
    pub fn homes(&self, partition: Partition) -> RangeInclusive<u16> {
        let first = match partition.0 < self.partitions {
            true => (partition.0 + 1).saturating_sub(self.replicas),
            false => self.partitions,
        };
        let last = if partition.0 >= self.partitions - self.replicas {
            self.partitions - 1
        } else {
            partition.0
        };
        first..=last
    }

    /// The homes whose keys two partitions both hold; empty if they are no peers.
    #[must_use]
    pub fn shared(&self, one: Partition, other: Partition) -> RangeInclusive<u16> {
        let (one, other) = (self.homes(one), self.homes(other));
        *one.start().max(other.start())..=*one.end().min(other.end())
    }

    /// Whether two partitions hold keys in common; a partition is no peer of itself.
    #[must_use]
    pub fn are_peers(&self, one: Partition, other: Partition) -> bool {
        one != other && !self.shared(one, other).is_empty()
    }

    /// The partitions that hold keys in common with this one.
    pub fn peers(&self, partition: Partition) -> impl Iterator<Item = Partition> + use<> {
        let shape = *self;
        let low = partition.0.saturating_sub(shape.replicas - 1);
        let high = (partition.0 + shape.replicas - 1).min(shape.partitions - 1);
        (low..=high).map(Partition).filter(move |peer| shape.are_peers(partition, *peer))
    }
}

/// Who holds a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The host.
    pub host: NodeId,
    /// Since which version of the map.
    pub since: u64,
}

/// One version of who holds what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Map {
    /// Rises with each change.
    pub version: u64,
    places: Vec<Place>,
    /// The hosts that hold or held something and are gone for good: nothing is expected of them any
    /// more, and nothing taken.
    gone: BTreeSet<NodeId>,
}

impl Map {
    /// The map of a keyspace as the catalog has it.
    #[must_use]
    pub fn of(keyspace: &Keyspace) -> Map {
        let place = |place: &quorate_kernel::keyspace::Partition| Place {
            host: place.node,
            since: place.since,
        };
        Map {
            version: keyspace.changed,
            places: keyspace.partitions.iter().map(place).collect(),
            gone: keyspace.gone.clone(),
        }
    }

    /// Whether another version says the same.
    #[must_use]
    pub fn says_the_same(&self, other: &Map) -> bool {
        (&self.places, &self.gone) == (&other.places, &other.gone)
    }

    /// Who holds a partition.
    #[must_use]
    pub fn place(&self, partition: Partition) -> Option<Place> {
        self.places.get(usize::from(partition.0)).copied()
    }

    /// The partitions of a host.
    pub fn partitions_of(&self, host: NodeId) -> impl Iterator<Item = Partition> + '_ {
        let places = (0..).zip(&self.places);
        places
            .filter(move |(_, place)| place.host == host)
            .map(|(partition, _)| Partition(partition))
    }

    /// Every host that holds something.
    #[must_use]
    pub fn hosts(&self) -> BTreeSet<NodeId> {
        self.places.iter().map(|place| place.host).collect()
    }

    /// Whether a host is gone for good.
    #[must_use]
    pub fn is_gone(&self, host: NodeId) -> bool {
        self.gone.contains(&host)
    }

    /// Whether what was decoded is a map of this shape: every key on distinct hosts.
    #[must_use]
    pub fn fits(&self, shape: Shape) -> bool {
        let hosts_of = |home: u16| -> BTreeSet<NodeId> {
            let places = self.places[..].iter().enumerate();
            let meant = shape.replicas_of(home);
            places
                .filter(|(partition, _)| meant.contains(&(*partition as u16)))
                .map(|(_, place)| place.host)
                .collect()
        };
        self.version > 0
            && self.places.len() == usize::from(shape.partitions)
            && self.places.iter().all(|place| (1..=self.version).contains(&place.since))
            && (0..shape.partitions).all(|home| hosts_of(home).len() == usize::from(shape.replicas))
    }
}
