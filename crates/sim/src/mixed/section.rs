//! What a scenario says of a cluster with both engines, and the two keyspaces.

use crate::scenario::WorkloadSection;
use quorate_kernel::engine::Engine;
use quorate_kernel::ids::LaneId;
use quorate_kernel::keyspace::{KeyspaceOrder, NewKeyspace, Settings};
use quorate_kernel::storage::Durability;
use quorate_protocols::{causal, linearizable};
use serde::{Deserialize, Serialize};

/// The lane of the keyspace of registers.
pub const REGISTERS: LaneId = LaneId::KEYSPACES;
/// The lane of the keyspace of siblings.
pub const SIBLINGS: LaneId = LaneId(LaneId::KEYSPACES.0 + 1);
/// The keyspace of siblings, by name.
const NAME: &str = "siblings";

/// A cluster with a keyspace of each engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MixedSection {
    /// How many positions the keyspace of siblings has.
    pub positions: u16,
    /// How many of its replicas hold a write before it is acknowledged.
    pub w: u8,
    /// How durable it is; `sync` if it does not say.
    #[serde(default)]
    pub durability: Option<String>,
    /// How many hosts hold each of its keys, if not as many as of registers.
    #[serde(default)]
    pub replicas: Option<u8>,
    /// After how many milliseconds it is created; 0 if the cluster is born with it.
    #[serde(default)]
    pub created_ms: u64,
    /// What its clients do, if it is not what those of the keyspace of registers do.
    #[serde(default)]
    pub workload: Option<WorkloadSection>,
}

impl MixedSection {
    /// How durable the keyspace of siblings is.
    #[must_use]
    pub fn durability(&self) -> Durability {
        let level = self.durability.as_ref().map(|level| level.parse());
        level.unwrap_or(Ok(Durability::Sync)).expect("a scenario's durability was checked")
    }

    /// How many hosts hold each of its keys, where so many hold each register.
    #[must_use]
    pub fn replicas(&self, of_registers: u8) -> u8 {
        self.replicas.unwrap_or(of_registers)
    }

    fn siblings(&self, replicas: u8) -> Settings {
        let pairs = [
            ("replicas", u64::from(self.replicas(replicas))),
            ("positions", u64::from(self.positions)),
            ("w", u64::from(self.w)),
            ("sync_interval_ms", 100),
            ("strip_interval_ms", 100),
        ];
        let numbers = pairs.iter().map(|(name, value)| ((*name).to_owned(), value.to_string()));
        let durability = ("durability".to_owned(), self.durability().to_string());
        numbers.chain([durability]).collect()
    }

    /// What the cluster is born with.
    pub(super) fn founded(&self, replicas: u8) -> Vec<NewKeyspace> {
        let words = Settings::from([("replicas".to_owned(), replicas.to_string())]);
        let registers = linearizable::ENGINE.complete(&words);
        let siblings = causal::ENGINE.complete(&self.siblings(replicas));
        let founded = |name: &str, engine: &Engine, settings| NewKeyspace {
            name: name.to_owned(),
            engine: engine.name.to_owned(),
            settings,
        };
        let checked = "a scenario's replicas and positions were checked";
        let registers = registers.expect(checked);
        let mut all = vec![founded("registers", &linearizable::ENGINE, registers)];
        if self.created_ms == 0 {
            all.push(founded(NAME, &causal::ENGINE, siblings.expect(checked)));
        }
        all
    }

    /// What makes the keyspace of siblings where the cluster was born without.
    pub(super) fn creation(&self, replicas: u8) -> KeyspaceOrder {
        let (name, engine) = (NAME.to_owned(), causal::ENGINE.name.to_owned());
        KeyspaceOrder::Create(NewKeyspace { name, engine, settings: self.siblings(replicas) })
    }

    /// What contradicts itself, if anything does.
    #[must_use]
    pub fn problem(&self, replicas: u8) -> Option<&'static str> {
        let replicas = self.replicas(replicas);
        let is_round = self.positions > 0 && self.positions.is_multiple_of(u16::from(replicas));
        let level = self.durability.as_ref().map(|level| level.parse::<Durability>());
        if level.is_some_and(|level| level.is_err()) {
            Some("the durability of siblings is no level")
        } else if !is_round {
            Some("positions must be a multiple of the replicas")
        } else if !(1..=replicas).contains(&self.w) {
            Some("w must be 1 to the number of replicas")
        } else {
            None
        }
    }
}
