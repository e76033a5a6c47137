//! The processes of the hosts: started once, awaited, stopped once.

use super::prepare::Prepared;
use crate::exit::Failure;
use crate::provision::host_directory;
use crate::verbs::hosts::server::ReadyLine;
use quorate_kernel::ids::NodeId;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, watch};

/// The last bytes of a log that are shown when a host cannot start.
const LOG_TAIL_BYTES: u64 = 2_000;
/// The most memory for records that a host gets unless a setting says otherwise.
const RECORD_CACHE_BYTES_MAX: usize = 256 << 20;

/// Something a host did.
#[derive(Debug)]
pub enum Event {
    /// It serves, at these addresses.
    Ready(ReadyLine),
    /// Its process ended.
    Ended {
        /// Which of the hosts.
        number: u32,
        /// What its process was.
        pid: u32,
        /// How it ended.
        how: ExitStatus,
    },
}

/// The hosts of a cluster as processes.
pub struct Hosts {
    data: PathBuf,
    settings: Vec<String>,
    /// The hosts there are, whether they run or not, each with its node once that is known.
    known: BTreeMap<u32, Option<NodeId>>,
    running: BTreeMap<u32, u32>,
    lines: BTreeMap<u32, ReadyLine>,
    failed: Vec<String>,
    events: mpsc::Receiver<Event>,
    sender: mpsc::Sender<Event>,
    stop: watch::Sender<bool>,
}

impl Hosts {
    /// Starts every host. They end when the calling thread does, so it must be the main one.
    ///
    /// # Errors
    /// A process cannot be started; those that were end with this one.
    pub fn start(prepared: &Prepared, settings: &[String]) -> Result<Hosts, Failure> {
        let (sender, events) = mpsc::channel(64);
        let (stop, _) = watch::channel(false);
        let mut hosts = Hosts {
            data: prepared.data.clone(),
            settings: settings.to_vec(),
            known: BTreeMap::new(),
            running: BTreeMap::new(),
            lines: BTreeMap::new(),
            failed: Vec::new(),
            events,
            sender,
            stop,
        };
        for number in &prepared.numbers {
            hosts.launch(*number, &[], None).map_err(Failure::failed)?;
        }
        Ok(hosts)
    }

    /// Starts one host, with more flags than all have, and the cluster's secret if it is to join.
    ///
    /// # Errors
    /// Its process cannot be started.
    pub fn launch(
        &mut self,
        number: u32,
        more: &[(&str, String)],
        secret: Option<&str>,
    ) -> Result<(), String> {
        let child = spawn(&self.data, number, &self.settings, more, secret)
            .map_err(|error| format!("host {number} cannot be started: {error}"))?;
        let pid = child.id().expect("a child that was not awaited has an id");
        self.known.entry(number).or_default();
        self.running.insert(number, pid);
        let (sender, stopping) = (self.sender.clone(), self.stop.subscribe());
        tokio::spawn(attend(number, pid, child, sender, stopping));
        Ok(())
    }

    /// The numbers of all hosts, ascending.
    #[must_use]
    pub fn numbers(&self) -> Vec<u32> {
        self.known.keys().copied().collect()
    }

    /// The node of a host, if it ever was ready.
    #[must_use]
    pub fn node(&self, number: u32) -> Option<NodeId> {
        self.known.get(&number).copied().flatten()
    }

    /// Whether a host runs.
    #[must_use]
    pub fn is_running(&self, number: u32) -> bool {
        self.running.contains_key(&number)
    }

    /// Where a host is that runs and was ready.
    #[must_use]
    pub fn line(&self, number: u32) -> Option<&ReadyLine> {
        self.lines.get(&number)
    }

    /// What a host's log says last.
    #[must_use]
    pub fn last_words(&self, number: u32) -> String {
        let log = log_path(&self.data, number);
        format!("its log {} ends:\n{}", log.display(), tail(&log).unwrap_or_default())
    }

    /// Sends a signal to a host.
    ///
    /// # Errors
    /// It does not run.
    pub fn signal(&self, number: u32, signal: Signal) -> Result<(), String> {
        let Some(pid) = self.running.get(&number) else {
            return Err(format!("host {number} does not run; there are {:?}", self.numbers()));
        };
        let pid = i32::try_from(*pid).ok().and_then(Pid::from_raw);
        let sent = pid.map(|pid| kill_process(pid, signal));
        match sent {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => Err(format!("host {number}: {error}")),
            None => Err(format!("host {number} has no process")),
        }
    }

    /// The directory of a host.
    #[must_use]
    pub fn directory(&self, number: u32) -> PathBuf {
        host_directory(&self.data, number)
    }

    /// The hosts that have not ended, in words.
    #[must_use]
    pub fn running(&self) -> Vec<String> {
        self.running.iter().map(|(number, pid)| format!("host {number} (process {pid})")).collect()
    }

    /// Waits for the next event; for ever if none comes.
    pub async fn next(&mut self) -> Event {
        match self.events.recv().await {
            Some(event) => {
                if let Event::Ready(line) = &event {
                    self.lines.insert(line.host, line.clone());
                    let identity = quorate_store::identity_of(&line.data).ok();
                    self.known.insert(line.host, identity.map(|identity| identity.node));
                }
                if let Event::Ended { number, how, .. } = &event {
                    self.running.remove(number);
                    self.lines.remove(number);
                    if !is_stop(how) {
                        self.failed.push(format!("host {number} ended with {how}"));
                    }
                }
                event
            }
            None => std::future::pending().await,
        }
    }

    /// Waits until every host is ready; answers where they are, in the order of their numbers.
    ///
    /// # Errors
    /// A host ended instead; what its log says last is told.
    pub async fn ready(&mut self) -> Result<Vec<ReadyLine>, Failure> {
        let count = self.running.len();
        let mut lines = BTreeMap::new();
        while lines.len() < count {
            match self.next().await {
                Event::Ready(line) => {
                    lines.insert(line.host, line);
                }
                Event::Ended { number, how, .. } => {
                    return Err(Failure::failed(format!(
                        "host {number} ended with {how} before it was ready; {}",
                        self.last_words(number)
                    )));
                }
            }
        }
        Ok(lines.into_values().collect())
    }

    /// Asks every host that still runs to stop, and waits until all have ended.
    ///
    /// # Errors
    /// A host ended badly while it stopped. One that had ended before is not counted.
    pub async fn stop(&mut self) -> Result<(), Failure> {
        self.failed.clear();
        self.stop.send_replace(true);
        while !self.running.is_empty() {
            self.next().await;
        }
        if self.failed.is_empty() { Ok(()) } else { Err(Failure::failed(self.failed.join("; "))) }
    }
}

/// Whether a host that was asked to stop ended as it should. Early in its start it does not listen
/// for the wish yet, and has nothing to finish either.
fn is_stop(how: &ExitStatus) -> bool {
    how.success() || how.signal() == Some(Signal::TERM.as_raw())
}

/// Where a host's log lines go.
#[must_use]
pub fn log_path(data: &Path, number: u32) -> PathBuf {
    data.join(format!("host-{number}.log"))
}

fn spawn(
    data: &Path,
    number: u32,
    settings: &[String],
    more: &[(&str, String)],
    secret: Option<&str>,
) -> std::io::Result<Child> {
    let log = OpenOptions::new().create(true).append(true).open(log_path(data, number))?;
    let mut command = Command::new(std::env::current_exe()?);
    command
        .arg("server")
        .arg("--data")
        .arg(host_directory(data, number))
        .args(["--format", "json"])
        .args(["--exit-with", &std::process::id().to_string()])
        .args(["--set", "dev.faults=true"])
        .args(["--set", &format!("store.record_cache={}", record_cache_bytes())])
        .args(settings.iter().flat_map(|setting| ["--set", setting]))
        .args(more.iter().flat_map(|(flag, text)| [*flag, text.as_str()]))
        .envs(secret.map(|secret| ("QUORATE_CLUSTER_SECRET", secret)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .process_group(0)
        .spawn()
}

/// How much memory a host's records get unless a setting says otherwise: the machine has several
/// hosts, and other things to do.
fn record_cache_bytes() -> usize {
    (quorate_host::machine::memory_bytes() / 10).min(RECORD_CACHE_BYTES_MAX)
}

/// Reports what a host does until it ends, and passes the wish to stop on, once.
async fn attend(
    number: u32,
    pid: u32,
    mut child: Child,
    events: mpsc::Sender<Event>,
    mut stopping: watch::Receiver<bool>,
) {
    if let Some(output) = child.stdout.take() {
        let events = events.clone();
        tokio::spawn(async move {
            let mut lines = BufReader::new(output).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                if let Ok(line) = serde_json::from_str(&line) {
                    let _ = events.send(Event::Ready(line)).await;
                }
            }
        });
    }
    let ended = tokio::select! {
        ended = child.wait() => ended,
        _ = async { stopping.wait_for(|stopping| *stopping).await.is_ok() } => {
            // Asked through the child that is not yet reaped, so that no stranger with the same
            // process id can be meant.
            if let Some(pid) = child.id() {
                terminate(pid);
            }
            child.wait().await
        }
    };
    if let Ok(how) = ended {
        // Nobody listens any more when `dev` itself ends.
        let _ = events.send(Event::Ended { number, pid, how }).await;
    }
}

/// Asks a process to stop. One that a script has stopped must run again to hear it.
fn terminate(pid: u32) {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return };
    for signal in [Signal::TERM, Signal::CONT] {
        if let Err(error) = kill_process(pid, signal) {
            eprintln!("process {pid} cannot be asked to stop: {error}");
        }
    }
}

/// The last lines of a file.
fn tail(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOG_TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    Ok(lines[lines.len().saturating_sub(5)..].join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_of_a_log_is_its_last_lines() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let path = log_path(place.path(), 1);
        let text: String = (0..1_000).map(|number| format!("line {number}\n")).collect();
        std::fs::write(&path, text).expect("a temporary file");
        let tail = tail(&path).expect("it is there");
        assert_eq!(tail, "line 995\nline 996\nline 997\nline 998\nline 999");
    }
}
