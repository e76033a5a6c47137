//! Reads, writes and deletes of keys whose concurrent values are kept side by side.
//!
//! Each client asks one thing at a time, keeps the contexts it was given, and changes hosts. A put
//! or delete carries the newest context that its client has of the key, now and then an older one,
//! or none at all. So writes overlap in every way that contexts allow. When nothing moves any more
//! each replica of each key is asked on its own.

mod draw;
mod promise;
mod remains;
mod shown;

use super::fleet::{Addressee, End, Fleet, Stage};
use super::section::WorkloadSection;
use super::{Demand, Findings, Ground, Workload};
use crate::fault::What;
use crate::hosts::machines::Scene;
use crate::queue::HostIndex;
use bytes::Bytes;
use quorate_check::Judges;
use quorate_check::siblings::{self, Basis, Ending, History, WriteNumber};
use quorate_kernel::operation::{Operation, Outcome};
use quorate_kernel::rng::Rng;
use shown::{shown, told, word};
use std::collections::BTreeMap;

/// How many contexts of one key a client keeps.
const CONTEXTS_MAX: usize = 3;
/// How many of a million operations are followed by a change of the host.
const MOVE_PPM: u32 = 150_000;
/// How often a write is sent again.
const TRIES_MAX: u32 = 4;

/// What a client waits for.
#[derive(Clone, Debug)]
enum Open {
    Read {
        key: Bytes,
    },
    Write {
        key: Bytes,
        number: WriteNumber,
        named: Option<Named>,
        /// Whether a host that may have said that it stored it has lost what it held.
        is_in_doubt: bool,
    },
}

/// A put with a name, which is sent again if its outcome is unknown.
#[derive(Clone, Debug)]
struct Named {
    ask: Operation,
    first_sent: u64,
    tries: u32,
}

#[derive(Debug, Default)]
struct Client {
    open: Option<Open>,
    written: u64,
    contexts: BTreeMap<Bytes, Vec<(Basis, Bytes)>>,
    /// What it sends again as soon as it has a host.
    again: Option<(WriteNumber, Named)>,
}

/// What the clients of siblings do, and what they saw.
pub struct Siblings {
    section: WorkloadSection,
    keys: Vec<Bytes>,
    clients: Vec<Client>,
    /// What was acknowledged, and when.
    acknowledged: Vec<(u64, Bytes, WriteNumber)>,
    /// Whether the only copies of some values were lost.
    has_lost: bool,
    /// How many of the last gets are not answered; none if they were not asked.
    unanswered: Option<usize>,
    /// The history since everything was lost, if it ever was.
    history: History,
    /// The histories before.
    past: Vec<History>,
}

impl Siblings {
    /// Nothing was asked yet.
    #[must_use]
    pub fn new(section: &WorkloadSection, rng: &mut Rng) -> Siblings {
        let keys = rng.between(section.keys_min, section.keys);
        Siblings {
            section: section.clone(),
            keys: (0..keys).map(|key| Bytes::from(format!("k{key}"))).collect(),
            clients: (0..section.clients).map(|_| Client::default()).collect(),
            acknowledged: Vec::new(),
            has_lost: false,
            unanswered: None,
            history: History::default(),
            past: Vec::new(),
        }
    }

    /// An operation has ended, or nobody knows.
    fn conclude(&mut self, index: usize, outcome: Option<Outcome>, now: u64, fleet: &mut Fleet) {
        let Some(open) = self.clients[index].open.take() else { return };
        let end = match &outcome {
            None => End::Unknown,
            Some(Outcome::Refused(refusal)) if refusal.may_have_applied() => End::Unknown,
            Some(Outcome::Refused(_)) => End::Refused,
            Some(_) => End::Answered,
        };
        fleet.end(index, end, &|| outcome.as_ref().map_or("nothing".to_owned(), told));
        let (key, basis, context) = match (open, outcome) {
            (Open::Read { key }, Some(Outcome::Values { values, context })) => {
                let basis = Basis::Read(self.history.read(&key, values.into_vec()));
                (key, basis, context)
            }
            (
                Open::Write { key, number, is_in_doubt, .. },
                Some(Outcome::Written { context } | Outcome::Deleted { context, .. }),
            ) => {
                let ending = if is_in_doubt { Ending::Unknown } else { Ending::Stored };
                self.history.end(number, ending);
                self.acknowledged.push((now, key.clone(), number));
                (key, Basis::Write(number), context)
            }
            (Open::Write { number, named: Some(named), .. }, _)
                if end == End::Unknown && named.tries < TRIES_MAX =>
            {
                self.clients[index].again = Some((number, named));
                return fleet.disconnect(index);
            }
            (Open::Write { number, .. }, _) => {
                let is_unknown = end == End::Unknown;
                let ending = if is_unknown { Ending::Unknown } else { Ending::Refused };
                return self.history.end(number, ending);
            }
            (Open::Read { .. }, _) => return,
        };
        if !context.is_empty() {
            let known = self.clients[index].contexts.entry(key).or_default();
            known.push((basis, context));
            if known.len() > CONTEXTS_MAX {
                known.remove(0);
            }
        }
    }

    /// What is under way may be answered by a host that has lost it since.
    fn doubt_open(&mut self, is_lost: impl Fn(&[u8]) -> bool) {
        for open in self.clients.iter_mut().filter_map(|client| client.open.as_mut()) {
            if let Open::Write { key, is_in_doubt, .. } = open {
                *is_in_doubt |= is_lost(key);
            }
        }
    }

    /// Asks each replica of each key, on its own.
    fn ask_all(&mut self, ground: &Ground<'_>, fleet: &mut Fleet) {
        let mut count = 0;
        for (number, key) in self.keys.iter().enumerate() {
            for host in ground.holders(key) {
                let get = Operation::get_all(key.clone(), Some(1));
                fleet.ask(host, number as u32, Demand::Operation(get));
                count += 1;
            }
        }
        self.unanswered = Some(count);
    }

    fn on_last(&mut self, key: usize, outcome: Outcome, fleet: &mut Fleet) {
        let key = &self.keys[key];
        let unanswered = self.unanswered.as_mut().expect("it was asked");
        *unanswered -= 1;
        match outcome {
            Outcome::Values { values, .. } => {
                self.history.read_at_quiescence(key, values.into_vec());
            }
            other => {
                let what = told(&other);
                let message = format!("a last get of {key:?} was told {what}");
                fleet.failure.get_or_insert(message);
            }
        }
    }
}

impl Workload for Siblings {
    fn is_done(&self, client: usize, fleet: &Fleet) -> bool {
        fleet.seats[client].left == 0 || fleet.stage == Stage::Final
    }

    fn on_client(&mut self, index: usize, fleet: &mut Fleet, scene: &mut Scene<'_>) {
        let (ask, is_again) = match self.clients[index].again.take() {
            Some((number, named)) => (self.repeat(index, number, named, scene.now), true),
            None => {
                fleet.seats[index].left -= 1;
                (self.draw(index, fleet, scene.now), false)
            }
        };
        let host = fleet.seats[index].host.expect("it is connected");
        let name = fleet.name(index);
        scene.line(format_args!("{name} -> n{} {}", host + 1, shown(&ask)));
        // Of a write that is sent again a host may not know any more what became of it.
        fleet.begin(index, 1, is_again, scene);
        fleet.send(index, 0, Demand::Operation(ask));
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
            return self.on_last(asked.number as usize, outcome, fleet);
        };
        let name = fleet.name(client);
        scene.line(format_args!("{name}: {}", told(&outcome)));
        self.conclude(client, Some(outcome), scene.now, fleet);
        fleet.go_on(client, MOVE_PPM, scene);
    }

    fn on_silence(&mut self, client: usize, fleet: &mut Fleet, scene: &mut Scene<'_>) {
        self.conclude(client, None, scene.now, fleet);
    }

    fn bears(&self, what: &What, ground: &Ground<'_>) -> bool {
        promise::bears(what, ground)
    }

    /// Whether what was acknowledged since the last syncs is there is not known.
    fn on_loss(&mut self, hosts: &[HostIndex], ground: &Ground<'_>, _scene: &mut Scene<'_>) {
        let Some(since) = promise::lost_since(hosts, ground) else { return };
        while let Some((.., number)) = self.acknowledged.pop_if(|(at, ..)| *at >= since) {
            self.history.end(number, Ending::Unknown);
        }
        self.doubt_open(|_| true);
    }

    /// Whether what was acknowledged for keys of which the hosts had the only copy is there is not
    /// known.
    fn on_lost_copies(
        &mut self,
        hosts: &[HostIndex],
        ground: &Ground<'_>,
        scene: &mut Scene<'_>,
    ) -> bool {
        if ground.copies > 1 || !promise::may_have_lost(hosts, None, ground) {
            return false;
        }
        scene.line(format_args!("** the only copies of some keys are lost"));
        self.has_lost = true;
        let is_lost = |key: &[u8]| promise::may_have_lost(hosts, Some(key), ground);
        for (.., number) in self.acknowledged.iter().filter(|(_, key, _)| is_lost(key)) {
            self.history.end(*number, Ending::Unknown);
        }
        self.doubt_open(is_lost);
        false
    }

    /// A history of its own begins, from nothing: no context is left of the one before.
    fn on_blackout(&mut self) {
        self.past.push(std::mem::take(&mut self.history));
        self.acknowledged.clear();
        (self.has_lost, self.unanswered) = (false, None);
        for client in &mut self.clients {
            assert!(client.open.is_none(), "every connection is broken");
            client.contexts.clear();
            client.again = None;
        }
    }

    fn at_quiescence(&mut self, ground: &Ground<'_>, fleet: &mut Fleet) -> Option<String> {
        let unsettled =
            ground.unsettled.map(str::to_owned).or_else(|| remains::unclean(ground, self.has_lost));
        match self.unanswered {
            Some(count @ 1..) => Some(format!("{count} last gets are under way")),
            // Something has moved since they were asked, if they were.
            _ if unsettled.is_some() => {
                self.unanswered = None;
                unsettled
            }
            None => {
                self.ask_all(ground, fleet);
                Some("the last gets are under way".to_owned())
            }
            Some(_) => {
                let has_tombstones = self.section.has_tombstones;
                remains::note(ground, has_tombstones, self.has_lost, &mut self.history);
                None
            }
        }
    }

    fn judge(&mut self, _judges: &mut Judges) -> Findings {
        let mut histories = self.past.iter().chain([&self.history]);
        let violation = histories.find_map(|history| siblings::judge(history).err());
        Findings { violation: violation.map(|message| ("siblings", message)), undecided: None }
    }
}
