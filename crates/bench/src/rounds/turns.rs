//! Servers that are measured in turn, so that what disturbs the machine disturbs all alike.

use std::net::SocketAddr;
use std::path::Path;

use crate::config::{Config, Stop, Wire};
use crate::error::BenchError;
use crate::load::distribution::Distribution;
use crate::load::mixes::Workload;
use crate::report::findings::Report;
use crate::rounds::child::Server;
use crate::run::{load, run};
use crate::zookeeper::ensemble::{Ensemble, EnsembleConfig};

/// A server to measure.
#[derive(Clone, Debug)]
pub enum Target {
    /// It runs already.
    Running {
        /// What to call it.
        name: String,
        /// Its addresses.
        endpoints: Vec<SocketAddr>,
        /// Its processes, if their usage is of interest.
        pids: Vec<u32>,
    },
    /// A redis-server to start, without persistence.
    Redis {
        /// The executable.
        program: String,
        /// Its port on 127.0.0.1.
        port: u16,
    },
    /// A cluster to start, with a command whose first line of output is the JSON of `dev`.
    Cluster {
        /// What to call it.
        name: String,
        /// The executable.
        program: String,
        /// Its arguments; `{directory}` in them becomes a new empty directory.
        arguments: Vec<String>,
    },
    /// An ensemble of ZooKeeper's servers to start.
    Ensemble(EnsembleConfig),
}

/// A target that runs, for as long as this value lives.
pub(crate) struct Live {
    pub name: String,
    pub endpoints: Vec<SocketAddr>,
    pub pids: Vec<u32>,
    _server: Option<Running>,
}

/// What was started, and stops when dropped.
enum Running {
    One { _server: Server },
    Several { _ensemble: Ensemble },
}

impl Target {
    /// A cluster to start with this executable, or with the one that runs.
    ///
    /// # Errors
    /// The path of the executable that runs is needed and unknown.
    pub(crate) fn dev(
        name: &str,
        program: Option<&Path>,
        hosts: usize,
        durability: &str,
        port_base: u16,
        keyspace: Option<&str>,
    ) -> Result<Target, BenchError> {
        let program = match program {
            Some(program) => program.to_owned(),
            None => std::env::current_exe().map_err(BenchError::system("find this executable"))?,
        };
        let (hosts, port_base) = (hosts.to_string(), port_base.to_string());
        let options = [
            ["--format", "json"],
            ["--durability", durability],
            ["--hosts", &hosts],
            ["--data", "{directory}/data"],
            ["--port-base", &port_base],
        ];
        let arguments = std::iter::once("dev").chain(options.into_iter().flatten());
        let mut arguments: Vec<String> = arguments.map(str::to_owned).collect();
        if let Some(spec) = keyspace {
            arguments.extend(["--keyspace".to_owned(), format!("default={spec}")]);
        }
        let program = program.to_string_lossy().into_owned();
        Ok(Target::Cluster { name: name.to_owned(), program, arguments })
    }

    /// A cluster to start with a command, which is split at spaces.
    ///
    /// # Errors
    /// The command is empty.
    pub(crate) fn command(name: &str, command: &str) -> Result<Target, BenchError> {
        let mut words = command.split_whitespace().map(str::to_owned);
        let empty = || BenchError::Settings(format!("the command of {name} is empty"));
        let program = words.next().ok_or_else(empty)?;
        Ok(Target::Cluster { name: name.to_owned(), program, arguments: words.collect() })
    }

    /// What the server is called.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Target::Running { name, .. } | Target::Cluster { name, .. } => name,
            Target::Redis { .. } => "redis-server",
            Target::Ensemble(_) => "zookeeper",
        }
    }

    pub(crate) fn start(&self, wire: Wire, stop: &Stop) -> Result<Live, BenchError> {
        Ok(match self {
            Target::Running { name, endpoints, pids } => Live {
                name: name.clone(),
                endpoints: endpoints.clone(),
                pids: pids.clone(),
                _server: None,
            },
            Target::Redis { program, port } => {
                Live::new(self.name(), Server::redis(program, *port, stop)?)
            }
            Target::Cluster { name, program, arguments } => {
                let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
                Live::new(name, Server::cluster(program, &arguments, wire, stop)?)
            }
            Target::Ensemble(config) => {
                let ensemble = Ensemble::start(config, stop)?;
                Live {
                    name: self.name().to_owned(),
                    endpoints: ensemble.endpoints(),
                    pids: ensemble.pids(),
                    _server: Some(Running::Several { _ensemble: ensemble }),
                }
            }
        })
    }
}

impl Live {
    fn new(name: &str, server: Server) -> Live {
        Live {
            name: name.to_owned(),
            endpoints: server.endpoints.clone(),
            pids: server.pids.clone(),
            _server: Some(Running::One { _server: server }),
        }
    }
}

/// Measurements that are repeated on each of some servers.
pub(crate) struct Rounds<'a> {
    /// Mixes, each at one pipeline depth.
    pub cells: Vec<(Workload, usize)>,
    /// Overrides the distribution of each mix.
    pub distribution: Option<Distribution>,
    /// How often each cell is measured on each server.
    pub count: usize,
    /// Everything else; its endpoints, processes, mix, depth and plot are not used.
    pub base: &'a Config,
}

impl Rounds<'_> {
    /// The reports of each cell, for each server those of its rounds.
    ///
    /// Each server has all keys before the first round.
    pub(crate) fn run(&self, lives: &[Live]) -> Result<Vec<Vec<Vec<Report>>>, BenchError> {
        for live in lives {
            let config = self.config(live, self.cells[0].0, 1);
            config.check()?;
            load(&config)?;
        }
        let mut reports = vec![vec![Vec::new(); lives.len()]; self.cells.len()];
        for round in 0..self.count {
            for (&(workload, pipeline), reports) in self.cells.iter().zip(&mut reports) {
                // Who goes first alternates, so that none always has the warmer machine.
                for turn in 0..lives.len() {
                    let index = (round + turn) % lives.len();
                    let report = run(&self.config(&lives[index], workload, pipeline))?;
                    if report.interrupted {
                        return Err(BenchError::Interrupted);
                    }
                    reports[index].push(report);
                }
            }
        }
        Ok(reports)
    }

    fn config(&self, live: &Live, workload: Workload, pipeline: usize) -> Config {
        Config {
            endpoints: live.endpoints.clone(),
            server_pids: live.pids.clone(),
            workload,
            distribution: self.distribution.unwrap_or(workload.default_distribution()),
            pipeline_depth: pipeline,
            load: false,
            svg: None,
            ..self.base.clone()
        }
    }
}
