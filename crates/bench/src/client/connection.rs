//! One connection: what it has sent, what it waits for, and when it last succeeded.

use std::collections::VecDeque;
use std::io::{self, Write};

use mio::net::TcpStream;
use quorate_kernel::time::Time;

use super::answers::Answers;
use crate::config::Wire;
use crate::load::mixes::Operation;
use crate::report::gaps::Gap;

/// A command without its reply, and when it began: sent, or in an open loop, due.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    pub begun: Time,
    pub operation: Operation,
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The handshake of TCP is under way.
    Connecting { since: Time },
    /// It is open and its setup is not answered yet.
    SettingUp,
    /// Commands may be sent.
    Ready,
    /// It broke and is tried again then.
    Broken { retry_at: Time },
    /// It broke and stays so.
    Closed,
}

/// One connection of the client.
#[derive(Debug)]
pub struct Connection {
    pub phase: Phase,
    pub stream: Option<TcpStream>,
    /// The index of the endpoint that it leads to.
    pub endpoint: usize,
    pub answers: Answers,
    pub in_flight: VecDeque<Pending>,
    /// Keys whose read is answered and whose write comes next.
    pub follows: Vec<u64>,
    pub gap: Gap,
    /// It broke at least once.
    pub has_broken: bool,
    /// Attempts that failed since it was last open.
    pub failure_count: usize,
    /// It is in the client's list of connections with room.
    pub is_listed: bool,
    unsent: Vec<u8>,
    unsent_begin: usize,
}

impl Connection {
    /// A connection that has just been opened.
    pub fn new(
        stream: TcpStream,
        wire: Wire,
        endpoint: usize,
        pipeline_depth: usize,
        now: Time,
    ) -> Connection {
        Connection {
            phase: Phase::SettingUp,
            stream: Some(stream),
            endpoint,
            answers: Answers::new(wire),
            in_flight: VecDeque::with_capacity(pipeline_depth),
            follows: Vec::new(),
            gap: Gap::new(now),
            has_broken: false,
            failure_count: 0,
            is_listed: false,
            unsent: Vec::new(),
            unsent_begin: 0,
        }
    }

    /// Sends these bytes, after what could not be sent before; keeps what the socket refuses.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.unsent_begin < self.unsent.len() {
            self.unsent.extend_from_slice(bytes);
            return Ok(());
        }
        let sent = self.write(bytes)?;
        if sent < bytes.len() {
            self.unsent.clear();
            self.unsent_begin = 0;
            self.unsent.extend_from_slice(&bytes[sent..]);
        }
        Ok(())
    }

    /// Sends what is left, now that the socket takes more.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.unsent_begin < self.unsent.len() {
            let unsent = std::mem::take(&mut self.unsent);
            let sent = self.write(&unsent[self.unsent_begin..]);
            self.unsent = unsent;
            self.unsent_begin += sent?;
        }
        Ok(())
    }

    /// Forgets everything about the stream; returns what had been waiting for a reply.
    pub fn reset(&mut self) -> VecDeque<Pending> {
        self.stream = None;
        self.answers.restart();
        self.follows.clear();
        self.unsent.clear();
        self.unsent_begin = 0;
        let empty = VecDeque::with_capacity(self.in_flight.capacity());
        std::mem::replace(&mut self.in_flight, empty)
    }

    /// Writes until everything is sent or the socket is full; returns how much was sent.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(stream) = &mut self.stream else { return Ok(bytes.len()) };
        let mut sent = 0;
        while sent < bytes.len() {
            match stream.write(&bytes[sent..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(sent)
    }
}
