//! What to measure.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quorate_kernel::limits;

use crate::error::BenchError;
use crate::load::distribution::Distribution;
use crate::load::mixes::Workload;

/// The most connections of one client.
pub const CONNECTION_COUNT_MAX: usize = 65_536;
/// The most bytes of values that all connections may have on their way at once.
const OUTSTANDING_BYTES_MAX: usize = 4 * 1024 * 1024 * 1024;

/// What servers speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wire {
    /// Redis's protocol: keys and values.
    #[default]
    Resp,
    /// ZooKeeper's: keys are nodes below the root.
    ZooKeeper,
}

/// When operations are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Each connection sends as many commands as its pipeline is deep, waits for all the replies,
    /// and sends the next; latency is counted from the sending.
    Closed,
    /// Operations are due at a fixed rate and go to whichever connection has room; latency is
    /// counted from when an operation was due, so waiting for room is part of it.
    Open {
        /// Operations per second over all connections.
        rate_per_second: u64,
    },
}

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// After the measured window has been open this long.
    Time(Duration),
    /// When this many operations of the measured window have ended.
    Operations(u64),
}

/// A flag that ends a run early; it still reports.
#[derive(Clone, Debug, Default)]
pub struct Stop(pub Arc<AtomicBool>);

impl Stop {
    /// Whether the flag is up.
    #[must_use]
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// One measurement of one server or cluster.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where to connect to; connections take them in turn.
    pub endpoints: Vec<SocketAddr>,
    /// What is spoken there.
    pub wire: Wire,
    /// A keyspace to SELECT on each connection.
    pub keyspace: Option<String>,
    /// The mix of operations.
    pub workload: Workload,
    /// How keys are chosen.
    pub distribution: Distribution,
    /// How many keys there are at the start of the run.
    pub key_count: u64,
    /// The size of every value.
    pub value_bytes: usize,
    /// How many connections to open.
    pub connection_count: usize,
    /// How many commands a connection may have on their way.
    pub pipeline_depth: usize,
    /// When operations are sent.
    pub pace: Pace,
    /// When the run ends.
    pub extent: Extent,
    /// How long to run before anything counts.
    pub warm_up: Duration,
    /// The length of one piece of the time line.
    pub interval: Duration,
    /// Whether to write all keys first.
    pub load: bool,
    /// Whether a connection that breaks goes on at the next endpoint.
    pub reconnect: bool,
    /// Server processes whose processor time and memory are reported.
    pub server_pids: Vec<u32>,
    /// HTTP doors of hosts that are asked at the end what their disks did.
    pub http: Vec<String>,
    /// The seed of keys, values and the mix.
    pub seed: u64,
    /// Whether to show progress, if standard error is a terminal.
    pub progress: bool,
    /// Where to write plots of the run.
    pub svg: Option<PathBuf>,
    /// Ends the run early.
    pub stop: Stop,
}

impl Config {
    /// A closed loop of this workload for ten seconds on 64 connections, with YCSB's record size.
    #[must_use]
    pub fn new(endpoints: Vec<SocketAddr>, workload: Workload) -> Config {
        Config {
            endpoints,
            wire: Wire::Resp,
            keyspace: None,
            workload,
            distribution: workload.default_distribution(),
            key_count: 100_000,
            value_bytes: 1024,
            connection_count: 64,
            pipeline_depth: 1,
            pace: Pace::Closed,
            extent: Extent::Time(Duration::from_secs(10)),
            warm_up: Duration::from_secs(1),
            interval: Duration::from_millis(100),
            load: true,
            reconnect: false,
            server_pids: Vec::new(),
            http: Vec::new(),
            seed: 1,
            progress: false,
            svg: None,
            stop: Stop::default(),
        }
    }

    /// Whether these settings can be run.
    ///
    /// # Errors
    /// Says which one cannot and what it may be.
    pub fn check(&self) -> Result<(), BenchError> {
        let outstanding = self
            .connection_count
            .checked_mul(self.pipeline_depth)
            .and_then(|commands| commands.checked_mul(self.value_bytes));
        let is_positive = |time: Duration| !time.is_zero();
        let rules = [
            (!self.endpoints.is_empty(), "at least one endpoint is needed".to_owned()),
            (self.key_count > 0, "at least one key is needed".to_owned()),
            (
                self.value_bytes <= limits::VALUE_BYTES_MAX,
                format!("values have at most {} bytes", limits::VALUE_BYTES_MAX),
            ),
            (
                (1..=CONNECTION_COUNT_MAX).contains(&self.connection_count),
                format!("1 to {CONNECTION_COUNT_MAX} connections are possible"),
            ),
            (
                (1..=limits::PIPELINE_COMMANDS_MAX).contains(&self.pipeline_depth),
                format!("a pipeline is 1 to {} deep", limits::PIPELINE_COMMANDS_MAX),
            ),
            (
                outstanding.is_some_and(|bytes| bytes <= OUTSTANDING_BYTES_MAX),
                "connections × pipeline × value size is over 4 GiB".to_owned(),
            ),
            (
                self.pace != Pace::Open { rate_per_second: 0 },
                "a rate is at least one operation per second".to_owned(),
            ),
            (
                match self.extent {
                    Extent::Time(time) => is_positive(time),
                    Extent::Operations(count) => count > 0,
                },
                "a run needs a duration or a number of operations above zero".to_owned(),
            ),
            (is_positive(self.interval), "an interval is longer than zero".to_owned()),
        ];
        match rules.into_iter().find(|(holds, _)| !holds) {
            Some((_, text)) => Err(BenchError::Settings(text)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_settings_are_refused() {
        let good = Config::new(vec!["127.0.0.1:1".parse().unwrap()], Workload::A);
        assert!(good.check().is_ok());
        let changes: [fn(&mut Config); 8] = [
            |config| config.endpoints.clear(),
            |config| config.key_count = 0,
            |config| config.value_bytes = limits::VALUE_BYTES_MAX + 1,
            |config| config.connection_count = 0,
            |config| config.pipeline_depth = limits::PIPELINE_COMMANDS_MAX + 1,
            |config| config.pace = Pace::Open { rate_per_second: 0 },
            |config| config.extent = Extent::Time(Duration::ZERO),
            |config| config.interval = Duration::ZERO,
        ];
        for (index, change) in changes.iter().enumerate() {
            let mut config = good.clone();
            change(&mut config);
            assert!(config.check().is_err(), "change {index}");
        }
    }
}
