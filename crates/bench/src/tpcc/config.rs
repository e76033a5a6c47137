//! What to run, and the same as options on the command line.

use std::time::Duration;

use clap::Args;

use crate::args::{Format, time};
use crate::config::{Extent, Stop};
use crate::error::BenchError;
use crate::tpcc::data::sizes::{SCALE_MAX, Sizes, WAREHOUSES_MAX};

/// The most terminals of a run.
const CLIENTS_MAX: u32 = 1_024;

/// The options of a TPC-C-like run.
#[derive(Clone, Debug, Args)]
pub struct TpccArgs {
    /// Addresses of the hosts' gRPC doors.
    #[arg(
        long,
        value_name = "ADDRESS,…",
        value_delimiter = ',',
        default_value = "127.0.0.1:7414,127.0.0.1:7424,127.0.0.1:7434"
    )]
    pub endpoints: Vec<String>,
    /// Keyspace for the tables, whose engine has transactions; empty, or with --no-load one that
    /// has the tables of an earlier run.
    #[arg(long, value_name = "NAME")]
    pub keyspace: String,
    /// Warehouses, which say how much data there is.
    #[arg(long, value_name = "COUNT", default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..=i64::from(WAREHOUSES_MAX)))]
    pub warehouses: u16,
    /// What customers, orders and items are divided by; at 1 they are as many as the standard has.
    #[arg(long, value_name = "DIVISOR", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(SCALE_MAX)))]
    pub scale: u32,
    /// Use tables that are there, with their warehouses and scale.
    #[arg(long, conflicts_with_all = ["warehouses", "scale"])]
    pub no_load: bool,
    /// Terminals that ask at the same time, each for one transaction after the other.
    #[arg(long, short, value_name = "COUNT", default_value_t = 16,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(CLIENTS_MAX)))]
    pub clients: u32,
    /// Length of the measured window.
    #[arg(long, value_name = "COUNT", default_value_t = 60,
        value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: u64,
    /// Transactions to measure, instead of a length of time.
    #[arg(long, value_name = "COUNT", conflicts_with = "seconds",
        value_parser = clap::value_parser!(u64).range(1..))]
    pub operations: Option<u64>,
    /// Time to run before anything counts.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = time)]
    pub warm_up: Duration,
    /// Seed of the data and of the input.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
    /// Form of the result on standard output.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// A TPC-C-like run.
#[derive(Clone, Debug)]
pub struct TpccConfig {
    /// gRPC doors as `NAME:PORT`.
    pub endpoints: Vec<String>,
    /// Where the tables are.
    pub keyspace: String,
    /// How much to load; none if the tables are there.
    pub load: Option<Sizes>,
    /// How many ask at the same time.
    pub terminals: u32,
    /// When the run ends.
    pub extent: Extent,
    /// How long to run before anything counts.
    pub warm_up: Duration,
    /// The length of one piece of the time line.
    pub interval: Duration,
    /// The seed of data and input.
    pub seed: u64,
    /// Whether to show progress, if standard error is a terminal.
    pub progress: bool,
    /// Ends the run early.
    pub stop: Stop,
}

impl TpccArgs {
    /// The run that these options ask for.
    #[must_use]
    pub fn config(self, stop: Stop) -> TpccConfig {
        let sizes = Sizes { warehouses: self.warehouses, scale: self.scale };
        TpccConfig {
            endpoints: self.endpoints,
            keyspace: self.keyspace,
            load: (!self.no_load).then_some(sizes),
            terminals: self.clients,
            extent: match self.operations {
                Some(count) => Extent::Operations(count),
                None => Extent::Time(Duration::from_secs(self.seconds)),
            },
            warm_up: self.warm_up,
            interval: Duration::from_millis(100),
            seed: self.seed,
            progress: true,
            stop,
        }
    }
}

impl TpccConfig {
    /// What is said of a keyspace that has no tables.
    pub(super) fn no_tables(&self) -> BenchError {
        let text = format!("{} has no tables of a load that ended", self.keyspace);
        BenchError::Settings(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Program {
        #[command(flatten)]
        tpcc: TpccArgs,
    }

    fn parse(line: &str) -> Result<TpccConfig, String> {
        let words = std::iter::once("tpcc").chain(line.split_whitespace());
        let program = Program::try_parse_from(words).map_err(|error| error.to_string())?;
        Ok(program.tpcc.config(Stop::default()))
    }

    #[test]
    fn a_run_has_its_settings() {
        let config = parse("--keyspace k --warehouses 4 -c 32 --seconds 10").unwrap();
        assert_eq!(config.load, Some(Sizes { warehouses: 4, scale: 1 }));
        assert_eq!((config.endpoints.len(), config.terminals), (3, 32));
        assert_eq!(config.extent, Extent::Time(Duration::from_secs(10)));
        let again = parse("--keyspace k --no-load --operations 7").unwrap();
        assert_eq!((again.load, again.extent), (None, Extent::Operations(7)));
    }

    #[test]
    fn impossible_settings_are_refused() {
        for line in [
            "",
            "--keyspace k --warehouses 17",
            "--keyspace k --warehouses 0",
            "--keyspace k --scale 101",
            "--keyspace k --no-load --scale 2",
            "--keyspace k --seconds 0",
            "--keyspace k --seconds 1 --operations 1",
            "--keyspace k --clients 0",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
