//! A connection as the host sees it: what it is given, and what it says of itself.

use super::{OPERATIONS_MAX, Session, follow, on_outcome};
use crate::door::{self, Requests, Shortage};
use crate::host::{Clock, Serving};
use crate::resp::shared::argument_bytes_max;
use crate::resp::transaction::Queue;
use crate::resp::work::Work;
use alloc::format;
use alloc::sync::Arc;
use bytes::BytesMut;
use quorate_kernel::expiry::Lifetime;
use quorate_kernel::limits::{
    CLIENT_PENDING_BYTES_MAX, CLIENT_QUEUE_BYTES_MAX, CLIENT_READ_BYTES_MAX, PIPELINE_COMMANDS_MAX,
};
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::rope::Rope;
use quorate_kernel::transaction::{Copied, ItemOutcome};

impl door::Session for Session {
    fn feed(&mut self, input: &mut BytesMut, clock: Clock, out: &mut dyn Requests) {
        self.client.on_input(clock.now);
        self.go_on(clock.wall, out);
        self.leftover = 0;
        while self.wants_input() {
            match self.parser.next(input) {
                Ok(Some(command)) => self.on_command(command, clock, out),
                Ok(None) => {
                    self.leftover = input.len();
                    break;
                }
                Err(error) => self.end_with(format!("ERR {error}")),
            }
        }
        self.follow(out);
        if self.is_draining {
            input.clear();
        }
    }

    fn complete(&mut self, number: u32, outcome: Outcome, clock: Clock, out: &mut dyn Requests) {
        if number == follow::NUMBER {
            return self.on_happened(outcome, out);
        }
        let Some(ended) = self.flights.end(number) else { return };
        let length = match &outcome {
            Outcome::Values { values, .. } => {
                ended.key.into_iter().for_each(|key| self.client.watched.on_read(key, values));
                Some(values.bytes())
            }
            Outcome::Transacted(told) => {
                for (key, told) in ended.items.iter().zip(told) {
                    match told {
                        ItemOutcome::Value(value) => {
                            self.client.watched.on_read(*key, &value.clone().into());
                        }
                        ItemOutcome::Lifetime(lifetime) => {
                            let is_there = *lifetime != Lifetime::Absent;
                            self.client.watched.on_seen(*key, is_there);
                        }
                        ItemOutcome::Copied(Copied::NoSource) => {
                            self.client.watched.on_seen(*key, false);
                        }
                        _ => {}
                    }
                }
                Some(told.iter().map(ItemOutcome::bytes).sum())
            }
            _ => None,
        };
        if let Some(length) = length.filter(|_| ended.is_read) {
            self.expected = length.max(self.expected - self.expected / 16);
        }
        let at = ended.command.wrapping_sub(self.front) as usize;
        let command = &mut self.pending[at];
        command.running -= 1;
        let before = command.work.held();
        let is_last = command.running == 0;
        on_outcome(&mut self.client, command, ended.index, outcome, (is_last, clock.wall));
        self.held = self.held - before + command.work.held();
        if matches!(command.work, Work::Done(_)) {
            // Nothing is read behind a command that holds back the rest, so it is always the last.
            if at + 1 == self.pending.len() {
                self.barrier = false;
            }
            if at == 0 {
                self.flush();
            }
        }
        self.client.now = clock.now;
        self.go_on(clock.wall, out);
        self.follow(out);
    }

    fn output(&mut self) -> &mut Rope {
        &mut self.output
    }

    fn wants_input(&self) -> bool {
        !self.is_draining
            && !self.barrier
            && !self.is_issuing()
            && !self.flights.has_ready()
            && self.pending.len() < PIPELINE_COMMANDS_MAX
            && self.pending_bytes < CLIENT_PENDING_BYTES_MAX
            && self.flights.len() < OPERATIONS_MAX
            && self.held < CLIENT_READ_BYTES_MAX
            && self.output.len() < CLIENT_QUEUE_BYTES_MAX
    }

    fn wants_feed(&self, input: &BytesMut) -> bool {
        let is_held_back = self.flights.has_ready() && self.may_start();
        is_held_back || (input.len() > self.leftover && self.wants_input())
    }

    fn begun_bytes(&self, input: &BytesMut) -> usize {
        let begun = input.len().max(self.parser.announced()) + self.parser.room();
        if input.is_empty() { 0 } else { begun }
    }

    fn held_bytes(&self) -> usize {
        let queued = self.client.queue.as_ref().map_or(0, Queue::bytes);
        let held = self.held + self.untold.bytes() + self.output.len();
        self.pending_bytes + queued + self.client.watched.bytes() + held
    }

    fn is_waiting_for_rest(&self, input: &BytesMut) -> bool {
        !input.is_empty() && input.len() == self.leftover && self.wants_input()
    }

    fn refuse(&mut self, shortage: &Shortage) {
        let code = match shortage {
            Shortage::Memory { .. } => "OVERLOADED",
            Shortage::Clients | Shortage::Unfinished { .. } => "ERR",
        };
        self.end_with(format!("{code} {shortage}"));
    }

    fn set_serving(&mut self, serving: &Arc<Serving>) {
        self.parser.set_argument_bytes_max(argument_bytes_max(serving));
        self.serving = Arc::clone(serving);
    }

    fn finish(&mut self) {
        if self.follows {
            self.end_watch(&Refusal::Stopping);
        }
        self.is_draining = true;
    }

    fn is_closing(&self) -> bool {
        self.is_draining && self.pending.is_empty()
    }
}
