//! The options of a comparison on the command line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::args::{DataArgs, Format, endpoint, time};
use crate::config::{Config, Extent, Stop};
use crate::error::BenchError;
use crate::load::distribution::Distribution;
use crate::load::mixes::Workload;
use crate::rounds::compare::CompareConfig;
use crate::rounds::turns::Target;

/// The options of a comparison with redis-server.
#[derive(Clone, Debug, Args)]
pub struct CompareArgs {
    /// Executable to start the cluster with; this one if not given.
    #[arg(long, value_name = "FILE")]
    pub quorate: Option<PathBuf>,
    /// Hosts of the cluster.
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    pub hosts: usize,
    /// First port of the cluster.
    #[arg(long, value_name = "PORT", default_value_t = 7610)]
    pub port_base: u16,
    /// Durability of the cluster: memory, periodic or sync.
    #[arg(long, value_name = "LEVEL", default_value = "memory")]
    pub durability: String,
    /// Keyspace of the cluster that is measured, in place of the usual ones: ENGINE and settings,
    /// such as causal,replicas=1,siblings=newest.
    #[arg(long, value_name = "SPEC", conflicts_with_all = ["command", "endpoints"])]
    pub keyspace: Option<String>,
    /// Command that starts the cluster instead, split at spaces; its first line of output must be
    /// the JSON of `dev`, and {directory} in it becomes a new empty directory.
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["quorate", "endpoints"])]
    pub command: Option<String>,
    /// Addresses of a cluster that runs already.
    #[arg(long, value_name = "ADDRESS,…", value_delimiter = ',', value_parser = endpoint)]
    pub endpoints: Vec<SocketAddr>,
    /// Processes of that cluster.
    #[arg(long, value_name = "PID,…", value_delimiter = ',', requires = "endpoints")]
    pub pids: Vec<u32>,
    /// Connect to the first host of the cluster only.
    #[arg(long)]
    pub first_host_only: bool,
    /// Executable of redis-server.
    #[arg(long, value_name = "FILE", default_value = "redis-server")]
    pub redis: String,
    /// Port for redis-server.
    #[arg(long, value_name = "PORT", default_value_t = 7609)]
    pub redis_port: u16,
    /// Address of a redis-server that runs already.
    #[arg(long, value_name = "ADDRESS", value_parser = endpoint)]
    pub redis_endpoint: Option<SocketAddr>,
    /// Process of that redis-server.
    #[arg(long, value_name = "PID", requires = "redis_endpoint")]
    pub redis_pid: Option<u32>,
    /// Mixes of operations to run.
    #[arg(long, value_name = "NAME,…", value_enum, value_delimiter = ',',
        default_values = ["set", "get"])]
    pub workloads: Vec<Workload>,
    /// How keys are chosen; each workload's own distribution if not given.
    #[arg(long, value_enum)]
    pub distribution: Option<Distribution>,
    /// What the load phase writes and the runs work on.
    #[command(flatten)]
    pub data: DataArgs,
    /// Pipeline depths to run each mix with.
    #[arg(long, value_name = "COUNT,…", value_delimiter = ',', default_values_t = [1, 16])]
    pub pipelines: Vec<usize>,
    /// How often each row is measured on each server.
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    pub rounds: usize,
    /// Length of each measured window.
    #[arg(long, short, value_name = "TIME", default_value = "3s", value_parser = time)]
    pub duration: Duration,
    /// Time to run before each window.
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = time)]
    pub warm_up: Duration,
    /// Form of the result on standard output.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

impl CompareArgs {
    /// The comparison that these options ask for.
    ///
    /// # Errors
    /// The path of this executable is needed and unknown.
    pub fn config(self, stop: Stop) -> Result<CompareConfig, BenchError> {
        let left = self.cluster()?;
        let right = match self.redis_endpoint {
            Some(endpoint) => Target::Running {
                name: "redis-server".to_owned(),
                endpoints: vec![endpoint],
                pids: self.redis_pid.into_iter().collect(),
            },
            None => Target::Redis { program: self.redis, port: self.redis_port },
        };
        let base = Config {
            key_count: self.data.keys,
            value_bytes: self.data.value_size,
            connection_count: self.data.connections,
            extent: Extent::Time(self.duration),
            warm_up: self.warm_up,
            seed: self.data.seed,
            progress: true,
            stop,
            ..Config::new(Vec::new(), Workload::Set)
        };
        Ok(CompareConfig {
            left,
            right,
            first_endpoint_only: self.first_host_only,
            workloads: self.workloads,
            distribution: self.distribution,
            pipeline_depths: self.pipelines,
            round_count: self.rounds,
            base,
        })
    }

    fn cluster(&self) -> Result<Target, BenchError> {
        let name = "quorate";
        if !self.endpoints.is_empty() {
            let (endpoints, pids) = (self.endpoints.clone(), self.pids.clone());
            return Ok(Target::Running { name: name.to_owned(), endpoints, pids });
        }
        if let Some(command) = &self.command {
            return Target::command(name, command);
        }
        let (program, keyspace) = (self.quorate.as_deref(), self.keyspace.as_deref());
        Target::dev(name, program, self.hosts, &self.durability, self.port_base, keyspace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Program {
        #[command(flatten)]
        compare: CompareArgs,
    }

    fn parse(line: &str) -> CompareConfig {
        let words = std::iter::once("compare").chain(line.split_whitespace());
        let program = Program::try_parse_from(words).unwrap();
        program.compare.config(Stop::default()).unwrap()
    }

    #[test]
    fn a_comparison_has_its_settings() {
        let config =
            parse("--hosts 5 --redis-port 1 --quorate target/quorate --keyspace causal,w=1");
        assert_eq!(config.workloads, [Workload::Set, Workload::Get]);
        assert_eq!(config.pipeline_depths, [1, 16]);
        let Target::Cluster { program, arguments, .. } = &config.left else {
            panic!("it is started");
        };
        assert_eq!(program, "target/quorate");
        let line = arguments.join(" ");
        assert!(line.starts_with("dev --format json --durability memory --hosts 5"), "{line}");
        assert!(line.ends_with("--keyspace default=causal,w=1"), "{line}");
        assert!(matches!(config.right, Target::Redis { port: 1, .. }));
    }

    #[test]
    fn servers_that_run_are_used() {
        let config = parse("--endpoints 127.0.0.1:1,127.0.0.1:2 --pids 7 --redis-endpoint [::1]:3");
        let Target::Running { endpoints, pids, .. } = &config.left else {
            panic!("it runs already");
        };
        assert_eq!((endpoints.len(), pids.as_slice()), (2, [7].as_slice()));
        assert!(matches!(config.right, Target::Running { .. }));
    }
}
