//! The processes of the hosts: started once, awaited, stopped once.

use super::prepare::Prepared;
use crate::cli::exit::Failure;
use crate::cli::server::ReadyLine;
use crate::provision::host_directory;
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

/// Something a host did.
#[derive(Debug)]
pub enum Event {
    /// It serves, at these addresses.
    Ready(ReadyLine),
    /// Its process ended.
    Ended {
        /// Its number.
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
    running: BTreeMap<u32, u32>,
    failed: Vec<String>,
    events: mpsc::Receiver<Event>,
    stop: watch::Sender<bool>,
}

impl Hosts {
    /// Starts every host. They end when the calling thread does, so it must be the main one.
    ///
    /// # Errors
    /// A process cannot be started; those that were end with this one.
    pub fn start(prepared: &Prepared, settings: &[String]) -> Result<Hosts, Failure> {
        let (sender, events) = mpsc::channel(64);
        let (stop, stopping) = watch::channel(false);
        let data = prepared.data.clone();
        let mut running = BTreeMap::new();
        for record in &prepared.identity.hosts {
            let number = record.host;
            let child = spawn(&data, number, settings).map_err(|error| {
                Failure::failed(format!("host {number} cannot be started: {error}"))
            })?;
            let pid = child.id().expect("a child that was not awaited has an id");
            running.insert(number, pid);
            tokio::spawn(attend(number, pid, child, sender.clone(), stopping.clone()));
        }
        Ok(Hosts { data, running, failed: Vec::new(), events, stop })
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

    /// Waits for the next event; for ever when every host has ended.
    pub async fn next(&mut self) -> Event {
        match self.events.recv().await {
            Some(event) => {
                if let Event::Ended { number, how, .. } = &event {
                    self.running.remove(number);
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
                    let log = log_path(&self.data, number);
                    let tail = tail(&log).unwrap_or_default();
                    return Err(Failure::failed(format!(
                        "host {number} ended with {how} before it was ready; its log {} ends:\n\
                         {tail}",
                        log.display()
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

fn spawn(data: &Path, number: u32, settings: &[String]) -> std::io::Result<Child> {
    let log = OpenOptions::new().create(true).append(true).open(log_path(data, number))?;
    let mut command = Command::new(std::env::current_exe()?);
    command
        .arg("server")
        .arg("--data")
        .arg(host_directory(data, number))
        .args(["--format", "json"])
        .args(["--exit-with", &std::process::id().to_string()])
        .args(settings.iter().flat_map(|setting| ["--set", setting]))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .process_group(0)
        .spawn()
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
