//! Operations over several keys at once: reads, changes, and changes that hold only if nobody else
//! came between.
//!
//! Each client asks one thing at a time and changes hosts. What it checks is what it saw last, so
//! that clients get in each other's way. After the faults each must get a few operations through,
//! and then reads every key. The judge wants one order of all operations that respects time.
//!
//! Where an engine promises that order only for what one host is asked (`own_keys`), each host has
//! keys of its own, for which it alone is asked; at rest all hosts must show the same of each.

mod draw;
mod endings;
mod old;
mod quiescence;

use super::fleet::{Addressee, End, Fleet, Stage};
use super::registers::promise;
use super::section::WorkloadSection;
use super::{Demand, Findings, Ground, Workload};
use crate::fault::What;
use crate::hosts::machines::Scene;
use crate::queue::HostIndex;
use bytes::Bytes;
use endings::{Endings, without_ends};
use old::OldReads;
use quiescence::Quiescence;
use quorate_check::Judges;
use quorate_check::history::{ClientId, Completion, History, OperationId, Recorder};
use quorate_kernel::change::Changed;
use quorate_kernel::engine::Placement;
use quorate_kernel::expiry::Lifetime;
use quorate_kernel::operation::{Operation, Outcome, Refusal};
use quorate_kernel::refusal::Ended;
use quorate_kernel::rng::Rng;
use quorate_kernel::storage::Durability;
use quorate_kernel::time::Time;
use quorate_kernel::transaction::{Item, ItemOutcome};
use std::collections::BTreeMap;

/// How many of a million answers, and of a million refusals, are followed by a change of the host.
const MOVE_PPM: u32 = 100_000;
const LEAVE_PPM: u32 = 300_000;
/// How many of a million clients ask on that were told that nobody knows yet how something ended.
const ASK_PPM: u32 = 800_000;

/// A client.
#[derive(Default)]
struct Client {
    /// What it waits for.
    open: Option<(OperationId, Operation)>,
    /// If it was told that nobody knows yet how that ended: what it asks with.
    token: Option<Bytes>,
    /// When that was begun, in the world's time.
    began: u64,
    /// The host that it has asked for it.
    at: HostIndex,
    /// What it saw last of each key.
    seen: BTreeMap<Bytes, Option<Bytes>>,
    /// How many keys of its host it has read in the end.
    finals: usize,
}

/// What the clients of transactions do, and what they saw.
pub struct Transactions {
    section: WorkloadSection,
    /// How many keys there are; of each host, if hosts have keys of their own.
    keys: u64,
    clients: Vec<Client>,
    /// How many values were drawn: each is a number of its own.
    written: u64,
    quiescence: Quiescence,
    endings: Endings,
    /// Where reads may be old: what was written, and what was read that may not be.
    old: OldReads,
    /// When a client was told something last.
    latest: Time,
    /// The history since everything was lost, if it ever was.
    recorder: Recorder,
    /// The histories before.
    past: Vec<History>,
}

impl Transactions {
    /// Nothing was asked yet.
    #[must_use]
    pub fn new(section: &WorkloadSection, rng: &mut Rng) -> Transactions {
        Transactions {
            section: section.clone(),
            keys: rng.between(section.keys_min, section.keys),
            clients: (0..section.clients).map(|_| Client::default()).collect(),
            written: 0,
            quiescence: Quiescence::default(),
            endings: Endings::default(),
            old: OldReads::default(),
            latest: Time(0),
            recorder: Recorder::default(),
            past: Vec::new(),
        }
    }

    /// Records what may have expired by now.
    fn record_removals(&mut self, now: u64) {
        let nobody = ClientId(u32::try_from(self.clients.len()).unwrap_or(u32::MAX));
        self.endings.now = now;
        self.endings.record(nobody, &mut self.recorder);
    }

    /// A client was told that nobody knows yet how what it waits for ended: it asks, perhaps
    /// elsewhere.
    fn ask_on(&mut self, index: usize, token: Bytes, fleet: &mut Fleet, scene: &mut Scene<'_>) {
        let name = fleet.name(index);
        scene.line(format_args!("{name}: open, asks how it ended"));
        self.clients[index].token = Some(token);
        fleet.end(index, End::Unknown, &|| "open".to_owned());
        fleet.go_on(index, LEAVE_PPM, scene);
    }

    /// What a client waits for has ended.
    fn conclude(
        &mut self,
        index: usize,
        completion: Completion,
        fleet: &mut Fleet,
        scene: &mut Scene<'_>,
    ) {
        let (id, operation) = self.clients[index].open.take().expect("it waits for an answer");
        self.clients[index].token = None;
        let name = fleet.name(index);
        scene.line(format_args!("{name}: {completion:?}"));
        let end = match &completion {
            Completion::Refused => End::Refused,
            Completion::Unknown => End::Unknown,
            _ => End::Answered,
        };
        fleet.end(index, end, &|| format!("{completion:?}"));
        self.clients[index].learn(&operation, &completion);
        self.endings.on_told(self.clients[index].began, &operation, &completion);
        self.record_removals(scene.now);
        self.latest = Time(scene.now);
        let is_old = self.section.old_reads && OldReads::only_reads(&operation);
        if self.section.old_reads {
            let times = (self.clients[index].began, scene.now);
            self.old.end((id, &operation), &completion, times);
        }
        // It says nothing of the order then.
        let completion = if is_old { Completion::Refused } else { completion };
        self.recorder.complete(id, completion, self.latest);
    }
}

impl Client {
    /// Keeps what it was told of keys, and what it knows to have written.
    fn learn(&mut self, operation: &Operation, completion: &Completion) {
        match (operation, completion) {
            (Operation::Get { key, .. }, Completion::Value(value)) => {
                self.seen.insert(key.clone(), value.clone());
            }
            (Operation::Transact { items, .. }, Completion::Transacted(told)) => {
                for (item, told) in items.iter().zip(told) {
                    let value = match (item, told) {
                        (Item::Get { .. }, ItemOutcome::Value(value)) => value.clone(),
                        (Item::Put { value, .. }, _) => Some(value.clone()),
                        (Item::Delete { .. }, _) => None,
                        _ => continue,
                    };
                    self.seen.insert(item.key().clone(), value);
                }
            }
            // What it took for granted is not so.
            (Operation::Transact { items, .. }, Completion::Unmet { item }) => {
                self.seen.remove(items[*item].key());
            }
            (operation, _) => operation.keys().for_each(|key| {
                self.seen.remove(key);
            }),
        }
    }
}

impl Workload for Transactions {
    fn on_stage(&mut self, stage: Stage, now: Time) {
        if stage == Stage::Demand {
            self.recorder.heal(now);
        }
    }

    fn is_done(&self, client: usize, fleet: &Fleet) -> bool {
        match fleet.stage {
            Stage::Free | Stage::Demand => fleet.seats[client].left == 0,
            Stage::Final => self.clients[client].finals == self.keys as usize,
            Stage::Over => true,
        }
    }

    fn on_client(&mut self, index: usize, fleet: &mut Fleet, scene: &mut Scene<'_>) {
        let seat = &mut fleet.seats[index];
        let host = seat.host.expect("a client asks when it is connected");
        self.record_removals(scene.now);
        if let Some(token) = self.clients[index].token.clone() {
            // Of a loss, or of a group that it does not reach, it is told that nobody knows.
            fleet.begin(index, 1, true, scene);
            fleet.send(index, 0, Demand::Operation(Operation::HowEnded { token }));
            return;
        }
        let operation = match fleet.stage {
            Stage::Final => self.last_read(index, host),
            _ => {
                seat.left -= 1;
                self.draw(index, host, &mut seat.rng)
            }
        };
        let name = fleet.name(index);
        scene.line(format_args!("{name} -> n{} {operation:?}", host + 1));
        let now = Time(scene.now);
        let id = self.recorder.invoke(ClientId(index as u32), without_ends(&operation), now);
        self.clients[index].open = Some((id, operation.clone()));
        if self.section.old_reads {
            self.old.begin(id, &operation, scene.now);
        }
        self.clients[index].began = scene.now;
        self.clients[index].at = host;
        fleet.begin(index, 1, false, scene);
        fleet.send(index, 0, Demand::Operation(operation));
    }

    fn on_answer(
        &mut self,
        asked: Addressee,
        outcome: Outcome,
        fleet: &mut Fleet,
        scene: &mut Scene<'_>,
    ) {
        scene.trace.note(u64::from(asked.number) << 8 ^ word(&outcome));
        let Some(client) = asked.client else {
            self.latest = Time(scene.now);
            return self.quiescence.on_answer(asked.number, outcome);
        };
        let completion = match outcome {
            // What groups have forgotten, that host alone may know: if it is cut off for good, its
            // client gives up.
            Outcome::Refused(Refusal::OutcomeOpen { token })
                if fleet.usable[self.clients[client].at]
                    && fleet.seats[client].rng.chance_ppm(ASK_PPM) =>
            {
                return self.ask_on(client, token, fleet, scene);
            }
            // That the question was refused says nothing of what it is about.
            Outcome::Refused(_) if self.clients[client].token.is_some() => Completion::Unknown,
            Outcome::Ended(Ended::Committed) => Completion::Committed,
            // Nobody remembers which part.
            Outcome::Ended(Ended::Partial) => Completion::Unknown,
            Outcome::Ended(Ended::Aborted) => Completion::Refused,
            other => Completion::from(other),
        };
        let is_refused = matches!(completion, Completion::Refused | Completion::Unknown);
        self.conclude(client, completion, fleet, scene);
        fleet.go_on(client, if is_refused { LEAVE_PPM } else { MOVE_PPM }, scene);
    }

    fn on_silence(&mut self, client: usize, fleet: &mut Fleet, scene: &mut Scene<'_>) {
        // Who waits before it asks how something ended asks later.
        let waits = fleet.seats[client].open > 0;
        if waits && self.clients[client].open.is_some() {
            self.conclude(client, Completion::Unknown, fleet, scene);
        }
    }

    /// What a loss may take is known of engines that have groups.
    fn bears(&self, what: &What, ground: &Ground<'_>) -> bool {
        let has_groups = ground.engine.is_some_and(|it| it.placement == Placement::Groups);
        match what {
            What::Wipe { .. } | What::Restore { .. } if !has_groups => false,
            _ if has_groups => promise::bears(what, ground),
            _ => ground.durability == Durability::Sync,
        }
    }

    /// With `periodic` a write is gone if a majority lost it, as one of registers is. Groups lose
    /// theirs apart: of what was done in several some may have it, and others not.
    fn on_loss(&mut self, hosts: &[HostIndex], ground: &Ground<'_>, scene: &mut Scene<'_>) {
        if let Some(loss) = promise::lost(hosts, ground) {
            assert!(!self.section.old_reads, "old reads are judged where nothing is lost");
            let since = loss.since();
            scene.line(format_args!("** what was not synced since {since} ns is lost"));
            scene.trace.note(since);
            let is_apart = promise::apart(ground);
            let is_gone = |operation: &Operation| loss.has(operation.keys());
            self.past.push(self.recorder.tear(Time(since), is_gone, is_apart));
        }
    }

    /// Of keys of which the hosts had the only copy nobody knows what is left, nor of what was done
    /// with them and with others together.
    fn on_lost_copies(
        &mut self,
        hosts: &[HostIndex],
        ground: &Ground<'_>,
        scene: &mut Scene<'_>,
    ) -> bool {
        if ground.replicas == 1 {
            assert!(!self.section.old_reads, "old reads are judged where nothing is lost");
            scene.line(format_args!("** the only copies of some keys are lost"));
            let is_lost = |key: &Bytes| promise::may_lose_key(hosts, key, ground);
            let is_gone = |operation: &Operation| operation.keys().any(is_lost);
            self.past.push(self.recorder.tear(Time(0), is_gone, promise::apart(ground)));
        }
        false
    }

    /// A history of its own begins, from nothing.
    fn on_blackout(&mut self) {
        for client in &mut self.clients {
            client.seen.clear();
            // What it would ask is of the time before.
            (client.open, client.token) = (None, None);
        }
        self.endings.clear();
        self.old.clear();
        self.past.push(std::mem::take(&mut self.recorder).into_history());
    }

    fn at_quiescence(&mut self, ground: &Ground<'_>, fleet: &mut Fleet) -> Option<String> {
        let unsettled = ground.unsettled.map(str::to_owned);
        if unsettled.is_some() || !self.section.own_keys {
            return unsettled;
        }
        let keys = (0..ground.hosts.len()).flat_map(|host| self.keys_of(host)).collect();
        self.quiescence.look(keys, ground.hosts.len(), fleet, (&mut self.recorder, self.latest))
    }

    fn judge(&mut self, judges: &mut Judges) -> Findings {
        let last = std::mem::take(&mut self.recorder).into_history();
        let mut findings = Findings::of(judges, self.past.iter().chain([&last]));
        let late = self.endings.take_violation().map(|late| ("expiry", late));
        let wrong = self.old.take_violation().map(|wrong| ("old reads", wrong));
        findings.violation = findings.violation.or(late).or(wrong);
        findings
    }
}

/// An outcome as it enters the hash of a trace.
fn word(outcome: &Outcome) -> u64 {
    let of_bytes =
        |bytes: &Bytes| bytes.iter().fold(1, |word: u64, byte| word * 31 + u64::from(*byte));
    let of_value = |value: Option<&Bytes>| value.map_or(0, of_bytes);
    match outcome {
        Outcome::Values { values, .. } => of_value(values.iter().next()),
        Outcome::Ended(ended) => 20 + (*ended as u64),
        Outcome::Transacted(told) => told.iter().fold(2, |word: u64, told| {
            let told = match told {
                ItemOutcome::Checked => 1,
                ItemOutcome::Written => 2,
                ItemOutcome::Deleted { existed } => 3 + u64::from(*existed),
                ItemOutcome::Value(value) => 5 + of_value(value.as_ref()),
                ItemOutcome::Changed(Changed::Integer(number)) => 5 + *number as u64,
                ItemOutcome::Changed(_) => 6,
                ItemOutcome::Unchanged(_) => 7,
                ItemOutcome::Expiry { changed } => 8 + u64::from(*changed),
                ItemOutcome::Lifetime(Lifetime::Absent) => 10,
                ItemOutcome::Lifetime(Lifetime::Endless) => 11,
                ItemOutcome::Lifetime(Lifetime::Until(at)) => 12 + at.0 as u64,
                ItemOutcome::Copied(copied) => 13 + *copied as u64,
            };
            word.wrapping_mul(31).wrapping_add(told)
        }),
        Outcome::Refused(_) => 3,
        _ => 4,
    }
}
