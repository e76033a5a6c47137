//! A real cluster for a measurement: `dev` of this executable as a child process.

use quorate_bench::{Config, Distribution, Workload};
use quorate_cli::dev::ctl::{self, Order};
use quorate_cli::exit::Failure;
use quorate_cli::provision::{self, Doors, Plan, keyspace};
use quorate_cli::verbs::cluster::membership;
use quorate_cli::verbs::hosts::server::ReadyLine;
use quorate_gateway::web::http;
use quorate_kernel::keyspace::NewKeyspace;
use quorate_kernel::storage::Durability;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long one question to a host may take.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// How often hosts are asked whether they have settled.
const AGAIN: Duration = Duration::from_millis(100);
/// How long nothing may have changed until a cluster counts as settled: longer than hosts take to
/// renew what they show.
const STILL: Duration = Duration::from_millis(1500);
/// The states of a keyspace that are zero where nothing moves.
const MOVING: [&str; 3] = ["groups_lacking_data", "transfers", "changes_wanted"];

/// A running cluster. It ends, and its data goes, with this value.
#[derive(Debug)]
pub struct Cluster {
    dev: Child,
    place: TempDir,
    port_base: u16,
    founders: Vec<ReadyLine>,
    /// The numbers of the hosts that run.
    numbers: Vec<u32>,
}

/// One keyspace of a cluster, as `--keyspace` takes it.
pub type Spec<'a> = &'a str;

impl Cluster {
    /// Starts hosts that keep their data in memory, and waits until they serve.
    ///
    /// # Errors
    /// A port is taken, or a host did not start.
    pub fn start(port_base: u16, hosts: u32, specs: &[Spec<'_>]) -> Result<Cluster, Failure> {
        let keyspaces = specs.iter().map(|spec| keyspace::parse(spec));
        let keyspaces = keyspaces.collect::<Result<_, _>>().map_err(Failure::failed)?;
        Cluster::with(port_base, hosts, keyspaces, &[])
    }

    /// The same, with keyspaces that no text describes and settings as `--set` takes them.
    ///
    /// # Errors
    /// As there, or there is no such setting.
    pub fn with(
        port_base: u16,
        hosts: u32,
        keyspaces: Vec<NewKeyspace>,
        settings: &[String],
    ) -> Result<Cluster, Failure> {
        let place = tempfile::tempdir()?;
        let data = place.path().join("data");
        let doors = (1..=hosts).map(|number| Doors::on_this_machine(port_base, number));
        let plan = Plan {
            hosts: doors.collect::<Result<_, _>>()?,
            zones: Vec::new(),
            tokens: 1,
            keyspaces,
            durability: Durability::Memory,
        };
        provision::write(&plan, &data)?;
        let log = File::create(place.path().join("dev.log"))?;
        let mut dev = Command::new(std::env::current_exe()?)
            .args(["dev", "--format", "json", "--data"])
            .arg(&data)
            .args(settings.iter().flat_map(|setting| ["--set", setting]))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()?;
        let founders = ready(&mut dev);
        let numbers = (1..=hosts).collect();
        let is_ready = founders.is_some();
        let founders = founders.unwrap_or_default();
        let cluster = Cluster { dev, founders, place, port_base, numbers };
        if !is_ready {
            let log = std::fs::read_to_string(cluster.place.path().join("dev.log"));
            let said = log.unwrap_or_default();
            return Err(Failure::failed(format!("the cluster did not start: {}", said.trim())));
        }
        Ok(cluster)
    }

    fn data(&self) -> PathBuf {
        self.place.path().join("data")
    }

    /// The RESP doors of the hosts that founded the cluster.
    #[must_use]
    pub fn endpoints(&self) -> Vec<SocketAddr> {
        self.founders.iter().map(|line| line.resp()).collect()
    }

    /// The gRPC doors of the hosts that founded the cluster.
    #[must_use]
    pub fn grpc(&self) -> Vec<String> {
        self.founders.iter().map(|line| line.grpc.to_string()).collect()
    }

    /// The processes of the hosts that founded the cluster.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        self.founders.iter().map(|line| line.pid).collect()
    }

    /// What a load generator needs to measure this cluster: uniform keys, as the paper has it.
    #[must_use]
    pub fn load(&self, workload: Workload) -> Config {
        let mut config = Config::new(self.endpoints(), workload);
        config.distribution = Distribution::Uniform;
        config.server_pids = self.processes();
        config
    }

    /// Has the cluster do something.
    ///
    /// # Errors
    /// It cannot.
    pub fn tell(&mut self, order: &Order) -> Result<(), Failure> {
        let said = ctl::tell(&self.data(), order)?;
        if !said.is_done {
            return Err(Failure::failed(said.text));
        }
        match order {
            Order::Add => self.numbers.push(self.numbers.last().map_or(1, |last| last + 1)),
            Order::Kill { host } => self.numbers.retain(|number| number != host),
            Order::Start { host } => {
                self.numbers.push(*host);
                self.numbers.sort_unstable();
            }
            _ => {}
        }
        Ok(())
    }

    /// The numbers of the hosts that run.
    #[must_use]
    pub fn numbers(&self) -> &[u32] {
        &self.numbers
    }

    /// The number of the host that was added last.
    #[must_use]
    pub fn last(&self) -> u32 {
        self.numbers.last().copied().unwrap_or(1)
    }

    /// The HTTP door of a host.
    ///
    /// # Errors
    /// The ports of this cluster do not reach so far.
    pub fn http(&self, number: u32) -> Result<String, Failure> {
        Ok(Doors::on_this_machine(self.port_base, number)?.http.to_string())
    }

    /// What a host says of itself.
    ///
    /// # Errors
    /// It does not answer.
    pub fn status(&self, number: u32) -> Result<Value, Failure> {
        let address = self.http(number)?;
        let answer = http::get(&address, "/status", ANSWER_MAX)
            .map_err(|error| Failure::of_connection(&address, &error))?;
        serde_json::from_str(&answer.body)
            .map_err(|_| Failure::failed(format!("{address}: the answer is no status")))
    }

    /// What a host shows of a keyspace.
    ///
    /// # Errors
    /// It does not answer, or has no such keyspace.
    pub fn state(&self, number: u32, keyspace: &str) -> Result<Value, Failure> {
        let mut status = self.status(number)?;
        let all = status["keyspaces"].as_array_mut().into_iter().flatten();
        let found = all.into_iter().find(|one| one["name"] == keyspace);
        let missing = || Failure::failed(format!("a host shows no {keyspace}"));
        Ok(found.ok_or_else(missing)?["state"].take())
    }

    /// Whether nothing moves and nothing waits to move, as far as every host said last: hosts renew
    /// what they say once a second.
    fn is_still(&self) -> Result<bool, Failure> {
        for number in &self.numbers {
            let status = self.status(*number)?;
            let state = |name: &str| number_in(&status["keyspaces"][0]["state"][name]);
            if MOVING.iter().any(|name| state(name) != Some(0)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Waits until nothing has moved for a while; when the groups that hosts know changed last.
    /// None if that does not happen in time, or a host that drains still holds something.
    ///
    /// # Errors
    /// A host does not answer.
    pub fn settled(&self, leaver: Option<u32>, until: Instant) -> Result<Option<Instant>, Failure> {
        let leaver = leaver.map(|number| self.node(number)).transpose()?;
        let (mut known, mut changed) = (String::new(), Instant::now());
        while Instant::now() < until {
            let (mut now_known, mut held) = (String::new(), 0);
            for number in &self.numbers {
                let ring = membership::ring(&self.http(*number)?)?;
                held += leaver.as_deref().map_or(0, |node| membership::groups_of(&ring, node));
                now_known.push_str(&groups(&ring));
            }
            if now_known != known {
                (known, changed) = (now_known, Instant::now());
            }
            if held == 0 && changed.elapsed() > STILL && self.is_still()? {
                return Ok(Some(changed));
            }
            std::thread::sleep(AGAIN);
        }
        Ok(None)
    }

    /// The node of a host.
    ///
    /// # Errors
    /// It does not answer.
    pub fn node(&self, number: u32) -> Result<String, Failure> {
        Ok(self.status(number)?["node"].as_str().unwrap_or_default().to_owned())
    }

    /// Bytes of records that all hosts have fetched from others so far.
    ///
    /// # Errors
    /// A host does not answer.
    pub fn moved_bytes(&self) -> Result<u64, Failure> {
        self.numbers.iter().map(|number| self.moved_bytes_of(*number)).sum()
    }

    /// Keys, and bytes of records, that all hosts have fetched from others so far.
    ///
    /// # Errors
    /// A host does not answer.
    pub fn moved(&self) -> Result<(u64, u64), Failure> {
        let mut moved = (0, 0);
        for number in &self.numbers {
            let status = self.status(*number)?;
            let state = &status["keyspaces"][0]["state"];
            moved.0 += number_in(&state["moved_keys"]).unwrap_or(0);
            moved.1 += number_in(&state["moved_bytes"]).unwrap_or(0);
        }
        Ok(moved)
    }

    /// Bytes of records that one host has fetched from others so far.
    ///
    /// # Errors
    /// It does not answer.
    pub fn moved_bytes_of(&self, number: u32) -> Result<u64, Failure> {
        let status = self.status(number)?;
        Ok(number_in(&status["keyspaces"][0]["state"]["moved_bytes"]).unwrap_or(0))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // `dev` stops its hosts before it ends; one that has ended already needs no signal.
        let dev = i32::try_from(self.dev.id()).ok().and_then(Pid::from_raw);
        if let (Some(dev), Ok(None)) = (dev, self.dev.try_wait()) {
            let _ = kill_process(dev, Signal::TERM);
        }
        let _ = self.dev.wait();
    }
}

/// The line that `dev` prints when all hosts serve; none if it ends without.
fn ready(dev: &mut Child) -> Option<Vec<ReadyLine>> {
    let mut line = String::new();
    BufReader::new(dev.stdout.as_mut()?).read_line(&mut line).ok()?;
    let mut cluster: Value = serde_json::from_str(&line).ok()?;
    serde_json::from_value(cluster["hosts"].take()).ok()
}

/// A number that a host shows as text.
fn number_in(value: &Value) -> Option<u64> {
    value.as_str()?.parse().ok()
}

/// The groups of a ring report, each with its version, members and standing; not how far a move is.
fn groups(ring: &Value) -> String {
    let word = |group: &Value| {
        let cells = ["group", "version", "members", "standing"].map(|name| group[name].to_string());
        cells.join(" ")
    };
    membership::groups(ring).map(word).collect()
}
