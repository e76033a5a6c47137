//! The options of the command line, and what it prints.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;

use crate::config::{Config, Extent, Pace, Stop, Wire};
use crate::error::BenchError;
use crate::load::distribution::Distribution;
use crate::load::mixes::Workload;
use crate::rounds::ceiling::ceiling;
use crate::rounds::ceiling_args::CeilingArgs;
use crate::rounds::compare::compare;
use crate::rounds::compare_args::CompareArgs;
use crate::run::run;
use crate::tpcc::config::TpccArgs;
use crate::tpcc::report::TpccReport;
use crate::tpcc::run::tpcc;
use crate::zookeeper::args::ZooKeeperArgs;

/// What a process that the user interrupted answers.
const INTERRUPTED: u8 = 130;
/// What a process answers whose check found a violation, here as elsewhere.
const VIOLATED: u8 = 8;

/// How a result is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// For programs: one JSON object whose field names are stable.
    Json,
}

/// Measure a server that speaks RESP, this one or any other, or transactions.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct BenchCommand {
    #[command(subcommand)]
    mode: Option<Mode>,
    #[command(flatten)]
    run: BenchArgs,
}

#[derive(Debug, Subcommand)]
enum Mode {
    /// Measure a cluster and a redis-server in turn and print medians and ratios.
    Compare(Box<CompareArgs>),
    /// Measure clusters in turn and print what an operation costs their processors.
    Ceiling(Box<CeilingArgs>),
    /// Run TPC-C's transactions over the native API and check its consistency conditions.
    #[command(after_help = "Example: quorate bench tpcc --keyspace NAME --warehouses 4 \
                            --clients 32 --seconds 60")]
    Tpcc(Box<TpccArgs>),
    /// Measure the engine `coordination` over ZooKeeper's wire, and ZooKeeper in turn.
    #[command(after_help = "Example: quorate bench zookeeper --peer JARS -w set --outstanding 1")]
    Zookeeper(Box<ZooKeeperArgs>),
}

/// The options of one measurement.
#[derive(Clone, Debug, Args)]
pub struct BenchArgs {
    /// Addresses of the servers; connections are spread over them in turn.
    #[arg(long, value_name = "ADDRESS,…", value_delimiter = ',', default_value = "127.0.0.1:6379",
        value_parser = endpoint)]
    pub endpoints: Vec<SocketAddr>,
    /// Keyspace to SELECT on each connection, by name or number.
    #[arg(long, value_name = "NAME")]
    pub keyspace: Option<String>,
    /// Mix of operations.
    #[arg(long, short, value_enum, default_value = "a")]
    pub workload: Workload,
    /// How keys are chosen; the workload's own distribution if not given.
    #[arg(long, value_enum)]
    pub distribution: Option<Distribution>,
    /// What the load phase writes and the run works on.
    #[command(flatten)]
    pub data: DataArgs,
    /// Commands each connection has on its way.
    #[arg(long, short = 'P', value_name = "COUNT", default_value_t = 1)]
    pub pipeline: usize,
    /// Operations per second that are due over all connections (an open loop: latency counts from
    /// when an operation was due); without it, each connection waits for its replies.
    #[arg(long, value_name = "PER_SECOND")]
    pub rate: Option<u64>,
    /// Length of the measured window, for example 10s, 500ms or 2m.
    #[arg(long, short, value_name = "TIME", default_value = "10s", value_parser = time)]
    pub duration: Duration,
    /// Operations to measure, instead of a length of time.
    #[arg(long, value_name = "COUNT", conflicts_with = "duration")]
    pub operations: Option<u64>,
    /// Time to run before anything counts.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time)]
    pub warm_up: Duration,
    /// Length of one piece of the time line.
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = time)]
    pub interval: Duration,
    /// Skip the load phase: the keys are there already.
    #[arg(long)]
    pub no_load: bool,
    /// Go on at the next endpoint when a connection breaks.
    #[arg(long)]
    pub reconnect: bool,
    /// Server processes whose CPU time and memory are reported.
    #[arg(long, value_name = "PID,…", value_delimiter = ',')]
    pub pids: Vec<u32>,
    /// HTTP doors of the hosts, which are asked at the end what their disks did in the longest
    /// times without a success.
    #[arg(long, value_name = "ADDRESS,…", value_delimiter = ',')]
    pub http: Vec<String>,
    /// File for plots of the run, as SVG.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Form of the result on standard output.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// The options that a measurement and a comparison share.
#[derive(Clone, Debug, Args)]
pub struct DataArgs {
    /// Keys that exist when the run begins.
    #[arg(long, value_name = "COUNT", default_value_t = 100_000)]
    pub keys: u64,
    /// Size of every value in bytes; values are random and do not compress.
    #[arg(long, value_name = "BYTES", default_value_t = 1024)]
    pub value_size: usize,
    /// Connections.
    #[arg(long, short, value_name = "COUNT", default_value_t = 64)]
    pub connections: usize,
    /// Seed of keys, values and the order of operations.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
}

impl BenchCommand {
    /// Measures or compares, and prints the result or the error.
    #[must_use]
    pub fn main(self) -> ExitCode {
        let stop = Stop::default();
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            if let Err(source) = signal_hook::flag::register(signal, Arc::clone(&stop.0)) {
                let error = BenchError::System { action: "listen for signals", source };
                return fail(&error);
            }
        }
        match self.mode {
            None => {
                let format = self.run.format;
                finish(run(&self.run.config(stop)), format)
            }
            Some(Mode::Compare(args)) => {
                let format = args.format;
                finish(args.config(stop).and_then(|config| compare(&config)), format)
            }
            Some(Mode::Tpcc(args)) => {
                let format = args.format;
                let outcome = tpcc(&args.config(stop));
                let is_violated = outcome.as_ref().is_ok_and(TpccReport::is_violated);
                let code = finish(outcome, format);
                if is_violated { ExitCode::from(VIOLATED) } else { code }
            }
            Some(Mode::Zookeeper(args)) => {
                let format = args.format;
                finish(args.measure(stop), format)
            }
            Some(Mode::Ceiling(args)) => {
                let format = args.format;
                finish(args.config(stop).and_then(|config| ceiling(&config)), format)
            }
        }
    }
}

impl BenchArgs {
    /// The measurement that these options ask for.
    #[must_use]
    pub fn config(self, stop: Stop) -> Config {
        let distribution = self.distribution.unwrap_or(self.workload.default_distribution());
        Config {
            endpoints: self.endpoints,
            wire: Wire::Resp,
            keyspace: self.keyspace,
            workload: self.workload,
            distribution,
            key_count: self.data.keys,
            value_bytes: self.data.value_size,
            connection_count: self.data.connections,
            pipeline_depth: self.pipeline,
            pace: match self.rate {
                Some(rate_per_second) => Pace::Open { rate_per_second },
                None => Pace::Closed,
            },
            extent: match self.operations {
                Some(count) => Extent::Operations(count),
                None => Extent::Time(self.duration),
            },
            warm_up: self.warm_up,
            interval: self.interval,
            load: !self.no_load,
            reconnect: self.reconnect,
            server_pids: self.pids,
            http: self.http,
            seed: self.data.seed,
            progress: true,
            svg: self.svg,
            stop,
        }
    }
}

/// Prints a result or an error.
fn finish<T>(outcome: Result<T, BenchError>, format: Format) -> ExitCode
where
    T: Serialize + std::fmt::Display,
{
    let printed = outcome.map(|result| match format {
        Format::Text => result.to_string(),
        Format::Json => {
            serde_json::to_string(&result).expect("a report has only string keys and numbers")
        }
    });
    match printed {
        Ok(text) => {
            println!("{}", text.trim_end());
            ExitCode::SUCCESS
        }
        Err(BenchError::Interrupted) => ExitCode::from(INTERRUPTED),
        Err(error) => fail(&error),
    }
}

fn fail(error: &BenchError) -> ExitCode {
    eprintln!("error: {error}");
    ExitCode::FAILURE
}

/// An address with a port; a name stands for the first address it has.
pub(crate) fn endpoint(text: &str) -> Result<SocketAddr, String> {
    let mut addresses = text.to_socket_addrs().map_err(|error| error.to_string())?;
    addresses.next().ok_or_else(|| format!("{text} has no address"))
}

/// A length of time: a number and one of `ms`, `s` and `m`; seconds without one.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let millis_per_unit = match &text[digits.len()..] {
        "ms" => 1.0,
        "s" | "" => 1e3,
        "m" => 60e3,
        unit => return Err(format!("{unit} is none of ms, s and m")),
    };
    let number: f64 = digits.parse().map_err(|_| format!("{digits:?} is not a number"))?;
    Duration::try_from_secs_f64(number * millis_per_unit / 1e3).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Program {
        #[command(flatten)]
        bench: BenchCommand,
    }

    fn parse(line: &str) -> Result<BenchCommand, String> {
        let words = std::iter::once("bench").chain(line.split_whitespace());
        Program::try_parse_from(words).map(|one| one.bench).map_err(|error| error.to_string())
    }

    #[test]
    fn options_are_consistent() {
        use clap::CommandFactory;
        Program::command().debug_assert();
    }

    #[test]
    fn a_run_has_its_settings() {
        let line = "--endpoints 127.0.0.1:7003,127.0.0.1:7013 -w d -c 8 -P 4 --rate 500 -d 250ms \
                    --http one:7002,127.0.0.1:7012";
        let config = parse(line).unwrap().run.config(Stop::default());
        assert_eq!(config.endpoints.len(), 2);
        assert_eq!((config.workload, config.distribution), (Workload::D, Distribution::Latest));
        assert_eq!((config.connection_count, config.pipeline_depth), (8, 4));
        assert_eq!(config.http, ["one:7002", "127.0.0.1:7012"]);
        assert_eq!(config.pace, Pace::Open { rate_per_second: 500 });
        assert_eq!(config.extent, Extent::Time(Duration::from_millis(250)));
        assert!(config.load && config.check().is_ok());
        assert!(parse("--operations 5 -d 1s").is_err(), "only one of both makes sense");
        assert!(parse("--workload e").is_err(), "there is no scan to measure");
        assert!(matches!(parse("compare").unwrap().mode, Some(Mode::Compare(_))));
        assert!(parse("-c 3 compare").is_err(), "its options come behind it");
    }

    #[test]
    fn times_are_read() {
        assert_eq!(time("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(time("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(time("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(time("3"), Ok(Duration::from_secs(3)));
        for text in ["", "s", "1h", "-1s", "1e400s"] {
            assert!(time(text).is_err(), "{text}");
        }
    }
}
