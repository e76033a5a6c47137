//! The options of a measurement over ZooKeeper's wire.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use serde::Serialize;

use crate::args::{DataArgs, Format, endpoint, time};
use crate::config::{Config, Extent, Stop, Wire};
use crate::error::BenchError;
use crate::load::mixes::Workload;
use crate::rounds::turns::Target;
use crate::zookeeper::ensemble::EnsembleConfig;
use crate::zookeeper::failover::{Failover, FailoverConfig, failover};
use crate::zookeeper::idle::{Idle, IdleConfig, idle};
use crate::zookeeper::table::{Table, TableConfig, table};

/// Nodes of a cluster whose leader is killed.
const FAILOVER_NODES: u64 = 1_000;

/// The options of a measurement over ZooKeeper's wire.
#[derive(Clone, Debug, Args)]
pub struct ZooKeeperArgs {
    /// Executable to start the cluster with; this one if not given.
    #[arg(long, value_name = "FILE")]
    pub quorate: Option<PathBuf>,
    /// Executable of another version, measured in turn.
    #[arg(long, value_name = "FILE")]
    pub other: Option<PathBuf>,
    /// Hosts of the cluster.
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    pub hosts: usize,
    /// First port of the cluster; another version begins 100 ports later.
    #[arg(long, value_name = "PORT", default_value_t = 7610)]
    pub port_base: u16,
    /// Durability of the cluster: memory, periodic or sync. ZooKeeper's is sync.
    #[arg(long, value_name = "LEVEL", default_value = "sync")]
    pub durability: String,
    /// Keyspace of the cluster, in place of the usual ones: the engine of trees, and settings.
    #[arg(long, value_name = "SPEC", conflicts_with = "endpoints")]
    pub keyspace: Option<String>,
    /// Addresses of servers that run already, instead of a cluster.
    #[arg(long, value_name = "ADDRESS,…", value_delimiter = ',', value_parser = endpoint,
        conflicts_with_all = ["quorate", "failover"])]
    pub endpoints: Vec<SocketAddr>,
    /// Processes of those servers.
    #[arg(long, value_name = "PID,…", value_delimiter = ',', requires = "endpoints")]
    pub pids: Vec<u32>,
    /// Directory with the jars of ZooKeeper and of what it needs: three of its servers are measured
    /// in turn with the cluster.
    #[arg(long, value_name = "DIR")]
    pub peer: Option<PathBuf>,
    /// First port of ZooKeeper's servers.
    #[arg(long, value_name = "PORT", default_value_t = 7900)]
    pub peer_port_base: u16,
    /// Mixes of operations to run.
    #[arg(long, short, value_name = "NAME,…", value_enum, value_delimiter = ',',
        default_values = ["set", "a", "b", "c"])]
    pub workloads: Vec<Workload>,
    /// What the load phase makes and the runs work on.
    #[command(flatten)]
    pub data: DataArgs,
    /// Requests that each connection has on their way.
    #[arg(long, value_name = "COUNT,…", value_delimiter = ',', default_values_t = [1, 25])]
    pub outstanding: Vec<usize>,
    /// How often each row is measured on each server.
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    pub rounds: usize,
    /// Length of each measured window.
    #[arg(long, short, value_name = "TIME", default_value = "5s", value_parser = time)]
    pub duration: Duration,
    /// Time to run before each window.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time)]
    pub warm_up: Duration,
    /// Instead, kill the leader's host this often under load of the first mix, and tell how long
    /// clients waited.
    #[arg(long, value_name = "TRIES")]
    pub failover: Option<usize>,
    /// Instead, have so many clients of one host do nothing, and tell what they cost.
    #[arg(long, value_name = "CLIENTS", conflicts_with = "failover",
        value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    pub idle: Option<usize>,
    /// Nodes that each of these clients watches.
    #[arg(long, value_name = "COUNT", default_value_t = 10, requires = "idle",
        value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    pub watches: usize,
    /// Form of the result on standard output.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// What was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Measured {
    /// Throughput and costs.
    Table(Table),
    /// Times without a success.
    Failover(Failover),
    /// Costs of clients that do nothing.
    Idle(Idle),
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Measured::Table(table) => table.fmt(f),
            Measured::Failover(failover) => failover.fmt(f),
            Measured::Idle(idle) => idle.fmt(f),
        }
    }
}

impl ZooKeeperArgs {
    /// Measures what these options ask for.
    ///
    /// # Errors
    /// See [`BenchError`]; servers that were started are stopped.
    pub(crate) fn measure(self, stop: Stop) -> Result<Measured, BenchError> {
        if let Some(sessions) = self.idle {
            return idle(&self.idle(sessions, stop)?).map(Measured::Idle);
        }
        match self.failover {
            Some(tries) => failover(&self.failover(tries, stop)?).map(Measured::Failover),
            None => table(&self.table(stop)?).map(Measured::Table),
        }
    }

    fn table(&self, stop: Stop) -> Result<TableConfig, BenchError> {
        let at_depth = |&depth: &usize| self.workloads.iter().map(move |&mix| (mix, depth));
        Ok(TableConfig {
            targets: self.targets()?,
            cells: self.outstanding.iter().flat_map(at_depth).collect(),
            round_count: self.rounds,
            base: self.base(stop),
        })
    }

    fn failover(&self, tries: usize, stop: Stop) -> Result<FailoverConfig, BenchError> {
        let workload = self.workloads.first().copied().unwrap_or(Workload::Set);
        let base = Config {
            workload,
            distribution: workload.default_distribution(),
            key_count: FAILOVER_NODES.min(self.data.keys),
            ..self.base(stop)
        };
        Ok(FailoverConfig { targets: self.targets()?, tries, base })
    }

    fn idle(&self, sessions: usize, stop: Stop) -> Result<IdleConfig, BenchError> {
        let (targets, watches, duration) = (self.targets()?, self.watches, self.duration);
        Ok(IdleConfig { targets, sessions, watches, duration, stop })
    }

    fn base(&self, stop: Stop) -> Config {
        Config {
            wire: Wire::ZooKeeper,
            key_count: self.data.keys,
            value_bytes: self.data.value_size,
            connection_count: self.data.connections,
            extent: Extent::Time(self.duration),
            warm_up: self.warm_up,
            seed: self.data.seed,
            progress: true,
            stop,
            ..Config::new(Vec::new(), Workload::Set)
        }
    }

    fn targets(&self) -> Result<Vec<Target>, BenchError> {
        let dev = |name, program, port_base| {
            let (durability, keyspace) = (&self.durability, self.keyspace.as_deref());
            Target::dev(name, program, self.hosts, durability, port_base, keyspace)
        };
        let first = if self.endpoints.is_empty() {
            dev("quorate", self.quorate.as_deref(), self.port_base)?
        } else {
            let (endpoints, pids) = (self.endpoints.clone(), self.pids.clone());
            Target::Running { name: "quorate".to_owned(), endpoints, pids }
        };
        let mut targets = vec![first];
        if let Some(other) = &self.other {
            targets.push(dev("other", Some(other), self.port_base + 100)?);
        }
        if let Some(jars) = &self.peer {
            let (jars, port_base) = (jars.clone(), self.peer_port_base);
            targets.push(Target::Ensemble(EnsembleConfig { jars, port_base }));
        }
        Ok(targets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Program {
        #[command(flatten)]
        args: ZooKeeperArgs,
    }

    fn parse(line: &str) -> Result<ZooKeeperArgs, String> {
        let words = std::iter::once("zookeeper").chain(line.split_whitespace());
        let program = Program::try_parse_from(words).map_err(|error| error.to_string())?;
        Ok(program.args)
    }

    #[test]
    fn a_table_has_its_settings() {
        let line = "--quorate q --keyspace k --peer jars --peer-port-base 8000 -w set,c";
        let args = parse(&format!("{line} --outstanding 1,4"));
        let config = args.unwrap().table(Stop::default()).unwrap();
        let cells = [(Workload::Set, 1), (Workload::C, 1), (Workload::Set, 4), (Workload::C, 4)];
        assert_eq!(config.cells, cells);
        assert_eq!(config.base.wire, Wire::ZooKeeper);
        let [Target::Cluster { arguments, .. }, Target::Ensemble(peer)] = &config.targets[..]
        else {
            panic!("a cluster and its peer: {:?}", config.targets);
        };
        let line = arguments.join(" ");
        assert!(line.starts_with("dev --format json --durability sync --hosts 3"), "{line}");
        assert!(line.ends_with("--keyspace default=k"), "{line}");
        assert_eq!(*peer, EnsembleConfig { jars: PathBuf::from("jars"), port_base: 8000 });
    }

    #[test]
    fn a_failover_has_few_nodes_and_the_first_mix() {
        let args = parse("--quorate q --failover 20 -w a,set").unwrap();
        let config = args.failover(20, Stop::default()).unwrap();
        assert_eq!((config.tries, config.targets.len()), (20, 1));
        assert_eq!((config.base.workload, config.base.key_count), (Workload::A, FAILOVER_NODES));
        assert!(parse("--failover 1 --endpoints 127.0.0.1:1").is_err(), "none may be killed");
    }

    #[test]
    fn idle_clients_watch_ten_nodes_each() {
        let args = parse("--quorate q --idle 20000 -d 30s").unwrap();
        let config = args.idle(20_000, Stop::default()).unwrap();
        assert_eq!((config.sessions, config.watches, config.targets.len()), (20_000, 10, 1));
        assert_eq!(config.duration, Duration::from_secs(30));
        for wrong in ["--idle 0", "--idle 1 --watches 0", "--watches 5", "--idle 1 --failover 1"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
