//! What clients cost that ask nothing: each keeps its session and watches nodes.

use std::fmt;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use quorate_doors::zookeeper::client;
use quorate_doors::zookeeper::wire::codes::opcode;
use serde::{Deserialize, Serialize};

use crate::client::reconnect::allow_open_files;
use crate::config::{Stop, Wire};
use crate::error::BenchError;
use crate::report::usage::Watch;
use crate::rounds::turns::Target;
use crate::scanner::ReplyKind;
use crate::zookeeper::frames::Frames;
use crate::zookeeper::nodes::{ping, request};

/// What a client asks for as the time-out of its session, and how often it says that it is there:
/// as often as ZooKeeper's own client does.
const TIMEOUT: Duration = Duration::from_secs(30);
const PING: Duration = Duration::from_secs(10);
/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(30);
/// The node that all watch.
const SHARED: &str = "/idle";

/// What to measure.
#[derive(Clone, Debug)]
pub(crate) struct IdleConfig {
    /// The servers, in turn. All clients go to the first address of each.
    pub targets: Vec<Target>,
    /// How many clients.
    pub sessions: usize,
    /// How many nodes each of them watches, at least one: one that all watch, and others of its
    /// own, which are not there.
    pub watches: usize,
    /// How long they do nothing.
    pub duration: Duration,
    /// Ends it early.
    pub stop: Stop,
}

/// The outcome. The field names are stable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Idle {
    /// Clients.
    pub sessions: usize,
    /// Watches of each.
    pub watches: usize,
    /// One row for each server.
    pub rows: Vec<IdleRow>,
}

/// What idle clients cost one server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IdleRow {
    /// The server.
    pub name: String,
    /// Processor seconds a second of the host that has the clients.
    pub cpu_share: f64,
    /// Its resident bytes in the end.
    pub rss_bytes: u64,
    /// Milliseconds until all were told of a change of the node that all watch.
    pub told_ms: f64,
}

/// Measures.
///
/// # Errors
/// See [`BenchError`]; servers that were started are stopped.
pub(crate) fn idle(config: &IdleConfig) -> Result<Idle, BenchError> {
    allow_open_files(config.sessions);
    let rows = config.targets.iter().map(|target| row(config, target));
    let rows = rows.collect::<Result<_, BenchError>>()?;
    Ok(Idle { sessions: config.sessions, watches: config.watches, rows })
}

fn row(config: &IdleConfig, target: &Target) -> Result<IdleRow, BenchError> {
    let live = target.start(Wire::ZooKeeper, &config.stop)?;
    let missing = || BenchError::Settings(format!("{} has no host", live.name));
    let address = *live.endpoints.first().ok_or_else(missing)?;
    let mut writer = Client::connect(address)?;
    writer.ask(&request(1, opcode::CREATE, SHARED))?;
    let (mut clients, mut kept) = (Vec::<Client>::new(), Instant::now());
    for number in 0..config.sessions {
        config.check()?;
        if kept.elapsed() > PING {
            // The first ones would lose their sessions until the last one is there.
            clients.iter_mut().try_for_each(|client| client.ask(&ping()))?;
            kept = Instant::now();
        }
        let mut client = Client::connect(address)?;
        let own = (1..config.watches).map(|at| format!("{SHARED}-{number}-{at}"));
        for (path, xid) in std::iter::once(SHARED.to_owned()).chain(own).zip(1..) {
            client.send(&request(xid, opcode::EXISTS, &path))?;
        }
        (0..config.watches).try_for_each(|_| client.answer())?;
        clients.push(client);
    }
    let mut watch = Watch::new(live.pids.first().map_or(&[], std::slice::from_ref))?;
    rest(config, &mut clients, PING)?;
    watch.open();
    let begun = Instant::now();
    rest(config, &mut clients, config.duration)?;
    watch.close();
    let seconds = begun.elapsed().as_secs_f64();
    let begun = Instant::now();
    writer.ask(&request(2, opcode::SET_DATA, SHARED))?;
    clients.iter_mut().try_for_each(Client::event)?;
    let told_ms = begun.elapsed().as_secs_f64() * 1e3;
    let usage = watch.servers().into_iter().next();
    Ok(IdleRow {
        name: live.name.clone(),
        cpu_share: usage.as_ref().map_or(0.0, |usage| usage.cpu_seconds / seconds),
        rss_bytes: usage.map_or(0, |usage| usage.rss_bytes),
        told_ms,
    })
}

/// All do nothing for so long, but say each in its turn that they are there.
fn rest(config: &IdleConfig, clients: &mut [Client], span: Duration) -> Result<(), BenchError> {
    let begun = Instant::now();
    let pause = PING / u32::try_from(clients.len().max(1)).unwrap_or(u32::MAX);
    let ping = ping();
    let mut at = 0u32;
    while begun.elapsed() < span {
        config.check()?;
        // Several at a time, so that this one sleeps for much of the time.
        while pause * at <= begun.elapsed() {
            let index = at as usize % clients.len();
            clients[index].ask(&ping)?;
            at += 1;
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

impl IdleConfig {
    fn check(&self) -> Result<(), BenchError> {
        if self.stop.is_raised() { Err(BenchError::Interrupted) } else { Ok(()) }
    }
}

/// One client.
struct Client {
    address: SocketAddr,
    stream: TcpStream,
    frames: Frames,
    /// What was read and not looked at.
    input: Vec<u8>,
}

impl Client {
    fn connect(address: SocketAddr) -> Result<Client, BenchError> {
        let stream = TcpStream::connect(address)
            .map_err(|source| BenchError::Connect { address, source })?;
        let ready = stream.set_nodelay(true).and_then(|()| stream.set_read_timeout(Some(PATIENCE)));
        ready.map_err(BenchError::system("prepare a connection"))?;
        let mut it = Client { address, stream, frames: Frames::default(), input: Vec::new() };
        let timeout_ms = u32::try_from(TIMEOUT.as_millis()).expect("it is short");
        it.ask(&client::connect(timeout_ms))?;
        Ok(it)
    }

    fn lost(&self, cause: impl fmt::Display) -> BenchError {
        BenchError::Disconnected { address: self.address, cause: cause.to_string() }
    }

    fn send(&mut self, request: &[u8]) -> Result<(), BenchError> {
        self.stream.write_all(request).map_err(|error| self.lost(error))
    }

    fn ask(&mut self, request: &[u8]) -> Result<(), BenchError> {
        self.send(request)?;
        self.answer()
    }

    /// Waits for an answer that is no error. That there is no such node is none.
    fn answer(&mut self) -> Result<(), BenchError> {
        loop {
            match self.next()? {
                Some(ReplyKind::Error) => return Err(self.lost(self.frames.error_word())),
                Some(_) => return Ok(()),
                None => self.read()?,
            }
        }
    }

    /// Waits for the one event of the node that all watch.
    fn event(&mut self) -> Result<(), BenchError> {
        loop {
            self.next()?;
            if self.frames.events() > 0 {
                return Ok(());
            }
            self.read()?;
        }
    }

    /// The next answer in what was read.
    fn next(&mut self) -> Result<Option<ReplyKind>, BenchError> {
        let mut rest = &self.input[..];
        let told = self.frames.next(&mut rest);
        let left = rest.len();
        self.input.drain(..self.input.len() - left);
        told.map_err(|source| BenchError::Protocol { address: self.address, source })
    }

    fn read(&mut self) -> Result<(), BenchError> {
        let mut bytes = [0; 4096];
        match self.stream.read(&mut bytes) {
            Ok(0) => Err(self.lost("it was closed")),
            Ok(count) => {
                self.input.extend_from_slice(&bytes[..count]);
                Ok(())
            }
            Err(error) => Err(self.lost(error)),
        }
    }
}

impl fmt::Display for Idle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} clients of one host ask nothing, and watch {} nodes each; they say every {} s that \
             they are there\n",
            self.sessions,
            self.watches,
            PING.as_secs()
        )?;
        writeln!(f, "| server | processor, % of a core | memory, MiB | all are told, ms |")?;
        writeln!(f, "|---|---:|---:|---:|")?;
        for row in &self.rows {
            let (share, mib) = (row.cpu_share * 100.0, row.rss_bytes >> 20);
            writeln!(f, "| {} | {share:.1} | {mib} | {:.0} |", row.name, row.told_ms)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_told_as_a_share_of_a_core() {
        let row = IdleRow {
            name: "quorate".to_owned(),
            cpu_share: 0.042,
            rss_bytes: 7 << 20,
            told_ms: 80.4,
        };
        let text = Idle { sessions: 20_000, watches: 10, rows: vec![row] }.to_string();
        assert!(text.starts_with("20000 clients of one host ask nothing, and watch 10 nodes each"));
        assert!(text.ends_with("| quorate | 4.2 | 7 | 80 |\n"), "{text}");
    }
}
