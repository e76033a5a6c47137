//! Reads, writes and deletes of registers, and listings of their keys.
//!
//! A client sends a batch at a time, some of them through a RESP session. After the faults each
//! must get a few operations through (the demand), and then reads every key (the final gets).

pub mod client;
pub mod door;
pub(super) mod promise;
mod shown;

use super::fleet::{Addressee, End, Fleet, Stage};
use super::section::WorkloadSection;
use super::{Demand, Findings, Ground, Workload};
use crate::fault::What;
use crate::hosts::machines::Scene;
use crate::queue::HostIndex;
use bytes::Bytes;
use client::{Client, Flight};
use quorate_check::Judges;
use quorate_check::history::{ClientId, Completion, History, Recorder};
use quorate_check::newest;
use quorate_kernel::operation::{Operation, Outcome};
use quorate_kernel::rng::Rng;
use quorate_kernel::time::{Span, Time};
use shown::{Shown, ShownEnd, outcome_word};

/// How many refusals of a million make a client try another host.
const LEAVE_PPM: u32 = 300_000;

/// What the clients of registers do, and what they saw.
pub struct Registers {
    section: WorkloadSection,
    keys: Vec<Bytes>,
    clients: Vec<Client>,
    started: Vec<(u32, Operation)>,
    told: Vec<(usize, Completion)>,
    is_final: bool,
    /// The history since everything was lost, if it ever was.
    recorder: Recorder,
    /// The histories before.
    past: Vec<History>,
}

impl Registers {
    /// Nothing was asked yet.
    #[must_use]
    pub fn new(section: &WorkloadSection, rng: &mut Rng) -> Registers {
        let keys = rng.between(section.keys_min, section.keys);
        let client = |index: usize| Client::new(index, section, rng.fork(index as u64));
        Registers {
            section: section.clone(),
            keys: (0..keys).map(|key| Bytes::from(format!("k{key}"))).collect(),
            clients: (0..section.clients).map(client).collect(),
            started: Vec::new(),
            told: Vec::new(),
            is_final: false,
            recorder: Recorder::default(),
            past: Vec::new(),
        }
    }

    /// Sends what a client, or the session at its host, has started.
    fn send(&mut self, client: usize, fleet: &mut Fleet) {
        if fleet.seats[client].host.is_none() {
            return self.started.clear();
        }
        for (number, operation) in self.started.drain(..) {
            fleet.send(client, number, Demand::Operation(operation));
        }
    }

    /// Ends one operation of a client.
    fn conclude(
        &mut self,
        index: usize,
        flight: usize,
        completion: Completion,
        fleet: &mut Fleet,
        scene: &mut Scene<'_>,
    ) {
        let client = &mut self.clients[index];
        let Flight { id, is_open } = client.flights[flight];
        if !is_open {
            let name = fleet.name(index);
            fleet.failure.get_or_insert(format!("{name}: an operation was answered twice"));
            return;
        }
        client.flights[flight].is_open = false;
        let (name, shown) = (fleet.name(index), ShownEnd(&completion));
        scene.line(format_args!("{name} #{flight}: {shown}"));
        let end = match &completion {
            Completion::Refused => End::Refused,
            Completion::Unknown => End::Unknown,
            Completion::Page { next, .. } if !self.is_final => {
                client.scan.clone_from(next);
                End::Answered
            }
            _ => End::Answered,
        };
        fleet.end(index, end, &|| shown.to_string());
        self.recorder.complete(id, completion, Time(scene.now));
    }
}

impl Workload for Registers {
    fn on_stage(&mut self, stage: Stage, now: Time) {
        self.clients.iter_mut().for_each(|client| client.scan = None);
        self.is_final = stage == Stage::Final;
        if stage == Stage::Demand {
            self.recorder.heal(now);
        }
    }

    fn is_done(&self, client: usize, fleet: &Fleet) -> bool {
        let its = &self.clients[client];
        match fleet.stage {
            Stage::Free | Stage::Demand => fleet.seats[client].left == 0 && its.scan.is_none(),
            Stage::Final => its.next_final == self.keys.len(),
            Stage::Over => true,
        }
    }

    fn on_client(&mut self, index: usize, fleet: &mut Fleet, scene: &mut Scene<'_>) {
        let (client, seat) = (&mut self.clients[index], &mut fleet.seats[index]);
        let host = seat.host.expect("a client asks when it is connected");
        client.meet(seat);
        if fleet.stage == Stage::Final {
            let key = self.keys[client.next_final].clone();
            client.next_final += 1;
            client.asked.clear();
            client.asked.push(Operation::get(key));
        } else {
            client.draw_batch(seat, &self.section, &self.keys);
        }
        client.flights.clear();
        let (number, now) = (fleet.first + index, Time(scene.now));
        for operation in &client.asked {
            let id = self.recorder.invoke(ClientId(index as u32), operation.clone(), now);
            client.flights.push(Flight { id, is_open: true });
            let arrow = if client.door.is_some() { "~>" } else { "->" };
            scene.line(format_args!("c{number} {} {arrow} n{}", Shown(operation), host + 1));
        }
        fleet.begin(index, client.flights.len(), false, scene);
        if let Some((_, door)) = &mut client.door {
            door.send(&client.asked, &mut fleet.seats[index].rng, &mut self.started);
        } else {
            let asked = client.asked.drain(..).enumerate();
            self.started.extend(asked.map(|(flight, operation)| (flight as u32, operation)));
        }
        self.send(index, fleet);
    }

    fn on_answer(
        &mut self,
        asked: Addressee,
        outcome: Outcome,
        fleet: &mut Fleet,
        scene: &mut Scene<'_>,
    ) {
        let index = asked.client.expect("only clients ask for registers");
        scene.trace.note(u64::from(asked.number) << 8 ^ outcome_word(&outcome));
        let told = &mut self.told;
        if let Some((_, door)) = &mut self.clients[index].door {
            let mut tell = |flight, end| told.push((flight, end));
            let result = door.complete(asked.number, outcome, &mut self.started, &mut tell);
            if let Err(message) = result {
                let name = fleet.name(index);
                fleet.failure.get_or_insert(format!("{name}: {message}"));
            }
        } else {
            told.push((asked.number as usize, outcome.into()));
        }
        let mut told = std::mem::take(&mut self.told);
        let mut is_refused = false;
        for (flight, completion) in told.drain(..) {
            is_refused |= matches!(completion, Completion::Refused | Completion::Unknown);
            self.conclude(index, flight, completion, fleet, scene);
        }
        self.told = told;
        self.send(index, fleet);
        if fleet.seats[index].open == 0 {
            fleet.go_on(index, if is_refused { LEAVE_PPM } else { 0 }, scene);
        }
    }

    fn on_silence(&mut self, client: usize, fleet: &mut Fleet, scene: &mut Scene<'_>) {
        for flight in 0..self.clients[client].flights.len() {
            if self.clients[client].flights[flight].is_open {
                self.conclude(client, flight, Completion::Unknown, fleet, scene);
            }
        }
    }

    fn bears(&self, what: &What, ground: &Ground<'_>) -> bool {
        promise::bears(what, ground)
    }

    /// With `periodic` a write is gone if a majority lost it. What was there before the loss is the
    /// beginning of a history that goes on, and the one up to now is judged as it is.
    fn on_loss(&mut self, hosts: &[HostIndex], ground: &Ground<'_>, scene: &mut Scene<'_>) {
        if let Some(loss) = promise::lost(hosts, ground) {
            let since = loss.since();
            scene.line(format_args!("** what was not synced since {since} ns is lost"));
            scene.trace.note(since);
            self.past.push(self.recorder.lose(Time(since), |operation| loss.has(operation.key())));
        }
    }

    /// Of keys of which the hosts had the only copy nobody knows what is left. A listing may have
    /// shown them.
    fn on_lost_copies(
        &mut self,
        hosts: &[HostIndex],
        ground: &Ground<'_>,
        scene: &mut Scene<'_>,
    ) -> bool {
        if ground.replicas > 1 {
            return false;
        }
        scene.line(format_args!("** the only copies of some keys are lost"));
        let is_lost = |key: &Bytes| promise::may_lose_key(hosts, key, ground);
        let is_gone = |operation: &Operation| operation.key().is_none_or(is_lost);
        self.past.push(self.recorder.lose(Time(0), is_gone));
        false
    }

    /// A history of its own begins, from nothing.
    fn on_blackout(&mut self) {
        self.clients.iter_mut().for_each(|client| client.scan = None);
        self.past.push(std::mem::take(&mut self.recorder).into_history());
    }

    fn judge(&mut self, judges: &mut Judges) -> Findings {
        let last = std::mem::take(&mut self.recorder).into_history();
        let histories = self.past.iter().chain([&last]);
        let Some(apart_ms) = self.section.apart_ms else { return Findings::of(judges, histories) };
        let apart = Span::millis(apart_ms);
        Findings::told(histories.map(|history| ("newest", newest::judge(history, apart))))
    }
}
