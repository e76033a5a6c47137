//! Keyspaces: what each is called, which lane serves it, what it promises, and its first view.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;
use quorate_kernel::ids::{LaneId, NodeId};
use quorate_kernel::limits::{GROUP_MEMBERS_MAX, VALUE_BYTES_DEFAULT, VALUE_BYTES_MAX};
use quorate_kernel::storage::Durability;
use quorate_kernel::view::{Range, View, ViewId};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The protocol of a keyspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// Every key an atomic register (CATS).
    Linearizable,
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Engine::Linearizable => f.write_str("linearizable"),
        }
    }
}

impl FromStr for Engine {
    type Err = CatalogError;

    fn from_str(name: &str) -> Result<Engine, CatalogError> {
        match name {
            "linearizable" => Ok(Engine::Linearizable),
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
    /// The view the cluster was born with.
    pub first_view: View,
}

/// Why a catalog is refused. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CatalogError {
    /// No engine has this name.
    #[error("unknown engine `{name}`; this build has: linearizable")]
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

impl Keyspace {
    /// A keyspace on one group of these nodes that serves the whole hash space.
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
        if !is_name(name) {
            return Err(CatalogError::Name { name: String::from(name) });
        }
        let first_view = View::new(ViewId::default(), Range::ALL, distinct);
        let name = String::from(name);
        let value_bytes_max = VALUE_BYTES_DEFAULT;
        Ok(Keyspace { name, lane, engine, durability, value_bytes_max, first_view })
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

fn is_name(name: &str) -> bool {
    let allowed =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    (1..=64).contains(&name.len())
        && name.bytes().all(allowed)
        && !name.as_bytes()[0].is_ascii_digit()
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
    fn a_name_is_given_once() {
        let mut catalog = Catalog::default();
        assert!(catalog.add(keyspace("a", &[1]).expect("valid")).is_ok());
        let again = catalog.add(keyspace("a", &[1]).expect("valid"));
        assert_eq!(again, Err(CatalogError::Duplicate { name: "a".into() }));
        assert_eq!("causal".parse::<Engine>(), Err(CatalogError::Engine { name: "causal".into() }));
    }
}
