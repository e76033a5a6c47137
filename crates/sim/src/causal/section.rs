//! What a scenario says of a keyspace that keeps siblings.

use quorate_protocols::causal::Limits;
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
    /// How many replicas answer a get.
    #[serde(default = "one")]
    pub r: u8,
    /// How many of a million puts have names, and are sent again to another host.
    #[serde(default)]
    pub named_ppm: u32,
    /// How much one message tells, and how much is remembered.
    #[serde(default)]
    pub limits: LimitsSection,
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

/// Limits that a small world can reach; those of a real one where nothing is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitsSection {
    page_bytes: Option<usize>,
    scan_keys: Option<usize>,
    clock_ranges: Option<usize>,
    names: Option<usize>,
}

impl LimitsSection {
    /// As the engine takes them.
    pub(super) fn limits(&self) -> Limits {
        let usual = Limits::default();
        Limits {
            page_bytes: self.page_bytes.unwrap_or(usual.page_bytes),
            scan_keys: self.scan_keys.unwrap_or(usual.scan_keys),
            clock_ranges: self.clock_ranges.unwrap_or(usual.clock_ranges),
            names: self.names.unwrap_or(usual.names),
            rest_intervals: usual.rest_intervals,
        }
    }
}

fn one() -> u8 {
    1
}

fn yes() -> bool {
    true
}

fn sync_ms() -> u64 {
    100
}
