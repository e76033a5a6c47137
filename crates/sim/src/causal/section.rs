//! What a scenario says of a keyspace that keeps siblings.

use serde::{Deserialize, Serialize};

/// A keyspace of the engine `causal`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CausalSection {
    /// How many positions.
    pub positions: u16,
    /// How replicas find what they lack.
    #[serde(default)]
    pub anti_entropy: AntiEntropy,
    /// How many replicas hold a write before it is acknowledged.
    pub w: u8,
    /// Whether a write is sent to the other replicas at once.
    #[serde(default = "yes")]
    pub replicate_on_write: bool,
    /// Whether gets repair replicas that are behind.
    #[serde(default)]
    pub read_repair: bool,
    /// Between two exchanges of a replica, in milliseconds.
    #[serde(default = "sync_ms")]
    pub sync_ms: u64,
    /// Between two passes over contexts, in milliseconds.
    #[serde(default = "sync_ms")]
    pub strip_ms: u64,
    /// A host is replaced so often, in milliseconds; 0 for never.
    #[serde(default)]
    pub churn_ms: u64,
}

/// How replicas find what they lack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AntiEntropy {
    /// They compare node clocks: the engine `causal`.
    #[default]
    Clocks,
    /// They compare hash trees: the lab's baseline, which acknowledges a write that one replica
    /// holds.
    Merkle,
}

fn yes() -> bool {
    true
}

fn sync_ms() -> u64 {
    100
}
