//! The hosts of a cluster, each a process in a network namespace of its own.

use super::sandbox::{Sandbox, address};
use crate::support::client::Client;
use crate::support::cluster::until;
use crate::support::run::{Said, command, quorate};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

/// How long a host may take to answer one probe.
const PATIENCE: Duration = Duration::from_secs(5);

/// Some hosts of one cluster; they are killed and their data is removed when a test ends.
pub struct Hosts<'a> {
    sandbox: &'a Sandbox,
    place: tempfile::TempDir,
    running: Vec<Option<Child>>,
}

impl<'a> Hosts<'a> {
    /// Makes a cluster of the first `founders` hosts of a sandbox, and starts these. To be called
    /// from where the clients are, by a thread that outlives the hosts.
    pub fn start(sandbox: &'a Sandbox, founders: usize, all: usize) -> Hosts<'a> {
        let doors = (1..=founders).map(|host| format!("{}:7411", address(host)));
        Hosts::start_at(sandbox, &doors.collect::<Vec<_>>(), all)
    }

    /// The same, with the addresses at which hosts look for each other.
    pub fn start_at(sandbox: &'a Sandbox, doors: &[String], all: usize) -> Hosts<'a> {
        let place = tempfile::tempdir().expect("a temporary directory");
        let output = place.path().join("data").display().to_string();
        let mut args = vec![String::from("init"), String::from("--output"), output];
        for door in doors {
            args.extend([String::from("--host"), door.clone()]);
        }
        let said = quorate(&args.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(said.code, 0, "{said:?}");
        let running = (0..all).map(|_| None).collect();
        let mut hosts = Hosts { sandbox, place, running };
        hosts.start_all(doors.len());
        hosts
    }

    fn data(&self) -> PathBuf {
        self.place.path().join("data")
    }

    fn log(&self, host: usize) -> PathBuf {
        self.place.path().join(format!("host-{host}.log"))
    }

    fn said(&self, host: usize) -> String {
        fs::read_to_string(self.log(host)).unwrap_or_default()
    }

    /// The RESP doors of all hosts, those that are yet to join too.
    pub fn doors(&self) -> Vec<String> {
        (1..=self.running.len()).map(|host| format!("{}:7413", address(host))).collect()
    }

    fn launch(&mut self, host: usize, more: &[&str]) {
        assert!(self.running[host - 1].is_none(), "a host is started when it does not run");
        let (me, at) = (std::process::id().to_string(), address(host));
        let data = self.data().join(format!("host-{host}")).display().to_string();
        let doors = [7411, 7412, 7413, 7414, 7415].map(|port| format!("{at}:{port}"));
        let mut args = vec!["server", "--data", &data, "--format", "json", "--exit-with", &me];
        args.extend(["--cluster", &doors[0], "--http", &doors[1], "--resp", &doors[2]]);
        args.extend(["--grpc", &doors[3], "--zookeeper", &doors[4]]);
        args.extend(["--insecure", "--set", "limits.request_timeout=2s"]);
        args.extend(more);
        let log = File::options().create(true).append(true).open(self.log(host));
        let mut command = command(&args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log.expect("a log file"));
        // A host ends with the thread that started it, so this thread goes there itself.
        let process = self.sandbox.host(host).within(|| command.spawn());
        self.running[host - 1] = Some(process.expect("the binary starts"));
    }

    fn await_ready(&mut self, host: usize) {
        let process = self.running[host - 1].as_mut().expect("the host was launched");
        let output = process.stdout.take().expect("a pipe was asked for");
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).expect("the output is text");
        assert!(line.starts_with('{'), "host {host} is not ready: {}", self.said(host));
    }

    /// Starts the first `count` hosts at once and waits until each serves.
    pub fn start_all(&mut self, count: usize) {
        (1..=count).for_each(|host| self.launch(host, &[]));
        (1..=count).for_each(|host| self.await_ready(host));
        self.until_serving(&(1..=count).collect::<Vec<_>>());
    }

    /// Starts a host that was killed, and waits until it serves.
    pub fn restart(&mut self, host: usize) {
        self.launch(host, &[]);
        self.await_ready(host);
    }

    /// Starts a host that joins by way of another.
    pub fn join(&mut self, host: usize, seed: usize) {
        let (seed, secret) = (http(seed), self.data().join("cluster.secret"));
        let secret = secret.display().to_string();
        self.launch(host, &["--join", &seed, "--secret-file", &secret]);
        self.await_ready(host);
    }

    /// Kills hosts at once, without any chance to finish something.
    pub fn kill(&mut self, hosts: &[usize]) {
        let mut killed = Vec::new();
        for &host in hosts {
            let mut process = self.running[host - 1].take().expect("the host runs");
            process.kill().expect("a child can be killed");
            killed.push(process);
        }
        for mut process in killed {
            process.wait().expect("a child can be waited for");
        }
    }

    /// What a host answers to one read; empty if it answers with a value.
    fn probe(&self, host: usize) -> Option<String> {
        let mut client = Client::connect(&self.doors()[host - 1], PATIENCE).ok()?;
        let reply = client.ask(&[b"GET", b"probe"]).ok()?;
        Some(String::from_utf8_lossy(reply.error_code().unwrap_or_default()).into_owned())
    }

    /// Waits until these hosts serve reads.
    pub fn until_serving(&self, hosts: &[usize]) {
        for &host in hosts {
            let what = format!("host {host} serves");
            until(&what, || self.probe(host).is_some_and(|code| code.is_empty()));
        }
    }

    /// Waits until these hosts say that they cannot serve.
    pub fn until_refusing(&self, hosts: &[usize]) {
        for &host in hosts {
            let what = format!("host {host} says that it lacks a quorum");
            until(&what, || self.probe(host).is_some_and(|code| code == "NOQUORUM"));
        }
    }

    /// Whether a host says that a connection to another is down.
    pub fn lacks_a_peer(&self, host: usize) -> bool {
        let status = ordered(&["status", "--format", "json"], host).json();
        let peers = status["peers"].as_array();
        peers.expect("a list of peers").iter().any(|peer| peer["up"] == false)
    }

    /// Whether a host says that something is wrong with another.
    pub fn has_trouble(&self, host: usize) -> bool {
        let status = ordered(&["status", "--format", "json"], host).json();
        let peers = status["peers"].as_array();
        peers.expect("a list of peers").iter().any(|peer| peer["trouble"] != "")
    }

    /// Shows what the hosts logged.
    fn show_logs(&self) {
        for host in 1..=self.running.len() {
            let said = self.said(host);
            let skipped = said.lines().count().saturating_sub(LOG_LINES_SHOWN);
            println!("== host {host}");
            said.lines().skip(skipped).for_each(|line| println!("{line}"));
        }
    }
}

/// How many of the last lines of each log a failed test shows.
const LOG_LINES_SHOWN: usize = 60;

impl Drop for Hosts<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.show_logs();
        }
        for process in self.running.iter_mut().flatten() {
            // Killing what has ended already fails, and does no harm.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// The HTTP door of a host.
pub fn http(host: usize) -> String {
    format!("{}:7412", address(host))
}

/// Runs a command that asks a host over HTTP; it must succeed.
pub fn ordered(args: &[&str], host: usize) -> Said {
    let http = http(host);
    let said = quorate(&[args, &["--http", &http]].concat());
    assert_eq!(said.code, 0, "{args:?}: {said:?}");
    said
}
