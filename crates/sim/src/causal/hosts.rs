//! How hosts work: inputs, turns, disks, starts.

use super::World;
use crate::host::{Host, LANE, Running, Surroundings};
use crate::queue::{Event, HostIndex};
use quorate_kernel::error::Fatal;
use quorate_kernel::process::Request;
use quorate_kernel::time::Span;
use quorate_node::lanes::LaneSpec;
use quorate_node::pump::Input;

impl World<'_> {
    /// Hands an input to a host: handled at once, or by the turn that is due.
    pub(super) fn arrive(&mut self, host: HostIndex, input: Input) {
        self.hosts[host].receive(input);
        self.kick(host);
        self.settle();
    }

    pub(super) fn kick(&mut self, host: HostIndex) {
        if self.hosts[host].running != Running::Up || self.hosts[host].is_turn_due {
            return;
        }
        if self.turn_delay == 0 {
            return self.one_turn(host);
        }
        self.hosts[host].is_turn_due = true;
        let life = self.hosts[host].life;
        self.queue.push(self.now + self.turn_delay, Event::Turn { host, life });
    }

    /// Runs a turn of a host and gives its answers to the clients.
    pub(super) fn turn(&mut self, host: HostIndex) {
        self.one_turn(host);
        self.settle();
    }

    fn one_turn(&mut self, host: HostIndex) {
        if self.hosts[host].running != Running::Up {
            return;
        }
        let (target, mut around) = self.lend(host);
        let result = target.turn(&mut around);
        self.check_fatal(host, result);
        self.hosts[host].settle();
    }

    fn lend(&mut self, host: HostIndex) -> (&mut Host, Surroundings<'_>) {
        let around = Surroundings {
            now: self.now,
            net: &mut self.net,
            queue: &mut self.queue,
            directory: &self.directory,
            answers: &mut self.answers,
        };
        (&mut self.hosts[host], around)
    }

    fn check_fatal(&mut self, host: HostIndex, result: Result<(), Fatal>) {
        if let Err(fatal) = result {
            self.condemn("fatal", format!("n{} had to stop: {fatal}", host + 1));
        }
    }

    /// Passes answers to clients and their next requests to hosts, until nothing is left.
    pub(super) fn settle(&mut self) {
        while !self.answers.is_empty() || !self.clients.submissions.is_empty() {
            for (ticket, outcome) in std::mem::take(&mut self.answers) {
                self.clients.on_answer(ticket, outcome, self.now, &mut self.queue, &mut self.trace);
            }
            for submission in std::mem::take(&mut self.clients.submissions) {
                let host = submission.host;
                let local = self.hosts[host].clock.local(self.now);
                let within = Span::millis(self.prepared.scenario.workload.deadline_ms);
                let deadline = local + within;
                let request = Request { operation: submission.operation, deadline };
                let ticket = submission.ticket;
                self.hosts[host].receive(Input::Request { lane: LANE, ticket, request });
                self.kick(host);
            }
        }
    }

    /// A wake is due; it may be for a timer that was moved since.
    pub(super) fn wake(&mut self, host: HostIndex) {
        let (target, mut around) = self.lend(host);
        if target.running == Running::Up && target.is_awake(&mut around) {
            self.turn(host);
        }
    }

    /// The disk thread of a host has done something.
    pub(super) fn disk_event(&mut self, host: HostIndex, life: u32, event: Event) {
        self.trace.event(self.now, 64 + host as u64, u64::from(life));
        if self.hosts[host].life != life {
            return;
        }
        if self.hosts[host].running == Running::Paused {
            return self.hosts[host].stalled.push(event);
        }
        let disk = &mut self.hosts[host].disk;
        let result = match event {
            Event::Written { .. } => disk.on_written(self.now, &mut self.queue),
            Event::Synced { .. } => disk.on_synced(self.now, &mut self.queue),
            _ => return disk.on_interval(self.now, &mut self.queue),
        };
        match result {
            Ok(durable) => {
                self.trace.note(durable.written.0 << 32 | durable.synced.0);
                self.arrive(host, Input::Durable(durable));
            }
            Err(fatal) => self.condemn("fatal", format!("n{}: {fatal}", host + 1)),
        }
    }

    /// Starts a host's process.
    pub(super) fn start_host(&mut self, host: HostIndex) {
        let spec = LaneSpec {
            lane: LANE,
            durability: self.prepared.scenario.durability(),
            recovery: self.hosts[host].recovery(),
            process: self.lane(),
        };
        let (target, mut around) = self.lend(host);
        let result = target.launch(vec![spec], &mut around);
        self.check_fatal(host, result);
        self.trace.line(self.now, format_args!("n{} starts", host + 1));
        self.clients.open(host, true);
        self.hosts[host].settle();
        self.settle();
    }
}
