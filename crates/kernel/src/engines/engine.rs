//! What an engine is, for everything outside its folder: a value.
//!
//! Nobody asks for an engine's name to decide anything. What a keyspace can do follows from
//! [`Engine::can`], where its data lies from [`Engine::placement`], how it is set from
//! [`Engine::settings`]; what serves it is made by [`Engine::open`].

use crate::ids::ClusterId;
use crate::keyspace::{CatalogRefusal, Keyspace, Settings};
use crate::lane::Lane;
use crate::operation::Operation;
use crate::rules::Setting;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

/// All that a host must know of a replication protocol to serve keyspaces with it.
#[derive(Clone, Copy, Debug)]
pub struct Engine {
    /// Its name, as keyspaces have it.
    pub name: &'static str,
    /// How the data of its keyspaces is spread over the hosts.
    pub placement: Placement,
    /// Its settings; `replicas`, `durability` and `value` are among them, and `partitions` if it is
    /// placed by them.
    pub settings: &'static [Setting],
    /// The numbers of [`Pace`] that it reads.
    pub numbers: &'static [&'static str],
    /// What clients can do with its keyspaces.
    pub can: &'static [Capability],
    /// What a listing of keys promises.
    pub listing: Listing,
    /// How many of the hosts that hold a part of the data it takes to read, write and change it;
    /// one at least.
    pub quorum: fn(usize) -> usize,
    /// Where a key stands among the 2^64 tokens, in a keyspace that is set like this.
    pub token: fn(&Settings, &[u8]) -> u64,
    /// What operations of a keyspace that is set like this wait for: `atomic`, `eventual` or
    /// `any replica`.
    pub mode: fn(&Settings) -> &'static str,
    /// Makes what serves a keyspace on one node.
    pub open: fn(&Opening<'_>) -> Result<Box<dyn Lane>, CatalogRefusal>,
}

/// How the data of a keyspace is spread over the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// By groups that follow the tokens of the ring; each looks after its own members.
    Groups,
    /// By fixed partitions, which the catalog gives to hosts.
    Partitions,
    /// Not at all: every host has all of it.
    Everywhere,
}

/// What clients can do with a keyspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Capability {
    /// Read, write and delete one value for each key.
    Values,
    /// Read all values that were written side by side, and replace those that were read.
    Siblings,
    /// Choose for each read how many replicas answer it.
    Replies,
    /// List the keys.
    Listing,
    /// Be told how a read was served.
    Explaining,
    /// Read and write several keys in one step.
    Transactions,
    /// Change a value where it stands: add to a number, append.
    Changes,
    /// Have keys that end by themselves.
    Expiry,
    /// Have a tree of nodes, sessions, and nodes that end with these.
    Tree,
    /// Be given receipts: a place in the order, and how many replicas have said so. Where a
    /// keyspace has no order clients choose versions.
    Receipts,
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Capability::Values => "plain values",
            Capability::Siblings => "values side by side",
            Capability::Replies => "reads of a chosen number of replicas",
            Capability::Listing => "listings of keys",
            Capability::Explaining => "explanations",
            Capability::Transactions => "transactions",
            Capability::Changes => "changes in place",
            Capability::Expiry => "expiry",
            Capability::Tree => "trees",
            Capability::Receipts => "receipts",
        })
    }
}

/// What a listing of a keyspace's keys promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listing {
    /// Whether a key that is there throughout is surely listed.
    pub is_complete: bool,
    /// The promise in words.
    pub text: &'static str,
}

/// What a node knows when it opens a keyspace.
#[derive(Clone, Copy, Debug)]
pub struct Opening<'a> {
    /// The keyspace as the catalog has it.
    pub keyspace: &'a Keyspace,
    /// Drawn when the cluster was made; the same on all its hosts.
    pub cluster: ClusterId,
    /// The key that signs what clients carry from host to host; the same on all hosts.
    pub signing_key: [u8; 32],
    /// How fast and how often is done what nobody waits for.
    pub pace: &'a Pace,
}

/// How fast and how often is done what nobody waits for, where it is not as usual: numbers by
/// names, times in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pace(BTreeMap<&'static str, u64>);

impl Pace {
    /// The same, but for this number.
    #[must_use]
    pub fn with(mut self, name: &'static str, number: u64) -> Pace {
        self.0.insert(name, number);
        self
    }

    /// A number, if it is not the usual one.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
    }
}

impl Engine {
    /// Whether its keyspaces can do this.
    #[must_use]
    pub fn can(&self, capability: Capability) -> bool {
        self.can.contains(&capability)
    }

    /// What an operation needs that its keyspaces cannot do, if there is anything.
    #[must_use]
    pub fn lacks(&self, operation: &Operation) -> Option<Capability> {
        operation.needs().find(|needs| !self.can(*needs))
    }
}

/// A keyspace and what serves it.
#[derive(Clone, Debug)]
pub struct Served {
    /// The keyspace as the catalog has it.
    pub keyspace: Arc<Keyspace>,
    /// The one that the keyspace names; it never changes.
    pub engine: &'static Engine,
    /// All engines that there are.
    pub(crate) engines: &'static [&'static Engine],
    /// The longest value in bytes that it takes.
    pub value_bytes_max: usize,
}

impl Served {
    /// A keyspace of this engine, one of these.
    #[must_use]
    pub fn new(
        keyspace: Arc<Keyspace>,
        engine: &'static Engine,
        engines: &'static [&'static Engine],
    ) -> Served {
        let value_bytes_max = keyspace.value_bytes_max();
        Served { keyspace, engine, engines, value_bytes_max }
    }

    /// The keyspace with its engine, one of these.
    ///
    /// # Errors
    /// None of them is its engine, or the engine cannot read its settings.
    pub fn of(
        keyspace: &Arc<Keyspace>,
        engines: &'static [&'static Engine],
    ) -> Result<Served, CatalogRefusal> {
        let engine = find(engines, &keyspace.engine)?;
        engine.check(&keyspace.settings)?;
        Ok(Served::new(Arc::clone(keyspace), engine, engines))
    }

    /// Whether clients can do this with it.
    #[must_use]
    pub fn can(&self, capability: Capability) -> bool {
        self.engine.can(capability)
    }

    /// Whether its keys stand in the order of their bytes, so that neighbours are listed together.
    #[must_use]
    pub fn is_ordered(&self) -> bool {
        self.keyspace.setting("order") == "key"
    }

    /// How its keys stand: `hash` or `key`.
    #[must_use]
    pub fn order(&self) -> &'static str {
        if self.is_ordered() { "key" } else { "hash" }
    }

    /// What its operations wait for: `atomic`, `eventual` or `any replica`.
    #[must_use]
    pub fn mode(&self) -> &'static str {
        (self.engine.mode)(&self.keyspace.settings)
    }

    /// Where a key stands among the 2^64 tokens.
    #[must_use]
    pub fn token(&self, key: &[u8]) -> u64 {
        (self.engine.token)(&self.keyspace.settings, key)
    }
}

/// The engine of a name.
///
/// # Errors
/// None of these has it.
pub fn find(engines: &[&'static Engine], name: &str) -> Result<&'static Engine, CatalogRefusal> {
    engines.iter().copied().find(|engine| engine.name == name).ok_or_else(|| {
        let known: Vec<&str> = engines.iter().map(|engine| engine.name).collect();
        CatalogRefusal::Engine { name: String::from(name), known: known.join(", ") }
    })
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// An engine that can nothing, for tests of its rules.
    pub const ENGINE: Engine = Engine {
        name: "fast",
        placement: Placement::Groups,
        settings: &[],
        numbers: &[],
        can: &[],
        listing: Listing { is_complete: true, text: "" },
        quorum: |_| 1,
        token: |_, _| 0,
        mode: |_| "eventual",
        open: |_| Err(CatalogRefusal::NotLearnt),
    };
}
