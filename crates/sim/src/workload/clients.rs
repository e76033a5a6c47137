//! The clients of one keyspace with their workload: what happens to them, and the stages that they
//! go through.

use super::Workload;
use super::fleet::{Fleet, Seat, Stage};
use crate::hosts::machines::Scene;
use crate::queue::{Event, HostIndex};
use quorate_kernel::ids::Ticket;
use quorate_kernel::operation::Outcome;
use quorate_kernel::time::Time;

/// How much more time an operation gets that must succeed: a single sync may take most of a second.
const DEMAND_TIMES: u64 = 12;

/// The clients of one keyspace, and what they do.
pub struct Clients {
    /// The clients.
    pub fleet: Fleet,
    /// What they do.
    pub work: Box<dyn Workload>,
}

impl Clients {
    /// The clients begin.
    pub fn start(&mut self, scene: &mut Scene<'_>) {
        self.work.start(&mut self.fleet, scene);
    }

    /// Whether a client of the world is one of these.
    #[must_use]
    pub fn has(&self, number: usize) -> bool {
        (self.fleet.first..self.fleet.first + self.fleet.seats.len()).contains(&number)
    }

    /// A client's think time is over, or it may try to connect again.
    pub fn on_client(&mut self, number: usize, connection: u32, scene: &mut Scene<'_>) {
        let client = number - self.fleet.first;
        let seat = &self.fleet.seats[client];
        if seat.connection != connection || seat.open > 0 {
            return;
        }
        if self.fleet.stage == Stage::Over || self.work.is_done(client, &self.fleet) {
            return self.finish(client, scene);
        }
        if self.fleet.connect(client, scene) {
            self.work.on_client(client, &mut self.fleet, scene);
        }
    }

    /// A host answered.
    pub fn on_answer(&mut self, ticket: Ticket, outcome: Outcome, scene: &mut Scene<'_>) {
        let asked = self.fleet.asked[ticket.0 as usize];
        let stands = |client: usize| self.fleet.seats[client].connection == asked.connection;
        if asked.client.is_none_or(stands) {
            self.work.on_answer(asked, outcome, &mut self.fleet, scene);
        }
    }

    /// Looks whether a client has waited too long.
    pub fn on_patience(&mut self, number: usize, scene: &mut Scene<'_>) {
        let client = number - self.fleet.first;
        let seat = &mut self.fleet.seats[client];
        seat.is_watched = false;
        if seat.open == 0 {
            return;
        }
        if scene.now >= seat.patient_until {
            return self.abandon(client, scene);
        }
        seat.is_watched = true;
        scene.queue.push(seat.patient_until, Event::Patience { client: number });
    }

    /// Gives up all open operations of a client and lets it connect elsewhere.
    fn abandon(&mut self, client: usize, scene: &mut Scene<'_>) {
        self.work.on_silence(client, &mut self.fleet, scene);
        assert_eq!(self.fleet.seats[client].open, 0, "all that was open was given up");
        self.fleet.disconnect(client);
        self.fleet.connect_later(client, scene);
    }

    /// A host accepts connections from now on.
    pub fn on_host_started(&mut self, host: HostIndex) {
        self.fleet.open[host] = true;
    }

    /// A host's process has ended: its connections break.
    pub fn on_host_stopped(&mut self, host: HostIndex, scene: &mut Scene<'_>) {
        self.fleet.open[host] = false;
        self.break_connections(|its| its == host, scene);
    }

    /// From now on only these hosts are asked.
    pub fn restrict(&mut self, usable: &[bool], scene: &mut Scene<'_>) {
        self.fleet.usable.copy_from_slice(usable);
        self.break_connections(|host| !usable[host], scene);
    }

    fn break_connections(&mut self, breaks: impl Fn(HostIndex) -> bool, scene: &mut Scene<'_>) {
        for client in 0..self.fleet.seats.len() {
            if self.fleet.seats[client].host.is_some_and(&breaks) {
                self.abandon(client, scene);
            }
        }
    }

    /// Everything was lost, and with it every connection.
    pub fn on_blackout(&mut self) {
        let is_idle = |seat: &Seat| seat.open == 0;
        assert!(self.fleet.seats.iter().all(is_idle), "every connection is broken");
        self.work.on_blackout();
    }

    /// The keyspace was made again, from nothing, and every connection broke with the old one.
    pub fn on_renewal(&mut self, scene: &mut Scene<'_>) {
        self.break_connections(|_| true, scene);
        self.on_blackout();
    }

    /// Every operation begun from now on must succeed.
    pub fn demand(&mut self, scene: &mut Scene<'_>) {
        self.fleet.section.deadline_ms *= DEMAND_TIMES;
        self.fleet.section.patience_ms *= DEMAND_TIMES;
        self.begin_stage(Stage::Demand, scene);
    }

    fn begin_stage(&mut self, stage: Stage, scene: &mut Scene<'_>) {
        let fleet = &mut self.fleet;
        fleet.stage = stage;
        fleet.done.fill(false);
        self.work.on_stage(stage, Time(scene.now));
        for client in 0..fleet.seats.len() {
            fleet.seats[client].left = fleet.demanded;
            if fleet.seats[client].open == 0 {
                // Leaving also voids the end of its think time.
                fleet.disconnect(client);
                fleet.wake(client, 0, scene);
            }
        }
    }

    /// A client has done all that its stage asks; the last one begins the next.
    fn finish(&mut self, client: usize, scene: &mut Scene<'_>) {
        self.fleet.done[client] = true;
        if self.fleet.done.contains(&false) {
            return;
        }
        match self.fleet.stage {
            Stage::Free => {}
            Stage::Demand => self.begin_stage(Stage::Final, scene),
            Stage::Final | Stage::Over => self.fleet.stage = Stage::Over,
        }
    }

    /// Who still waits, for the message of a liveness violation.
    #[must_use]
    pub fn waiting(&self) -> String {
        let waits = |client: &usize| !self.fleet.done[*client];
        let shown = |client: usize| {
            let seat = &self.fleet.seats[client];
            let host = seat.host.map_or("nobody".to_owned(), |host| format!("n{}", host + 1));
            let name = self.fleet.name(client);
            format!("{name} ({} open, connected to {host})", seat.open)
        };
        let waiting = (0..self.fleet.seats.len()).filter(waits).map(shown);
        waiting.collect::<Vec<_>>().join(", ")
    }
}
