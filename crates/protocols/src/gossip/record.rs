//! What is told of a host, and which of two tellings wins.
//!
//! News of a host is a product of three registers, each of which only moves forward, so that
//! merging is commutative, associative and idempotent, in whatever order news arrives:
//! - what the host says of itself, ordered by (start, version), which it alone raises;
//! - how it stands, ordered by (left or not, order), which operators raise, at any host;
//! - whether it is suspected in exactly that (start, version). The host refutes by raising its
//!   version.

use alloc::sync::Arc;
use quorate_kernel::error::WireError;
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::limits::{
    ADDRESS_BYTES_MAX, DOOR_NAME_BYTES_MAX, DOORS_MAX, TOKENS_PER_HOST_MAX, ZONE_BYTES_MAX,
};
use quorate_kernel::ring::{Door, Standing};
use quorate_kernel::rng::mix;
use serde::{Deserialize, Serialize};

/// How often a host has changed what it says of itself in its present start.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Version(pub u64);

/// The number of an operator's order about a host: a count, and below it a few bits of who took the
/// order, so that two orders given at once at two hosts have different numbers and one of them wins
/// everywhere.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Order(pub u64);

impl Order {
    const WHO_BITS: u32 = 16;

    /// The order that follows this one when it is taken at a node.
    #[must_use]
    pub fn next(self, at: NodeId) -> Order {
        let count = (self.0 >> Self::WHO_BITS) + 1;
        Order(count << Self::WHO_BITS | mix(at.0) >> (64 - Self::WHO_BITS))
    }
}

pub use quorate_kernel::ring::Load;

/// What orders a host's own tellings.
pub type Stamp = (Start, Version);

/// What orders how a host stands: whether it has left, by which order, and how.
pub type Rank = (bool, Order, Standing);

/// What is told of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostRecord {
    /// The host's node, in the start that tells this.
    pub who: Incarnation,
    /// Which of its own tellings this is.
    pub version: Version,
    /// Where its cluster door is: a hint, never an identity.
    pub address: Arc<str>,
    /// Its failure zone; empty if none is configured.
    pub zone: Arc<str>,
    /// Its tokens on the ring, ascending.
    pub tokens: Arc<[u64]>,
    /// How much it has to do.
    pub load: Load,
    /// The order by which it stands as it does.
    pub order: Order,
    /// How it stands.
    pub standing: Standing,
    /// Where its clients find it: hints.
    pub doors: Arc<[Door]>,
}

impl HostRecord {
    /// What orders the host's own tellings.
    #[must_use]
    pub fn stamp(&self) -> Stamp {
        (self.who.start, self.version)
    }

    /// What orders how it stands. Having left is above everything, for ever.
    #[must_use]
    pub fn rank(&self) -> Rank {
        (self.standing == Standing::Left, self.order, self.standing)
    }

    /// No less than its encoded bytes.
    #[must_use]
    pub fn bytes_max(&self) -> usize {
        let doors = self.doors.iter().map(|door| 4 + door.name.len() + door.address.len());
        let lists = 10 * self.tokens.len() + doors.sum::<usize>();
        96 + self.address.len() + self.zone.len() + lists
    }

    /// Whether something other than the load differs: something that the ring shows.
    fn is_other_ring(&self, other: &HostRecord) -> bool {
        (self.who, self.standing) != (other.who, other.standing)
            || (&self.address, &self.zone) != (&other.address, &other.zone)
            || (&self.tokens, &self.doors) != (&other.tokens, &other.doors)
    }

    /// Checks what a peer sent.
    ///
    /// # Errors
    /// Something in it is longer than allowed, or its tokens are not ascending.
    pub fn validate(&self) -> Result<(), WireError> {
        let lengths = [
            ("address", self.address.len(), ADDRESS_BYTES_MAX),
            ("zone", self.zone.len(), ZONE_BYTES_MAX),
            ("tokens", self.tokens.len(), TOKENS_PER_HOST_MAX),
            ("doors", self.doors.len(), DOORS_MAX),
        ];
        let of_doors = self.doors.iter().flat_map(|door| {
            [
                ("door's name", door.name.len(), DOOR_NAME_BYTES_MAX),
                ("door's address", door.address.len(), ADDRESS_BYTES_MAX),
            ]
        });
        for (what, length, limit) in lengths.into_iter().chain(of_doors) {
            if length > limit {
                let (length, limit) = (length as u64, limit as u64);
                return Err(WireError::TooLong { what, length, limit });
            }
        }
        if !self.tokens.windows(2).all(|pair| pair[0] < pair[1]) {
            return Err(WireError::Malformed { what: "tokens that are not ascending" });
        }
        Ok(())
    }
}

/// A record, and who suspects the host in that very stamp, if anybody does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct News {
    /// Who the host is, and how it stands.
    pub record: Arc<HostRecord>,
    /// Who suspects it. Only whether anybody does is merged and compared; of two names the one that
    /// was heard first stays.
    pub suspected_by: Option<NodeId>,
}

/// What news changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// Anything at all: others should hear of it.
    pub is_any: bool,
    /// Something that the ring shows.
    pub is_ring: bool,
    /// How the host stands.
    pub is_standing: bool,
}

impl News {
    /// News of a host that nobody suspects.
    #[must_use]
    pub fn of(record: HostRecord) -> News {
        News { record: Arc::new(record), suspected_by: None }
    }

    /// The host.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.record.who.node
    }

    /// Whether it takes part and is not suspected.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.suspected_by.is_none() && self.record.standing != Standing::Left
    }

    /// Whether other news of the same host tell something new.
    #[must_use]
    pub fn is_changed_by(&self, other: &News) -> bool {
        let (mine, theirs) = (self.record.stamp(), other.record.stamp());
        let is_suspicion = self.suspected_by.is_none() && other.suspected_by.is_some();
        theirs > mine || theirs == mine && is_suspicion || other.record.rank() > self.record.rank()
    }

    /// Merges other news of the same host into this.
    pub fn merge(&mut self, other: &News) -> Changed {
        assert_eq!(self.node(), other.node(), "news of one host are merged");
        if !self.is_changed_by(other) {
            return Changed::default();
        }
        let (mine, theirs) = (self.record.stamp(), other.record.stamp());
        let was_suspected = self.suspected_by.is_some();
        let before = Arc::clone(&self.record);
        let standing = before.rank().max(other.record.rank());
        if theirs > mine {
            self.record = Arc::clone(&other.record);
            self.suspected_by = other.suspected_by;
        } else if theirs == mine {
            self.suspected_by = self.suspected_by.or(other.suspected_by);
        }
        if self.record.rank() != standing {
            let record = Arc::make_mut(&mut self.record);
            (record.order, record.standing) = (standing.1, standing.2);
        }
        let is_suspicion = was_suspected != self.suspected_by.is_some();
        let is_newer = before.stamp() != self.record.stamp();
        let is_standing = before.rank() != self.record.rank();
        Changed {
            is_any: is_newer || is_standing || is_suspicion,
            is_ring: is_suspicion || before.is_other_ring(&self.record),
            is_standing,
        }
    }

    /// What stands for this news in sums: equal news, equal number.
    #[must_use]
    pub fn hash(&self) -> u64 {
        let record = &*self.record;
        let flags = (record.standing as u64) << 1 | u64::from(self.suspected_by.is_some());
        let parts = [u64::from(record.who.start.0), record.version.0, record.order.0, flags];
        parts.into_iter().fold(mix(record.who.node.0), |sum, part| mix(sum ^ part))
    }
}
