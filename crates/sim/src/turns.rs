//! How the world lets its hosts work: inputs, turns, answers, disks and starts.

use crate::host::{Host, LANE, Running, Surroundings};
use crate::membership::NOBODY;
use crate::queue::{Event, HostIndex};
use crate::world::World;
use quorate_kernel::error::Fatal;
use quorate_kernel::process::Request;
use quorate_kernel::rng::Rng;
use quorate_kernel::time::Span;
use quorate_node::pump::Input;

impl World<'_> {
    /// Hands an input to a host: handled at once, or by the turn that is due.
    pub(crate) fn arrive(&mut self, host: HostIndex, input: Input) {
        self.hosts[host].receive(input);
        if self.hosts[host].running != Running::Up {
            return;
        }
        if self.turn_delay == 0 {
            return self.turn(host);
        }
        if !self.hosts[host].is_turn_due {
            self.hosts[host].is_turn_due = true;
            let life = self.hosts[host].life;
            self.queue.push(self.now + self.turn_delay, Event::Turn { host, life });
        }
    }

    /// Runs a turn of a host and gives its answers to the clients.
    pub(crate) fn turn(&mut self, host: HostIndex) {
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

    /// A host, and the rest of the world as it may use it.
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
    pub(crate) fn settle(&mut self) {
        while !self.answers.is_empty() || !self.workload.submissions.is_empty() {
            let mut answers = std::mem::take(&mut self.answers);
            for (ticket, outcome) in answers.drain(..) {
                if ticket == NOBODY {
                    continue;
                }
                let (queue, trace) = (&mut self.queue, &mut self.trace);
                self.workload.on_answer(ticket, outcome, self.now, queue, trace);
            }
            if self.answers.is_empty() {
                self.answers = answers;
            }
            let mut submissions = std::mem::take(&mut self.workload.submissions);
            for submission in submissions.drain(..) {
                let host = submission.host;
                let local = self.hosts[host].clock.local(self.now);
                let deadline = local + Span::millis(self.workload.deadline_ms());
                let request = Request { operation: submission.operation, deadline };
                let ticket = submission.ticket;
                self.hosts[host].receive(Input::Request { lane: LANE, ticket, request });
                self.kick(host);
            }
            if self.workload.submissions.is_empty() {
                self.workload.submissions = submissions;
            }
        }
    }

    /// Like [`World::arrive`] for what was received already, without settling.
    fn kick(&mut self, host: HostIndex) {
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

    /// A wake is due; it may be for a timer that was moved since.
    pub(crate) fn wake(&mut self, host: HostIndex) {
        let (target, mut around) = self.lend(host);
        if target.running == Running::Up && target.is_awake(&mut around) {
            self.trace.line(self.now, format_args!("n{} wake", host + 1));
            self.turn(host);
        }
    }

    /// The disk thread of a host has done something.
    pub(crate) fn disk_event(&mut self, host: HostIndex, life: u32, event: Event) {
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
                let (written, synced) = (durable.written.0, durable.synced.0);
                self.trace.note(written << 32 | synced);
                let number = host + 1;
                let line = format_args!("n{number} written {written}, synced {synced}");
                self.trace.line(self.now, line);
                self.arrive(host, Input::Durable(durable));
            }
            Err(fatal) => self.on_disk_failure(host, &fatal),
        }
    }

    /// Starts a host's process.
    pub(crate) fn start_host(&mut self, host: HostIndex) {
        let (scenario, node, wrap) = (&self.prepared.scenario, self.hosts[host].node_id, self.wrap);
        let catalog = self.founders.catalog(scenario, node);
        // The choice of tokens is the host's, and the same each time it starts.
        let mut rng = Rng::new(node.0);
        let joined = self.hosts.iter().enumerate().filter(|(_, host)| host.has_joined);
        let present: Vec<_> = joined.map(|(index, host)| (host.node_id, index)).collect();
        let overlay = self.founders.overlay(scenario, node, host, &present, &mut rng);
        let (target, mut around) = self.lend(host);
        let pace = crate::host::pace(Span::millis(scenario.purge_ms), scenario.balance.as_ref());
        let result = target.start(overlay, &catalog, pace, wrap, &mut around);
        self.check_fatal(host, result);
        self.trace.line(self.now, format_args!("n{} starts", host + 1));
        self.workload.on_host_started(host);
        self.hosts[host].settle();
        self.settle();
    }
}
