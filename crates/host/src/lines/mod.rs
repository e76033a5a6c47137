//! A whole door for tests, and for whoever writes one: `GET key` and `PUT key value` by lines.
//!
//! `WITHIN ms` sets how long each later request may take. Answers are `= value`, `-` for a key that
//! is absent, `OK` and `ERROR why`. A session has one request in hand and reads the next line when
//! it was answered.

mod tests;

use bytes::{Buf, Bytes, BytesMut};
use quorate_doors::{Clock, Connected, Door, Protocol, Requests, Serving, Session, Shortage};
use quorate_kernel::limits::CLIENT_QUEUE_BYTES_MAX;
use quorate_kernel::operation::{Operation, Outcome};
use quorate_kernel::rope::Rope;
use quorate_kernel::time::Span;
use std::sync::Arc;

/// The longest line in bytes.
const LINE_BYTES_MAX: usize = 1 << 20;

/// For people with `telnet` or `nc`: a command a line.
pub(super) const DOOR: Door =
    Door { name: "lines", clients: "people", port: 7499, open: |_| Box::new(Lines) };

struct Lines;

impl Protocol for Lines {
    fn open(&mut self, _: Connected, serving: &Arc<Serving>) -> Box<dyn Session> {
        Box::new(Line {
            serving: Arc::clone(serving),
            within: None,
            in_hand: 0,
            leftover: 0,
            output: Rope::default(),
            is_draining: false,
        })
    }

    fn turn_away(&self, shortage: &Shortage) -> Bytes {
        Bytes::from(format!("ERROR {shortage}\n"))
    }
}

/// One connection.
struct Line {
    serving: Arc<Serving>,
    within: Option<Span>,
    /// The length of the request in hand; 0 if there is none.
    in_hand: usize,
    /// How many bytes of input were left when no whole line was among them.
    leftover: usize,
    output: Rope,
    is_draining: bool,
}

impl Line {
    fn say(&mut self, text: &str) {
        self.output.push_slice(text.as_bytes());
        self.output.push_slice(b"\n");
    }

    fn on_line(&mut self, line: Bytes, out: &mut dyn Requests) {
        let mut words = line.splitn(3, |byte| *byte == b' ').map(|word| line.slice_ref(word));
        let operation = match (words.next().as_deref(), words.next(), words.next()) {
            (Some(b"GET"), Some(key), None) => Operation::get(key),
            (Some(b"PUT"), Some(key), Some(value)) => Operation::put(key, value),
            (Some(b"WITHIN"), Some(ms), None) => {
                let ms = std::str::from_utf8(&ms).ok().and_then(|text| text.parse().ok());
                self.within = ms.map(Span::millis);
                return self.say(if ms.is_some() { "OK" } else { "ERROR no number" });
            }
            _ => return self.say("ERROR expected GET key, PUT key value or WITHIN ms"),
        };
        let Some(served) = self.serving.numbered(0) else {
            return self.say("ERROR no keyspace is open");
        };
        if let Some(lacks) = served.engine.lacks(&operation) {
            return self.say(&format!("ERROR it needs {lacks}"));
        }
        self.in_hand = line.len();
        out.start(0, served.keyspace.lane, operation, self.within);
    }
}

impl Session for Line {
    fn feed(&mut self, input: &mut BytesMut, _: Clock, out: &mut dyn Requests) {
        self.leftover = 0;
        while self.wants_input() {
            let Some(end) = input.iter().position(|byte| *byte == b'\n') else {
                self.leftover = input.len();
                if self.leftover > LINE_BYTES_MAX {
                    self.say("ERROR the line is too long");
                    self.is_draining = true;
                }
                break;
            };
            let line = input.split_to(end).freeze();
            input.advance(1);
            self.on_line(line, out);
        }
        if self.is_draining {
            input.clear();
        }
    }

    fn complete(&mut self, _: u32, outcome: Outcome, _: Clock, _: &mut dyn Requests) {
        self.in_hand = 0;
        match outcome {
            Outcome::Values { values, .. } => match values.into_one() {
                Ok(Some(value)) => {
                    self.output.push_slice(b"= ");
                    self.output.push(value);
                    self.output.push_slice(b"\n");
                }
                Ok(None) => self.say("-"),
                Err(_) => self.say("ERROR the key has several values"),
            },
            Outcome::Written { .. } => self.say("OK"),
            Outcome::Refused(refusal) => self.say(&format!("ERROR {refusal}")),
            _ => self.say("ERROR the engine answered another question"),
        }
    }

    fn output(&mut self) -> &mut Rope {
        &mut self.output
    }

    fn wants_input(&self) -> bool {
        !self.is_draining && self.in_hand == 0 && self.output.len() < CLIENT_QUEUE_BYTES_MAX
    }

    fn wants_feed(&self, input: &BytesMut) -> bool {
        input.len() > self.leftover && self.wants_input()
    }

    fn begun_bytes(&self, input: &BytesMut) -> usize {
        input.len()
    }

    fn held_bytes(&self) -> usize {
        self.in_hand + self.output.len()
    }

    fn is_waiting_for_rest(&self, input: &BytesMut) -> bool {
        !input.is_empty() && input.len() == self.leftover && self.wants_input()
    }

    fn refuse(&mut self, shortage: &Shortage) {
        self.say(&format!("ERROR {shortage}"));
        self.is_draining = true;
    }

    fn set_serving(&mut self, serving: &Arc<Serving>) {
        self.serving = Arc::clone(serving);
    }

    fn finish(&mut self) {
        self.is_draining = true;
    }

    fn is_closing(&self) -> bool {
        self.is_draining && self.in_hand == 0
    }
}
