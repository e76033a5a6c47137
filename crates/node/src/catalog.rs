//! Keyspaces: what each is called, which lane serves it, what it promises, and its first views.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;
use quorate_kernel::ids::{LaneId, NodeId};
use quorate_kernel::keyspace::{Keyspace as Record, is_name};
use quorate_kernel::limits::{GROUP_MEMBERS_MAX, VALUE_BYTES_DEFAULT, VALUE_BYTES_MAX};
use quorate_kernel::ring::Ring;
use quorate_kernel::storage::Durability;
use quorate_kernel::view::{Range, View, ViewId};
use quorate_protocols::placement;
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use crate::words::{Mode, Order};

/// The protocol of a keyspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// Every key an atomic register (CATS).
    Linearizable,
    /// Always writable; concurrent values are kept (DottedDB).
    Causal,
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Engine::Linearizable => f.write_str("linearizable"),
            Engine::Causal => f.write_str("causal"),
        }
    }
}

impl FromStr for Engine {
    type Err = CatalogError;

    fn from_str(name: &str) -> Result<Engine, CatalogError> {
        match name {
            "linearizable" => Ok(Engine::Linearizable),
            "causal" => Ok(Engine::Causal),
            _ => Err(CatalogError::Engine { name: String::from(name) }),
        }
    }
}

/// A keyspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keyspace {
    /// Its name; 1 to 64 of the letters a–z, digits, `-` and `_`, not beginning with a digit.
    pub name: String,
    /// The lane that serves it on every node.
    pub lane: LaneId,
    /// Its protocol.
    pub engine: Engine,
    /// How durable its data is.
    pub durability: Durability,
    /// The longest value in bytes.
    pub value_bytes_max: usize,
    /// How many hosts hold each key; fewer while there are fewer hosts.
    pub replicas: u8,
    /// Where its keys stand on the ring.
    pub order: Order,
    /// What its operations wait for.
    pub mode: Mode,
    /// Whether its hosts neither send nor compare views: **not linearizable** when hosts come, go
    /// or fail. Only for measuring what consistent quorums cost.
    pub static_views: bool,
    /// The views the cluster was born with, which cover the ring. Empty on a host that joined
    /// later: it learns from the others which groups there are.
    pub first_views: Vec<View>,
    /// Of an engine whose keyspaces have positions: all that the catalog has of it, or of one that
    /// is to be born all but its positions.
    pub placed: Option<Arc<Record>>,
}

/// Why a catalog is refused. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CatalogError {
    /// No engine has this name.
    #[error("unknown engine `{name}`; this build has: linearizable, causal")]
    Engine {
        /// The name asked for.
        name: String,
    },
    /// The keyspace's name breaks the rules of names.
    #[error(
        "keyspace name `{name}` is not allowed; use 1 to 64 of a-z, 0-9, `-` and `_`, not \
         beginning with a digit"
    )]
    Name {
        /// The name asked for.
        name: String,
    },
    /// Two keyspaces share a name or a lane.
    #[error("two keyspaces share the name or the lane of `{name}`")]
    Duplicate {
        /// The second one.
        name: String,
    },
    /// A cluster is born with at least one host that has a token.
    #[error("keyspace `{name}` has no host with a place on the ring to be born on")]
    NoHosts {
        /// The keyspace.
        name: String,
    },
    /// The number of replicas is not one of those allowed.
    #[error("keyspace `{name}`: {replicas} replicas were asked for; use 1, 3, 5 or 7")]
    Replicas {
        /// The keyspace.
        name: String,
        /// How many were asked for.
        replicas: u8,
    },
    /// A setting has a word that it does not know.
    #[error("unknown {what} `{found}`; use {allowed}")]
    Word {
        /// The setting.
        what: &'static str,
        /// The word found.
        found: String,
        /// The words it knows.
        allowed: &'static str,
    },
    /// The settings do not go together, or cannot be had with the hosts there are.
    #[error("keyspace `{name}`: {why}")]
    Settings {
        /// The keyspace.
        name: String,
        /// Why.
        why: String,
    },
    /// A group can have 1 to 7 members.
    #[error("keyspace `{name}` has {members} members; a group has 1 to 7 distinct ones")]
    Members {
        /// The keyspace.
        name: String,
        /// How many it has.
        members: usize,
    },
    /// The value limit is out of range.
    #[error("keyspace `{name}`: a value limit of {bytes} bytes is not in 1..={VALUE_BYTES_MAX}")]
    ValueLimit {
        /// The keyspace.
        name: String,
        /// The limit asked for.
        bytes: usize,
    },
}

/// How many hosts hold each key of a keyspace that does not say.
pub const REPLICAS_DEFAULT: u8 = 3;

impl Keyspace {
    /// A keyspace of a host that its cluster is born with: one group for each token of the
    /// founding hosts.
    ///
    /// # Errors
    /// The name or the number of replicas breaks a rule, or no founding host has a token.
    pub fn founded(
        name: &str,
        lane: LaneId,
        engine: Engine,
        durability: Durability,
        replicas: u8,
        ring: &Ring,
    ) -> Result<Keyspace, CatalogError> {
        if ring.tokens().len() == 0 {
            return Err(CatalogError::NoHosts { name: String::from(name) });
        }
        let mut keyspace = Keyspace::joined(name, lane, engine, durability, replicas)?;
        if engine == Engine::Linearizable {
            keyspace.first_views = placement::first_views(ring, usize::from(replicas));
        }
        Ok(keyspace)
    }

    /// A keyspace of a host that joined its cluster later, and so has no first views.
    ///
    /// # Errors
    /// The name or the number of replicas breaks a rule.
    pub fn joined(
        name: &str,
        lane: LaneId,
        engine: Engine,
        durability: Durability,
        replicas: u8,
    ) -> Result<Keyspace, CatalogError> {
        if !is_name(name) {
            return Err(CatalogError::Name { name: String::from(name) });
        }
        let is_allowed = match engine {
            Engine::Linearizable => [1, 3, 5, 7].contains(&replicas),
            Engine::Causal => (1..=GROUP_MEMBERS_MAX as u8).contains(&replicas),
        };
        if !is_allowed {
            return Err(CatalogError::Replicas { name: String::from(name), replicas });
        }
        Ok(Keyspace {
            name: String::from(name),
            lane,
            engine,
            durability,
            value_bytes_max: VALUE_BYTES_DEFAULT,
            replicas,
            order: Order::default(),
            mode: Mode::default(),
            static_views: false,
            first_views: Vec::new(),
            placed: None,
        })
    }

    /// A keyspace on one group of these nodes that serves the whole hash space, for worlds that
    /// have no ring.
    ///
    /// # Errors
    /// The name, the members or the limit break a rule.
    pub fn on_one_group(
        name: &str,
        lane: LaneId,
        engine: Engine,
        durability: Durability,
        members: &[NodeId],
    ) -> Result<Keyspace, CatalogError> {
        let mut distinct = Vec::from(members);
        distinct.sort_unstable();
        distinct.dedup();
        if distinct.len() != members.len() || !(1..=GROUP_MEMBERS_MAX).contains(&members.len()) {
            return Err(CatalogError::Members { name: String::from(name), members: members.len() });
        }
        let first_view = View::new(ViewId::default(), Range::ALL, distinct);
        let mut keyspace = Keyspace::joined(name, lane, engine, durability, REPLICAS_DEFAULT)?;
        keyspace.replicas = members.len() as u8;
        keyspace.first_views.push(first_view);
        Ok(keyspace)
    }

    /// Sets where its keys stand on the ring, and what its operations wait for.
    #[must_use]
    pub fn with_order_and_mode(self, order: Order, mode: Mode) -> Keyspace {
        Keyspace { order, mode, ..self }
    }

    /// Sets the longest value.
    ///
    /// # Errors
    /// The limit is out of range.
    pub fn with_value_bytes_max(mut self, bytes: usize) -> Result<Keyspace, CatalogError> {
        if !(1..=VALUE_BYTES_MAX).contains(&bytes) {
            return Err(CatalogError::ValueLimit { name: self.name, bytes });
        }
        self.value_bytes_max = bytes;
        Ok(self)
    }
}

/// The keyspaces of a cluster, in the order in which doors number them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Catalog {
    /// The keyspaces.
    pub keyspaces: Vec<Keyspace>,
}

impl Catalog {
    /// Adds a keyspace.
    ///
    /// # Errors
    /// Its name or lane is taken.
    pub fn add(&mut self, keyspace: Keyspace) -> Result<(), CatalogError> {
        let taken = |other: &Keyspace| other.name == keyspace.name || other.lane == keyspace.lane;
        if self.keyspaces.iter().any(taken) {
            return Err(CatalogError::Duplicate { name: keyspace.name });
        }
        self.keyspaces.push(keyspace);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use quorate_kernel::ids::{Incarnation, Start};
    use quorate_kernel::ring::{RingHost, Standing};

    fn keyspace(name: &str, members: &[u64]) -> Result<Keyspace, CatalogError> {
        let members: Vec<NodeId> = members.iter().copied().map(NodeId).collect();
        Keyspace::on_one_group(name, LaneId(1), Engine::Linearizable, Durability::Sync, &members)
    }

    #[test]
    fn names_members_and_limits_are_checked() {
        assert!(keyspace("default", &[1, 2, 3]).is_ok());
        for name in ["", "9lives", "Upper", "with space", &"x".repeat(65)] {
            assert!(matches!(keyspace(name, &[1]), Err(CatalogError::Name { .. })), "{name}");
        }
        for members in [&[][..], &[1, 1], &[1, 2, 3, 4, 5, 6, 7, 8]] {
            assert!(matches!(keyspace("k", members), Err(CatalogError::Members { .. })));
        }
        let limited = keyspace("k", &[1]).and_then(|k| k.with_value_bytes_max(0));
        assert!(matches!(limited, Err(CatalogError::ValueLimit { .. })));
    }

    #[test]
    fn a_founded_keyspace_covers_the_ring_and_a_joined_one_waits_to_learn() {
        let host = |node: u64| RingHost {
            who: Incarnation { node: NodeId(node), start: Start(0) },
            address: String::new(),
            zone: String::new(),
            tokens: Vec::from([node << 60]),
            standing: Standing::Up,
            is_suspected: false,
        };
        let ring = Ring::new(1, (1..=5).map(host).collect());
        let found = |replicas, ring: &Ring| {
            let (lane, engine) = (LaneId(1), Engine::Linearizable);
            Keyspace::founded("k", lane, engine, Durability::Sync, replicas, ring)
        };
        let views = found(3, &ring).expect("valid").first_views;
        assert_eq!(views.len(), 5);
        assert!(views.iter().all(|view| view.members().len() == 3));
        let wide = found(7, &ring).expect("valid");
        assert!(wide.first_views.iter().all(|view| view.members().len() == 5), "all there are");
        assert!(matches!(found(2, &ring), Err(CatalogError::Replicas { replicas: 2, .. })));
        assert!(matches!(found(3, &Ring::default()), Err(CatalogError::NoHosts { .. })));
        let joined = Keyspace::joined("k", LaneId(1), Engine::Linearizable, Durability::Sync, 3);
        assert!(joined.expect("valid").first_views.is_empty());
    }

    #[test]
    fn order_and_mode_read_what_they_print() {
        for order in [Order::Hash, Order::Key] {
            assert_eq!(order.to_string().parse(), Ok(order));
        }
        for mode in [Mode::Atomic, Mode::Eventual] {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        let error = "sorted".parse::<Order>().expect_err("no order");
        assert_eq!(error.to_string(), "unknown order `sorted`; use hash or key");
    }

    #[test]
    fn a_name_is_given_once() {
        let mut catalog = Catalog::default();
        assert!(catalog.add(keyspace("a", &[1]).expect("valid")).is_ok());
        let again = catalog.add(keyspace("a", &[1]).expect("valid"));
        assert_eq!(again, Err(CatalogError::Duplicate { name: "a".into() }));
        for engine in [Engine::Linearizable, Engine::Causal] {
            assert_eq!(engine.to_string().parse(), Ok(engine));
        }
        let unknown = "epidemic".parse::<Engine>();
        assert_eq!(unknown, Err(CatalogError::Engine { name: "epidemic".into() }));
    }
}
