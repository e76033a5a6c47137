//! Clients of a tree: some have sessions, follow nodes, and make nodes that end with the session;
//! others have none, and of these some know keys and values alone.
//!
//! Clients with sessions change hosts, where they go on with their session and follow again what
//! they followed; vanish without a word; are silent for longer than a session may be; and close
//! sessions. The first one follows every node. After the faults each must get a few operations
//! through, and then reads the whole tree. At rest all hosts must show the same tree, and without a
//! client no session goes on, so no ephemeral node may be left.

mod client;
mod draw;
mod quiescence;
mod sessions;

use super::fleet::{Addressee, End, Fleet, Stage};
use super::registers::promise;
use super::section::WorkloadSection;
use super::{Demand, Findings, Ground, STEPS_MAX, Workload};
use crate::fault::What;
use crate::hosts::machines::Scene;
use crate::queue::HostIndex;
use client::{Client, Open};
use quiescence::Quiescence;
use quorate_check::Judges;
use quorate_check::history::{ClientId, Completion};
use quorate_check::tree::{Record, judge};
use quorate_kernel::operation::{Operation, Outcome, Refusal};
use quorate_kernel::rng::Rng;
use quorate_kernel::storage::Durability;
use quorate_kernel::time::Time;
use quorate_kernel::tree::{Act, Ask};

/// How many of a million answers, and of a million refusals, are followed by a change of the host.
const MOVE_PPM: u32 = 60_000;
const LEAVE_PPM: u32 = 300_000;
/// The first number of what clients ask for their sessions, each time another one; what they ask in
/// them has lower ones.
const SESSION: u32 = 1 << 31;
/// How long a client is silent, in milliseconds: less or more than a session may be.
const SILENT_MS: (u64, u64) = (500, 6000);
/// One of so many clients has no session.
const WITHOUT: usize = 3;

/// For how long, in nanoseconds, something may be under way whose client has given it up: longer
/// than any deadline.
const UNDER_WAY_NS: u64 = 10_000_000_000;

/// What is left of a tree after a loss.
#[derive(Clone, Copy)]
enum Next {
    /// Nobody knows what.
    OfRest,
    /// Nothing, but what was asked before may be under way.
    Anew,
}

/// What the clients of a tree do, and what they saw.
pub struct Tree {
    section: WorkloadSection,
    /// How many nodes there are below the root, at most.
    keys: u64,
    clients: Vec<Client>,
    /// How many values were drawn: each is a number of its own.
    written: u64,
    /// How often clients asked for sessions.
    watches: u32,
    quiescence: Quiescence,
    /// When something was recorded last.
    latest: Time,
    /// Whether hosts answer what sessions read.
    has_session_reads: bool,
    /// What happened since everything was lost, if it ever was.
    record: Record,
    /// The records before.
    past: Vec<Record>,
    /// How the record begins that is next, if the tree is not empty then and nothing is under way.
    next: Option<Next>,
}

impl Tree {
    /// Nothing was asked yet.
    #[must_use]
    pub fn new(section: &WorkloadSection, has_session_reads: bool, rng: &mut Rng) -> Tree {
        let client = |index| Client::new(index % WITHOUT != WITHOUT - 1);
        Tree {
            section: section.clone(),
            keys: rng.between(section.keys_min, section.keys),
            clients: (0..section.clients).map(client).collect(),
            written: 0,
            watches: 0,
            quiescence: Quiescence::default(),
            latest: Time(0),
            has_session_reads,
            record: Record::default().with_session_reads(has_session_reads),
            past: Vec::new(),
            next: None,
        }
    }

    /// A client asks these things at once.
    fn begin(
        &mut self,
        index: usize,
        operations: Vec<Operation>,
        fleet: &mut Fleet,
        scene: &mut Scene<'_>,
    ) {
        fleet.begin(index, operations.len(), false, scene);
        let name = fleet.name(index);
        let host = fleet.seats[index].host.map_or(0, |host| host + 1);
        self.latest = Time(scene.now);
        for (number, operation) in (1..).zip(operations) {
            scene.line(format_args!("{name} -> n{host} {operation:?}"));
            let client = &mut self.clients[index];
            let of = client.connection.as_ref().and_then(|it| it.opened());
            let id = ClientId(index as u32);
            let recorded = self.record.ask(id, of, operation.clone(), self.latest);
            client.open.push(Open { number, recorded, operation: operation.clone() });
            fleet.send(index, number, Demand::Operation(operation));
        }
    }

    /// One of the things that a client waits for has ended; a refusal of the tree is an answer.
    fn conclude(
        &mut self,
        index: usize,
        number: u32,
        (completion, is_answer): (Completion, bool),
        fleet: &mut Fleet,
        scene: &mut Scene<'_>,
    ) {
        let client = &mut self.clients[index];
        let found = client.open.iter().position(|open| open.number == number);
        let open = client.open.remove(found.expect("it waits for the answer"));
        let name = fleet.name(index);
        scene.line(format_args!("{name}: {completion:?}"));
        let end = match &completion {
            Completion::Refused if !is_answer => End::Refused,
            Completion::Unknown => End::Unknown,
            _ => End::Answered,
        };
        fleet.end(index, end, &|| format!("{completion:?}"));
        client.learn(&open.operation, &completion);
        self.latest = Time(scene.now);
        self.record.answer(open.recorded, completion, self.latest);
    }

    /// A client has all its answers.
    fn go_on(&mut self, index: usize, leave_ppm: u32, fleet: &mut Fleet, scene: &mut Scene<'_>) {
        let rng = &mut fleet.seats[index].rng;
        let may_pause = fleet.stage == Stage::Free && self.clients[index].has_sessions;
        let is_silent = may_pause && rng.chance_ppm(self.section.silent_ppm);
        let leaves = rng.chance_ppm(leave_ppm);
        // Whoever vanishes says nothing to its host: that finds out by the silence.
        let vanishes = may_pause && rng.chance_ppm(300_000);
        let silent_ms = rng.between(SILENT_MS.0, SILENT_MS.1);
        if leaves {
            self.leave(index, !vanishes, fleet);
            fleet.disconnect(index);
        }
        if is_silent {
            scene.line(format_args!("{} is silent for {silent_ms} ms", fleet.name(index)));
            return fleet.wake(index, silent_ms * 1_000_000, scene);
        }
        fleet.go_on(index, 0, scene);
    }
}

impl Workload for Tree {
    fn is_done(&self, client: usize, fleet: &Fleet) -> bool {
        match fleet.stage {
            Stage::Free | Stage::Demand => fleet.seats[client].left == 0,
            Stage::Final => self.clients[client].has_read_all,
            Stage::Over => true,
        }
    }

    fn on_client(&mut self, index: usize, fleet: &mut Fleet, scene: &mut Scene<'_>) {
        let connection = fleet.seats[index].connection;
        let stands =
            |client: &Client| client.connection.as_ref().is_some_and(|it| it.number == connection);
        if self.clients[index].has_sessions {
            if !stands(&self.clients[index]) {
                self.leave(index, true, fleet);
                return self.connect(index, fleet, scene);
            }
            if let Some(act) = self.clients[index].first() {
                let session = self.clients[index].session();
                let operation = Operation::Tree(Ask { session, opening: None, act }.into());
                return self.begin(index, vec![operation], fleet, scene);
            }
        }
        let operations = match fleet.stage {
            Stage::Final => vec![self.last_read(index)],
            _ => self.draw(index, fleet),
        };
        self.begin(index, operations, fleet, scene);
    }

    fn on_answer(
        &mut self,
        asked: Addressee,
        outcome: Outcome,
        fleet: &mut Fleet,
        scene: &mut Scene<'_>,
    ) {
        scene.trace.note(u64::from(asked.number) << 8 ^ word(&outcome));
        let Some(index) = asked.client else {
            self.latest = Time(scene.now);
            return self.quiescence.on_answer(
                asked.number,
                outcome,
                (&mut self.record, self.latest),
            );
        };
        if asked.number >= SESSION {
            // What an earlier connection is told nobody hears.
            let connection = self.clients[index].connection.as_ref();
            if connection.is_some_and(|it| it.watch == asked.number) {
                self.on_session(index, outcome, fleet, scene);
            }
            return;
        }
        // What the tree does not allow is an answer, also to who knows keys and values alone.
        let is_answer = matches!(outcome, Outcome::Refused(Refusal::Node(_)));
        let completion = Completion::from(outcome);
        let is_refused = matches!(completion, Completion::Refused | Completion::Unknown);
        let closes = self.clients[index].closes(asked.number, &completion);
        let is_blind = self.clients[index].is_blind(asked.number, &completion);
        self.conclude(index, asked.number, (completion, is_answer), fleet, scene);
        if closes {
            self.clients[index].forget();
        }
        if closes || is_blind {
            self.leave(index, true, fleet);
        }
        if fleet.seats[index].open == 0 {
            let leave_ppm = if is_refused { LEAVE_PPM } else { MOVE_PPM };
            self.go_on(index, leave_ppm, fleet, scene);
        }
    }

    fn on_silence(&mut self, index: usize, fleet: &mut Fleet, scene: &mut Scene<'_>) {
        if self.clients[index].is_opening() {
            fleet.end(index, End::Unknown, &|| "nothing for its session".to_owned());
        }
        let numbers: Vec<u32> = self.clients[index].open.iter().map(|it| it.number).collect();
        for number in numbers {
            self.conclude(index, number, (Completion::Unknown, false), fleet, scene);
        }
        self.leave(index, true, fleet);
    }

    /// As with registers: the tree is one group. Of what `periodic` loses all at once only where no
    /// client goes on as it was.
    fn bears(&self, what: &What, ground: &Ground<'_>) -> bool {
        match what {
            What::Power { hosts } if ground.durability.every().is_some() => {
                ground.hosts.len() == hosts.len() || promise::may_forget(hosts, ground)
            }
            _ if ground.durability == Durability::Memory || ground.engine.is_some() => {
                promise::bears(what, ground)
            }
            _ => false,
        }
    }

    /// With `periodic` a write is gone if a majority lost it. Sessions are over then.
    fn on_loss(&mut self, hosts: &[HostIndex], ground: &Ground<'_>, scene: &mut Scene<'_>) {
        if promise::lost(hosts, ground).is_some() && hosts.len() == ground.hosts.len() {
            scene.line(format_args!("** some of the tree is lost"));
            self.next = Some(Next::OfRest);
            self.on_blackout();
        }
    }

    /// The host that has the only copy of the tree loses the end of it. Sessions of before may be
    /// left, but not as their clients know them.
    fn on_power(
        &mut self,
        hosts: &[HostIndex],
        ground: &Ground<'_>,
        scene: &mut Scene<'_>,
    ) -> bool {
        let is_lost = loses_end(hosts, ground);
        if is_lost {
            scene.line(format_args!("** the end of the only copy of the tree is lost"));
            self.next = Some(Next::OfRest);
        }
        is_lost
    }

    /// The only copy of the tree may be lost, and with it all sessions. Where nobody else has
    /// anything of it, nothing is left.
    fn on_lost_copies(
        &mut self,
        hosts: &[HostIndex],
        ground: &Ground<'_>,
        scene: &mut Scene<'_>,
    ) -> bool {
        let is_lost = ground.replicas == 1 && promise::may_lose_key(hosts, b"/", ground);
        if is_lost {
            scene.line(format_args!("** the only copy of the tree is lost"));
            let is_all =
                ground.durability == Durability::Memory && promise::have_all(hosts, ground);
            self.latest = Time(scene.now);
            self.next = Some(if is_all { Next::Anew } else { Next::OfRest });
        }
        is_lost
    }

    /// A record of its own begins, from nothing or from what is left.
    fn on_blackout(&mut self) {
        self.clients.iter_mut().for_each(Client::forget);
        let next = match self.next.take() {
            Some(Next::OfRest) => Record::of_rest(),
            Some(Next::Anew) => {
                let since = Time(self.latest.0.saturating_sub(UNDER_WAY_NS));
                self.record.anew(since, self.latest)
            }
            None => Record::default(),
        };
        let next = next.with_session_reads(self.has_session_reads);
        self.past.push(std::mem::replace(&mut self.record, next));
    }

    fn at_quiescence(&mut self, ground: &Ground<'_>, fleet: &mut Fleet) -> Option<String> {
        let unsettled = ground.unsettled.map(str::to_owned);
        if unsettled.is_some() {
            return unsettled;
        }
        self.quiescence.look(ground, fleet, (&mut self.record, self.latest))
    }

    fn judge(&mut self, _judges: &mut Judges) -> Findings {
        let last = std::mem::take(&mut self.record);
        let all = self.past.iter().chain([&last]);
        Findings::told(all.map(|record| ("tree", judge(record, STEPS_MAX))))
    }
}

/// Whether a loss of power of these hosts takes acknowledged changes of the tree from its only
/// copy. One of all hosts is for [`Workload::on_loss`].
fn loses_end(hosts: &[HostIndex], ground: &Ground<'_>) -> bool {
    let lose = |host: &&HostIndex| ground.hosts[**host].disk.unsynced_since().is_some();
    let losing: Vec<HostIndex> = hosts.iter().filter(lose).copied().collect();
    let is_all = hosts.len() == ground.hosts.len();
    ground.durability.every().is_some()
        && ground.replicas == 1
        && !(is_all || losing.is_empty())
        && promise::may_lose_key(&losing, b"/", ground)
}

/// An act that a client without a session asks for.
fn without(act: Act) -> Operation {
    Operation::Tree(Ask { session: None, opening: None, act }.into())
}

/// An outcome as it enters the hash of a trace.
fn word(outcome: &Outcome) -> u64 {
    match outcome {
        Outcome::Tree(reply) => reply.zxid.0 << 2 | u64::from(reply.told.is_ok()),
        Outcome::Values { values, .. } => 3 + values.iter().count() as u64,
        Outcome::More(events) => 5 ^ (events.len() as u64) << 8,
        Outcome::Refused(_) => 6,
        _ => 7,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::tests::{ground, periodic};

    #[test]
    fn power_takes_the_end_of_an_only_copy_that_is_not_synced() {
        let hosts = [Some(40), None, None].map(periodic);
        let of = |replicas, durability| Ground { replicas, ..ground(&hosts, durability) };
        let alone = of(1, "periodic=50ms");
        assert!(loses_end(&[0], &alone));
        assert!(!loses_end(&[1], &alone), "it has synced all");
        assert!(!loses_end(&[0, 1, 2], &alone), "all hosts lose power at once");
        assert!(!loses_end(&[0], &of(3, "periodic=50ms")), "two others have it");
        assert!(!loses_end(&[0], &of(1, "sync")) && !loses_end(&[0], &of(1, "memory")));
    }
}
