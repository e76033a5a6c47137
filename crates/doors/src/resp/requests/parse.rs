//! Requests out of a byte stream: arrays of bulk strings, and inline commands.
//!
//! Nothing is taken from the buffer before a command is whole, and the place reached is remembered,
//! so a value that arrives in many reads is looked at once. A length is checked against its limit
//! when it is announced; no room is taken for what has not arrived.

use super::frame::{Command, Spans};
use super::inline;
use bytes::{Buf, BytesMut};
use quorate_kernel::limits::{COMMAND_ARGUMENTS_MAX, COMMAND_BYTES_MAX, INLINE_BYTES_MAX};
use thiserror::Error;

/// The client sent something that is no request. Nothing of it was executed; the connection must be
/// closed once the error was sent, because where the next request starts is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ProtocolError {
    /// The number of arguments is no number or over the limit.
    #[error("Protocol error: invalid multibulk length")]
    Arguments,
    /// The length of an argument is no number or negative.
    #[error("Protocol error: invalid bulk length")]
    Length,
    /// The length of an argument is over the limit.
    #[error("Protocol error: invalid bulk length: {length} bytes are over the limit of {limit}")]
    TooLong {
        /// What was announced.
        length: i64,
        /// How many bytes an argument may have.
        limit: usize,
    },
    /// An argument does not start with `$`.
    #[error("Protocol error: expected '$', got '{}'", shown(*.got))]
    Dollar {
        /// The byte found instead.
        got: u8,
    },
    /// An argument is not followed by a line end.
    #[error("Protocol error: expected CRLF after a bulk string")]
    LineEnd,
    /// All arguments together are over the limit.
    #[error("Protocol error: command over the limit of {limit} bytes")]
    Command {
        /// How many bytes the arguments may have together.
        limit: usize,
    },
    /// An inline command has no end within its limit.
    #[error("Protocol error: too big inline request")]
    Inline,
    /// The quotes of an inline command do not match.
    #[error("Protocol error: unbalanced quotes in request")]
    Quotes,
}

fn shown(byte: u8) -> char {
    if byte.is_ascii_graphic() { char::from(byte) } else { ' ' }
}

/// Reads the commands of one connection.
#[derive(Debug)]
pub struct Parser {
    value_bytes_max: usize,
    command_bytes_max: usize,
    /// How far the current command was read. Counted from the start of the buffer.
    at: usize,
    /// How many arguments of the current command are still missing; 0 between two commands.
    missing: usize,
    /// The length of the argument being waited for.
    bulk: Option<usize>,
    spans: Spans,
}

enum Number {
    Cut,
    Wrong,
    Is { value: i64, end: usize },
}

impl Parser {
    /// Takes arguments up to this length from now on.
    pub fn set_argument_bytes_max(&mut self, bytes: usize) {
        self.value_bytes_max = bytes;
        self.command_bytes_max = COMMAND_BYTES_MAX.max(bytes + INLINE_BYTES_MAX * 2);
    }

    /// A parser that takes arguments up to this length.
    #[must_use]
    pub fn new(value_bytes_max: usize) -> Parser {
        Parser {
            value_bytes_max,
            command_bytes_max: COMMAND_BYTES_MAX.max(value_bytes_max + INLINE_BYTES_MAX * 2),
            at: 0,
            missing: 0,
            bulk: None,
            spans: Spans::default(),
        }
    }

    /// How many bytes of the buffer the command at its front takes, as far as it has announced; 0
    /// if nothing of it is known.
    #[must_use]
    pub fn announced(&self) -> usize {
        self.at + self.bulk.map_or(0, |length| length + 2)
    }

    /// How many bytes of memory are taken for what is known of it.
    #[must_use]
    pub fn room(&self) -> usize {
        self.spans.room()
    }

    /// Takes the next whole command off the front of `input`; `None` if there is none yet. Between
    /// two calls `input` may only be appended to.
    ///
    /// # Errors
    /// The input is no request. Nothing was executed; the connection cannot be read on.
    pub fn next(&mut self, input: &mut BytesMut) -> Result<Option<Command>, ProtocolError> {
        while self.missing == 0 {
            match input.first() {
                None => return Ok(None),
                Some(b'*') => {
                    if !self.start_array(input)? {
                        return Ok(None);
                    }
                }
                Some(_) => match self.inline(input)? {
                    None => return Ok(None),
                    Some(command) if command.len() > 0 => return Ok(Some(command)),
                    Some(_) => {}
                },
            }
        }
        self.arguments(input)
    }

    /// Reads the number of arguments; false if it is not there yet. An empty array is skipped, as
    /// Redis does.
    fn start_array(&mut self, input: &mut BytesMut) -> Result<bool, ProtocolError> {
        match number(input, 1) {
            Number::Cut => Ok(false),
            Number::Wrong => Err(ProtocolError::Arguments),
            Number::Is { value, .. } if value > COMMAND_ARGUMENTS_MAX as i64 => {
                Err(ProtocolError::Arguments)
            }
            Number::Is { value, end } if value <= 0 => {
                input.advance(end);
                Ok(true)
            }
            Number::Is { value, end } => {
                self.missing = value as usize;
                self.at = end;
                Ok(true)
            }
        }
    }

    fn arguments(&mut self, input: &mut BytesMut) -> Result<Option<Command>, ProtocolError> {
        while self.missing > 0 {
            let length = match self.bulk {
                Some(length) => length,
                None => match self.length(input)? {
                    Some(length) => length,
                    None => return Ok(None),
                },
            };
            let end = self.at + length;
            match input.get(end..end + 2) {
                Some(b"\r\n") => {}
                Some(_) => return Err(ProtocolError::LineEnd),
                None => {
                    self.bulk = Some(length);
                    return Ok(None);
                }
            }
            self.spans.push(self.at, end);
            self.at = end + 2;
            self.bulk = None;
            self.missing -= 1;
        }
        let bytes = input.split_to(self.at).freeze();
        self.at = 0;
        Ok(Some(Command::new(bytes, core::mem::take(&mut self.spans))))
    }

    fn length(&mut self, input: &[u8]) -> Result<Option<usize>, ProtocolError> {
        match input.get(self.at) {
            None => return Ok(None),
            Some(b'$') => {}
            Some(&got) => return Err(ProtocolError::Dollar { got }),
        }
        match number(input, self.at + 1) {
            Number::Cut => Ok(None),
            Number::Is { value, end } if value >= 0 && value <= self.value_bytes_max as i64 => {
                self.at = end;
                let limit = self.command_bytes_max;
                if end + value as usize + 2 > limit {
                    return Err(ProtocolError::Command { limit });
                }
                Ok(Some(value as usize))
            }
            Number::Is { value: length @ 0.., .. } => {
                Err(ProtocolError::TooLong { length, limit: self.value_bytes_max })
            }
            Number::Wrong | Number::Is { .. } => Err(ProtocolError::Length),
        }
    }

    fn inline(&mut self, input: &mut BytesMut) -> Result<Option<Command>, ProtocolError> {
        let window = &input[..input.len().min(INLINE_BYTES_MAX)];
        let Some(found) = window[self.at..].iter().position(|byte| *byte == b'\n') else {
            self.at = window.len();
            return if input.len() >= INLINE_BYTES_MAX {
                Err(ProtocolError::Inline)
            } else {
                Ok(None)
            };
        };
        let line = input.split_to(self.at + found + 1).freeze();
        self.at = 0;
        let line = line.slice(..line.len() - 1);
        inline::split(line).map(Some).ok_or(ProtocolError::Quotes)
    }
}

/// Reads a decimal number and its line end. Like Redis, no leading zero and no plus sign.
#[inline]
fn number(bytes: &[u8], start: usize) -> Number {
    let negative = bytes.get(start) == Some(&b'-');
    let first = start + usize::from(negative);
    let mut value = 0i64;
    let mut at = first;
    loop {
        match bytes.get(at) {
            None => return Number::Cut,
            Some(digit @ b'0'..=b'9') if at < first + 18 && (value > 0 || at == first) => {
                value = value * 10 + i64::from(digit - b'0');
            }
            Some(b'\r') if at > first => break,
            Some(_) => return Number::Wrong,
        }
        at += 1;
    }
    match bytes.get(at + 1) {
        None => Number::Cut,
        Some(b'\n') if !(negative && value == 0) => {
            Number::Is { value: if negative { -value } else { value }, end: at + 2 }
        }
        Some(_) => Number::Wrong,
    }
}
