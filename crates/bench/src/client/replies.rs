//! Takes replies and settles the operations that they answer.

use std::io::{self, Read};

use quorate_kernel::time::Time;

use super::Client;
use super::connection::{Connection, Pending, Phase};
use crate::error::BenchError;
use crate::load::mixes::{Kind, Source};
use crate::report::record::{Class, Recorder};
use crate::scanner::{Malformed, ReplyKind};

/// How an operation is counted; none for the setup of a connection.
pub fn class(kind: Kind) -> Option<Class> {
    match kind {
        Kind::Read | Kind::Modify => Some(Class::Read),
        Kind::Update | Kind::Insert => Some(Class::Write),
        Kind::Setup => None,
    }
}

impl<S: Source> Client<S> {
    /// Reads what has arrived and sends what may follow.
    pub(super) fn on_readable(&mut self, index: usize, is_ending: bool) -> Result<(), BenchError> {
        let mut now = Time(0);
        loop {
            let Some(stream) = &mut self.connections[index].stream else { return Ok(()) };
            match stream.read(&mut self.read_buffer) {
                Ok(0) => return self.on_break(index, "closed by the server"),
                Ok(count) => {
                    now = self.now();
                    self.take_replies(index, count, now)?;
                    // A short read has emptied the socket, and whatever comes later is a new
                    // event; only an end of the stream that was announced already is not.
                    if count < self.read_buffer.len() && !is_ending {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return self.on_break(index, &error.to_string()),
            }
        }
        if now == Time(0) {
            return Ok(());
        }
        self.send_next(index, now)
    }

    /// Settles what the first `count` bytes of the read buffer answer.
    fn take_replies(&mut self, index: usize, count: usize, now: Time) -> Result<(), BenchError> {
        let Client { connections, read_buffer, recorder, source, manner, .. } = self;
        let connection = &mut connections[index];
        let protocol_error = |endpoint: usize, source: Malformed| BenchError::Protocol {
            address: manner.endpoints[endpoint],
            source,
        };
        let mut input = &read_buffer[..count];
        let mut has_success = false;
        loop {
            let reply = match connection.answers.next(&mut input) {
                Ok(Some(reply)) => reply,
                Ok(None) => break,
                Err(error) => return Err(protocol_error(connection.endpoint, error)),
            };
            let Some(pending) = connection.in_flight.pop_front() else {
                return Err(protocol_error(connection.endpoint, Malformed::Unasked));
            };
            self.in_flight_count -= 1;
            self.last_reply = now;
            if pending.operation.kind == Kind::Setup {
                set_up_ended(connection, reply, manner.keyspace.as_deref())?;
            } else {
                has_success |= settle(connection, pending, reply, now, recorder);
            }
            if pending.operation.kind == Kind::Insert {
                source.inserted(pending.operation.key);
            }
        }
        if has_success {
            connection.gap.close(now);
            connection.failure_count = 0;
        }
        Ok(())
    }
}

fn set_up_ended(
    connection: &mut Connection,
    reply: ReplyKind,
    keyspace: Option<&str>,
) -> Result<(), BenchError> {
    if reply != ReplyKind::Done {
        let word = connection.answers.error_word();
        let text = match keyspace {
            Some(keyspace) => format!("keyspace {keyspace} cannot be selected: {word}"),
            None => format!("no session was given: {word}"),
        };
        return Err(BenchError::Settings(text));
    }
    connection.phase = Phase::Ready;
    Ok(())
}

/// Records the outcome of an operation; true if it succeeded.
#[inline]
fn settle(
    connection: &mut Connection,
    pending: Pending,
    reply: ReplyKind,
    now: Time,
    recorder: &mut Recorder,
) -> bool {
    let Some(class) = class(pending.operation.kind) else { return false };
    match (class, reply) {
        (Class::Read, ReplyKind::Value) | (Class::Write, ReplyKind::Done) => {}
        (_, ReplyKind::Answered) => {}
        (Class::Read, ReplyKind::Nil) => recorder.nil(),
        (_, ReplyKind::Error) => {
            recorder.error(connection.answers.error_word());
            return false;
        }
        _ => {
            recorder.error("UNEXPECTED");
            return false;
        }
    }
    recorder.success(class, pending.begun, now);
    if pending.operation.kind == Kind::Modify {
        connection.follows.push(pending.operation.key);
    }
    true
}
