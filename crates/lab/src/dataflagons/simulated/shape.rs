//! What is run.

use quorate_kernel::limits::CYCLON_VIEW_MAX;
use quorate_kernel::time::Span;
use quorate_protocols::epidemic::{Level, Settings};
use quorate_sim::delay::{Delay, Distribution};

/// How long messages take: log-normal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// The median, in microseconds.
    pub median_us: u64,
    /// The standard deviation of the logarithm, in percent.
    pub sigma_percent: u32,
}

impl Network {
    /// About what the paper's traces of PlanetLab show: one message in a hundred takes four times
    /// the median, 480 ms, and so almost four of the paper's rounds.
    pub const WIDE: Network = Network { median_us: 120_000, sigma_percent: 60 };
    /// One region: a message in a hundred takes 45 ms.
    pub const REGION: Network = Network { median_us: 20_000, sigma_percent: 35 };
    /// One room: a message in a hundred takes 2.3 ms.
    pub const ROOM: Network = Network { median_us: 1_000, sigma_percent: 35 };

    /// As a distribution.
    #[must_use]
    pub fn delay(self) -> Delay {
        let Network { median_us, sigma_percent } = self;
        Delay::new(&Distribution::LogNormal { median_us, sigma_percent })
    }
}

/// A cluster, its load and its faults. The seed decides all the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// How many nodes there are when it begins.
    pub nodes: usize,
    /// By which way requests go.
    pub level: Level,
    /// How many replicas must say so.
    pub acks: u8,
    /// The time of a round (δ).
    pub round: Span,
    /// K, if it does not follow the formula.
    pub fanout: Option<usize>,
    /// TTL in rounds, if it does not follow the formula.
    pub ttl: Option<u16>,
    /// How long messages take.
    pub network: Network,
    /// How many of a million messages between nodes are lost.
    pub loss_ppm: u32,
    /// How many nodes of a hundred are replaced in a minute.
    pub churn_percent: u32,
    /// How many clients ask, each one thing at a time.
    pub clients: usize,
    /// How many keys there are.
    pub keys: u32,
    /// How long values are.
    pub value_bytes: usize,
    /// How many requests of a hundred are reads.
    pub gets_percent: u32,
    /// Decides everything.
    pub seed: u64,
}

impl Shape {
    /// As the paper's evaluation (§4) has it, but for K and TTL, which follow the formulas: rounds
    /// of 125 ms, slices of 6 to 12 members, a client for ten nodes, 80 % reads, one
    /// acknowledgement, PlanetLab's latencies.
    #[must_use]
    pub fn of(nodes: usize, seed: u64) -> Shape {
        Shape {
            nodes,
            level: Level::Strong,
            acks: 1,
            round: Span::millis(125),
            fanout: None,
            ttl: None,
            network: Network::WIDE,
            loss_ppm: 0,
            churn_percent: 0,
            clients: (nodes / 10).clamp(4, 100),
            keys: 100,
            value_bytes: 100,
            gets_percent: 80,
            seed,
        }
    }

    /// What the engine is set to. It knows how much is lost.
    #[must_use]
    pub fn settings(&self) -> Settings {
        let usual = Settings::usual(self.level);
        let view = self.fanout.map_or(usual.view, |fanout| usual.view.max(fanout * 3 / 2));
        Settings {
            acks: self.acks,
            round: self.round,
            view: view.min(CYCLON_VIEW_MAX),
            surviving_ppm: 1_000_000 - self.loss_ppm,
            fanout: self.fanout,
            ttl: self.ttl,
            ..usual
        }
    }
}
