//! Decides what a connection sends next, in a closed and in an open loop.

use quorate_kernel::time::Time;

use super::connection::{Pending, Phase};
use super::{Client, Stage};
use crate::config::Wire;
use crate::error::BenchError;
use crate::load::mixes::{Kind, Operation, Source};
use crate::zookeeper::nodes;

/// The command that every connection begins with; empty for none.
pub fn setup_command(wire: Wire, keyspace: Option<&str>) -> Vec<u8> {
    if wire == Wire::ZooKeeper {
        return nodes::connect();
    }
    let command = |name: &str| {
        let length = name.len();
        format!("*2\r\n$6\r\nSELECT\r\n${length}\r\n{name}\r\n").into_bytes()
    };
    keyspace.map(command).unwrap_or_default()
}

impl<S: Source> Client<S> {
    /// Begins to use an open connection.
    pub(super) fn set_up(&mut self, index: usize) -> Result<(), BenchError> {
        let now = self.now();
        if self.setup.is_empty() {
            self.connections[index].phase = Phase::Ready;
            return self.send_next(index, now);
        }
        self.write_buffer.clear();
        self.write_buffer.extend_from_slice(&self.setup);
        self.push(index, now, Operation { kind: Kind::Setup, key: 0 });
        self.send_buffer(index)
    }

    /// Sends what a connection may send after replies came.
    pub(super) fn send_next(&mut self, index: usize, now: Time) -> Result<(), BenchError> {
        if self.connections[index].phase != Phase::Ready {
            return Ok(());
        }
        if self.schedule.is_some() {
            return self.send_follows(index, now);
        }
        if !self.connections[index].in_flight.is_empty() {
            return Ok(());
        }
        self.write_buffer.clear();
        for _ in 0..self.manner.pipeline_depth {
            if !self.may_begin() {
                break;
            }
            let operation = match self.connections[index].follows.pop() {
                Some(key) => self.source.follow(key, &mut self.write_buffer),
                None => match self.source.next(&mut self.write_buffer) {
                    Some(operation) => operation,
                    None => {
                        self.is_exhausted = true;
                        break;
                    }
                },
            };
            self.push(index, now, operation);
        }
        self.send_buffer(index)
    }

    /// In an open loop, writes follow their reads at once, outside the timetable.
    fn send_follows(&mut self, index: usize, now: Time) -> Result<(), BenchError> {
        self.write_buffer.clear();
        while let Some(key) = self.connections[index].follows.pop() {
            if self.may_begin() {
                let operation = self.source.follow(key, &mut self.write_buffer);
                self.push(index, now, operation);
            }
        }
        self.list_if_free(index);
        self.send_buffer(index)
    }

    /// In an open loop, sends what is due, as far as connections have room.
    pub(super) fn send_due(&mut self, now: Time) -> Result<(), BenchError> {
        loop {
            let Some(schedule) = &mut self.schedule else { return Ok(()) };
            let due_count = schedule.due_count(now);
            let free_count = self.free.len() as u64;
            if due_count == 0 || free_count == 0 || !self.may_begin() {
                return Ok(());
            }
            let index = self.free.pop_front().expect("it has just been seen to hold something");
            let connection = &mut self.connections[index];
            connection.is_listed = false;
            if connection.phase != Phase::Ready {
                continue;
            }
            let room = self.manner.pipeline_depth - connection.in_flight.len();
            let share = (due_count / free_count).max(1).min(room as u64);
            self.write_buffer.clear();
            for _ in 0..share {
                self.push_due(index);
            }
            self.list_if_free(index);
            self.send_buffer(index)?;
        }
    }

    fn push_due(&mut self, index: usize) {
        if !self.may_begin() {
            return;
        }
        let Some(operation) = self.source.next(&mut self.write_buffer) else {
            self.is_exhausted = true;
            return;
        };
        if let Some(schedule) = &mut self.schedule {
            let due = schedule.take();
            self.push(index, due, operation);
        }
    }

    /// Counts an operation as begun; its command is in the write buffer.
    fn push(&mut self, index: usize, begun: Time, operation: Operation) {
        if self.in_flight_count == 0 {
            self.recorder.resume(begun);
        }
        let connection = &mut self.connections[index];
        if connection.in_flight.is_empty() && connection.failure_count == 0 {
            connection.gap.resume(begun);
        }
        connection.in_flight.push_back(Pending { begun, operation });
        self.in_flight_count += 1;
        self.command_count += 1;
        let is_counted = self.stage == Stage::Measuring && operation.kind != Kind::Setup;
        self.begun_count += u64::from(is_counted);
    }

    fn list_if_free(&mut self, index: usize) {
        let depth = self.manner.pipeline_depth;
        let connection = &mut self.connections[index];
        if connection.in_flight.len() < depth && !connection.is_listed {
            connection.is_listed = true;
            self.free.push_back(index);
        }
    }

    fn send_buffer(&mut self, index: usize) -> Result<(), BenchError> {
        if self.write_buffer.is_empty() {
            return Ok(());
        }
        match self.connections[index].send(&self.write_buffer) {
            Ok(()) => Ok(()),
            Err(error) => self.on_break(index, &error.to_string()),
        }
    }
}
