//! Opens connections, and opens them again elsewhere after they broke.

use std::net::TcpStream as BlockingStream;
use std::time::Duration;

use mio::event::Event;
use mio::net::TcpStream;
use mio::{Interest, Token};
use quorate_kernel::time::{Span, Time};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::Client;
use super::connection::{Connection, Phase};
use super::replies::class;
use crate::error::BenchError;
use crate::load::mixes::{Kind, Source};

/// How long the first connection to an address may take.
const FIRST_CONNECT: Duration = Duration::from_secs(5);
/// How long opening a connection again may take before the next endpoint is tried.
const CONNECT: Span = Span::millis(500);
/// The pause after all endpoints have refused a connection in turn.
const RETRY: Span = Span::millis(10);
/// Files a client needs besides its connections.
const OTHER_FILES: u64 = 64;

/// Raises the limit of open files as far as needed and permitted.
pub fn allow_open_files(connection_count: usize) {
    let limit = getrlimit(Resource::Nofile);
    let needed = connection_count as u64 + OTHER_FILES;
    if limit.current.is_some_and(|current| current < needed) {
        let current = limit.maximum.map_or(needed, |maximum| maximum.min(needed));
        // A refusal shows as a connection that cannot be opened, with a clear error.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(current), ..limit });
    }
}

impl<S: Source> Client<S> {
    /// Opens every connection for the first time, and fails if one cannot be.
    pub(super) fn open_connections(&mut self) -> Result<(), BenchError> {
        for index in 0..self.manner.connection_count {
            let endpoint = index % self.manner.endpoints.len();
            let address = self.manner.endpoints[endpoint];
            let stream = BlockingStream::connect_timeout(&address, FIRST_CONNECT)
                .and_then(|stream| {
                    stream.set_nodelay(true)?;
                    stream.set_nonblocking(true)?;
                    Ok(TcpStream::from_std(stream))
                })
                .map_err(|source| BenchError::Connect { address, source })?;
            let depth = self.manner.pipeline_depth;
            let connection = Connection::new(stream, self.manner.wire, endpoint, depth, self.now());
            self.connections.push(connection);
            self.register(index).map_err(BenchError::system("watch a socket"))?;
        }
        Ok(())
    }

    fn register(&mut self, index: usize) -> std::io::Result<()> {
        let Some(stream) = &mut self.connections[index].stream else { return Ok(()) };
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.poll.registry().register(stream, Token(index), interest)
    }

    /// A connection has ended: what was on its way is lost.
    pub(super) fn on_break(&mut self, index: usize, cause: &str) -> Result<(), BenchError> {
        let now = self.now();
        let connection = &mut self.connections[index];
        let is_unsettled = matches!(connection.phase, Phase::Connecting { .. });
        if connection.failure_count == 0 && connection.in_flight.is_empty() {
            connection.gap.resume(now);
        }
        for pending in connection.reset() {
            self.in_flight_count -= 1;
            if class(pending.operation.kind).is_some() {
                self.recorder.error("CONNECTION");
            }
            if pending.operation.kind == Kind::Insert {
                self.source.inserted(pending.operation.key);
            }
        }
        self.broken_count += u64::from(!is_unsettled);
        self.unsettled_count -= usize::from(is_unsettled);
        connection.has_broken = true;
        connection.failure_count += 1;
        if !self.manner.reconnect {
            connection.phase = Phase::Closed;
            let address = self.manner.endpoints[connection.endpoint];
            if self.connections.iter().all(|connection| connection.phase == Phase::Closed) {
                return Err(BenchError::Disconnected { address, cause: cause.to_owned() });
            }
            return Ok(());
        }
        let endpoint_count = self.manner.endpoints.len();
        connection.endpoint = (connection.endpoint + 1) % endpoint_count;
        let is_round = connection.failure_count.is_multiple_of(endpoint_count);
        let retry_at = if is_round { now + RETRY } else { now };
        connection.phase = Phase::Broken { retry_at };
        self.unsettled_count += 1;
        Ok(())
    }

    /// Begins and gives up attempts to connect.
    pub(super) fn settle_connections(&mut self, now: Time) -> Result<(), BenchError> {
        for index in 0..self.connections.len() {
            match self.connections[index].phase {
                Phase::Broken { retry_at } if retry_at <= now => self.connect(index, now)?,
                Phase::Connecting { since } if now - since >= CONNECT => {
                    self.on_break(index, "no answer to a connection attempt")?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// When an attempt to connect is to begin or to be given up.
    pub(super) fn next_settling(&self, now: Time) -> Time {
        let time = |connection: &Connection| match connection.phase {
            Phase::Broken { retry_at } => Some(retry_at),
            Phase::Connecting { since } => Some(since + CONNECT),
            Phase::SettingUp | Phase::Ready | Phase::Closed => None,
        };
        self.connections.iter().filter_map(time).min().unwrap_or(now)
    }

    fn connect(&mut self, index: usize, now: Time) -> Result<(), BenchError> {
        let address = self.manner.endpoints[self.connections[index].endpoint];
        self.connections[index].phase = Phase::Connecting { since: now };
        let stream = TcpStream::connect(address);
        let opened = stream.and_then(|stream| {
            self.connections[index].stream = Some(stream);
            self.register(index)
        });
        match opened {
            Ok(()) => Ok(()),
            Err(error) => self.on_break(index, &error.to_string()),
        }
    }

    /// A connection attempt has ended one way or the other.
    pub(super) fn on_connect(&mut self, index: usize, event: &Event) -> Result<(), BenchError> {
        if !event.is_writable() && !event.is_error() {
            return Ok(());
        }
        let Some(stream) = &self.connections[index].stream else { return Ok(()) };
        let failure = match stream.take_error() {
            Ok(None) => stream.peer_addr().and_then(|_| stream.set_nodelay(true)).err(),
            Ok(Some(error)) | Err(error) => Some(error),
        };
        if let Some(error) = failure {
            return self.on_break(index, &error.to_string());
        }
        self.connections[index].phase = Phase::SettingUp;
        self.unsettled_count -= 1;
        self.set_up(index)
    }
}
