//! Reads, writes and deletes of keys whose writes have one order, with high probability.
//!
//! Each client asks one thing at a time, and changes hosts. It keeps the largest place that it was
//! given, and hands it back with half of what it asks. A put has a name now and then, under which
//! it is sent again to another host while nobody says what became of it. Where keys are listed, the
//! pages of a listing come of whichever host the client is at. When nothing moves any more every
//! host is asked for every key, and to list them, until all say the same.

mod listings;
mod promise;
mod shown;

use super::fleet::{Addressee, End, Fleet, Stage};
use super::section::WorkloadSection;
use super::{Demand, Findings, Ground, Workload};
use crate::fault::What;
use crate::host::Running;
use crate::hosts::machines::Scene;
use crate::queue::HostIndex;
use bytes::Bytes;
use listings::Walk;
use quorate_check::Judges;
use quorate_check::places::{self, Ending, History, Read, WriteNumber};
use quorate_kernel::operation::{Operation, Outcome, Which};
use quorate_kernel::receipt::Receipt;
use quorate_kernel::rng::Rng;
use quorate_kernel::time::Span;
use quorate_kernel::write::{Replaces, WriteId, WriteName};
use shown::{shown, told, word};

/// How many of a million operations are followed by a change of the host.
const MOVE_PPM: u32 = 150_000;
/// How many of a million hand back what their client has seen.
const AFTER_PPM: u32 = 500_000;
/// How often a write is sent.
const TRIES_MAX: u32 = 3;
/// How often hosts are asked for everything in the end, until they agree.
const ROUNDS_MAX: u32 = 40;
/// How many stale reads of one run say nothing of their rate, where any are allowed.
const FEW: u64 = 3;

/// What a client waits for.
#[derive(Clone, Debug)]
enum Open {
    Read { key: Bytes, after: Bytes, begun: u64 },
    Write { number: WriteNumber, named: Option<Named> },
    List(Walk),
}

/// A put with a name.
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
    /// The largest place that it was given.
    seen: Bytes,
    /// What it sends again as soon as it has a host.
    again: Option<(WriteNumber, Named)>,
    /// A listing that goes on.
    walk: Option<Walk>,
}

/// What the clients of such a keyspace do, and what they saw.
pub struct Places {
    section: WorkloadSection,
    keys: Vec<Bytes>,
    clients: Vec<Client>,
    /// How many of the last gets are not answered; none if they were not asked.
    unanswered: Option<usize>,
    /// How often they were asked.
    rounds: u32,
    /// The listings of hosts in the end.
    last_walks: Vec<(HostIndex, Walk)>,
    /// The history since everything was lost, if it ever was.
    history: History,
    /// The histories before.
    past: Vec<History>,
}

impl Places {
    /// Nothing was asked yet.
    #[must_use]
    pub fn new(section: &WorkloadSection, rng: &mut Rng) -> Places {
        let keys = rng.between(section.keys_min, section.keys);
        Places {
            section: section.clone(),
            keys: (0..keys).map(|key| Bytes::from(format!("k{key}"))).collect(),
            clients: (0..section.clients).map(|_| Client::default()).collect(),
            unanswered: None,
            rounds: 0,
            last_walks: Vec::new(),
            history: History::default(),
            past: Vec::new(),
        }
    }

    /// Draws what a client asks, and notes it.
    fn draw(&mut self, index: usize, fleet: &mut Fleet, now: u64) -> Operation {
        let client = &mut self.clients[index];
        let rng = &mut fleet.seats[index].rng;
        let is_hot = rng.chance_ppm(self.section.hot_ppm);
        let at = if is_hot { 0 } else { rng.below(self.keys.len() as u64) as usize };
        let key = self.keys[at].clone();
        let after = if rng.chance_ppm(AFTER_PPM) { client.seen.clone() } else { Bytes::new() };
        let (get, put) = (u64::from(self.section.get), u64::from(self.section.put));
        let delete = u64::from(self.section.delete);
        let drawn = rng.below(get + put + delete + u64::from(self.section.scan));
        if drawn >= get + put + delete {
            return client.go_on_listing(Walk::begin(now));
        }
        if drawn < get {
            client.open = Some(Open::Read { key: key.clone(), after: after.clone(), begun: now });
            let which = if after.is_empty() { Which::One } else { Which::After(after) };
            return Operation::Get { key, which, replies: None };
        }
        let value = (drawn < get + put).then(|| {
            client.written += 1;
            Bytes::from(format!("c{index}v{}", client.written))
        });
        let number = self.history.begin(&key, value.clone(), after.clone(), now);
        let replaces = if after.is_empty() { Replaces::Whatever } else { Replaces::After(after) };
        let is_named = value.is_some() && rng.chance_ppm(self.section.named_ppm);
        let id = WriteId(((fleet.first + index) as u128 + 1) << 64 | u128::from(client.written));
        let name = is_named.then_some(WriteName { id, age: Span(0) });
        let ask = match value {
            Some(value) => Operation::Put { key, value, replaces, name },
            None => Operation::Delete { key, replaces },
        };
        let named = name.map(|_| Named { ask: ask.clone(), first_sent: now, tries: 1 });
        client.open = Some(Open::Write { number, named });
        ask
    }

    /// Sends a write again, under its name.
    fn repeat(
        &mut self,
        index: usize,
        number: WriteNumber,
        mut named: Named,
        now: u64,
    ) -> Operation {
        named.tries += 1;
        let mut ask = named.ask.clone();
        if let Operation::Put { name: Some(name), .. } = &mut ask {
            name.age = Span(now - named.first_sent);
        }
        self.clients[index].open = Some(Open::Write { number, named: Some(named) });
        ask
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
        match (open, outcome) {
            (Open::Read { key, after, begun }, Some(Outcome::Values { values, context })) => {
                let place = self.place(&context, fleet);
                self.clients[index].see(&place);
                let value = values.iter().next().cloned();
                let place = self.section.ordered_reads.then_some(place);
                self.history.read(Read { key, value, after, place, begun, ended: now });
            }
            (
                Open::Write { number, .. },
                Some(Outcome::Written { context } | Outcome::Deleted { context, .. }),
            ) => {
                let place = self.place(&context, fleet);
                self.clients[index].see(&place);
                self.history.end(number, Ending::Placed(place), now);
            }
            (Open::Write { number, named: Some(named) }, _)
                if end != End::Answered && named.tries < TRIES_MAX =>
            {
                self.clients[index].again = Some((number, named));
                fleet.disconnect(index);
            }
            (Open::Write { number, named }, _) => {
                // Of one that was sent before nobody knows what became of that.
                let is_sure = end == End::Refused && named.is_none_or(|named| named.tries < 2);
                let ending = if is_sure { Ending::Refused } else { Ending::Unknown };
                self.history.end(number, ending, now);
            }
            (Open::List(walk), Some(Outcome::Page { keys, next })) => {
                self.clients[index].walk = walk.on_page(keys, next, now, &mut self.history);
            }
            (Open::Read { .. } | Open::List(_), _) => {}
        }
    }

    /// The place in an answer.
    fn place(&self, context: &Bytes, fleet: &mut Fleet) -> Bytes {
        match Receipt::of_context(context) {
            Some(receipt) => receipt.token,
            None => {
                fleet.failure.get_or_insert("an answer came without a receipt".to_owned());
                Bytes::new()
            }
        }
    }

    /// Asks each host for each key.
    fn ask_all(&mut self, ground: &Ground<'_>, fleet: &mut Fleet) {
        let is_up = |host: &crate::host::Host| host.running == Running::Up && host.has_joined;
        let hosts = ground.hosts.iter().enumerate().filter(|(_, host)| is_up(host));
        let hosts: Vec<HostIndex> = hosts.map(|(index, _)| index).collect();
        let seen =
            self.clients.iter().map(|client| &client.seen).max().cloned().unwrap_or_default();
        for (number, key) in self.keys.iter().enumerate() {
            for host in &hosts {
                let (key, which) = (key.clone(), Which::After(seen.clone()));
                let get = Operation::Get { key, which, replies: None };
                fleet.ask(*host, number as u32, Demand::Operation(get));
            }
        }
        self.unanswered = Some(hosts.len() * self.keys.len());
        self.list_all(hosts, fleet);
    }

    fn on_last(&mut self, key: usize, outcome: Outcome, now: u64, fleet: &mut Fleet) {
        if let Some(place) = key.checked_sub(self.keys.len()) {
            return self.on_last_page(place, outcome, fleet);
        }
        let key = self.keys[key].clone();
        *self.unanswered.as_mut().expect("it was asked") -= 1;
        match outcome {
            Outcome::Values { values, .. } => {
                let value = values.iter().next().cloned();
                let (after, place) = (Bytes::new(), None);
                let read = Read { key, value, after, place, begun: now, ended: now };
                self.history.read_at_quiescence(read);
            }
            other => {
                let message = format!("a last get of {key:?} was told {}", told(&other));
                fleet.failure.get_or_insert(message);
            }
        }
    }
}

impl Client {
    fn see(&mut self, place: &Bytes) {
        if *place > self.seen {
            self.seen = place.clone();
        }
    }
}

impl Workload for Places {
    fn is_done(&self, client: usize, fleet: &Fleet) -> bool {
        fleet.seats[client].left == 0 || fleet.stage == Stage::Final
    }

    fn on_client(&mut self, index: usize, fleet: &mut Fleet, scene: &mut Scene<'_>) {
        let client = &mut self.clients[index];
        let (ask, is_again) = match (client.again.take(), client.walk.take()) {
            (Some((number, named)), _) => (self.repeat(index, number, named, scene.now), true),
            (None, Some(walk)) => (client.go_on_listing(walk), false),
            (None, None) => {
                fleet.seats[index].left -= 1;
                (self.draw(index, fleet, scene.now), false)
            }
        };
        let host = fleet.seats[index].host.expect("it is connected");
        let name = fleet.name(index);
        scene.line(format_args!("{name} -> n{} {}", host + 1, shown(&ask)));
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
            return self.on_last(asked.number as usize, outcome, scene.now, fleet);
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
    fn on_loss(&mut self, hosts: &[HostIndex], ground: &Ground<'_>, scene: &mut Scene<'_>) {
        if let Some(since) = promise::lost_since(hosts, ground) {
            scene.line(format_args!("** what was not synced since {since} ns may be lost"));
            self.history.doubt(since);
        }
    }

    /// Where one host acknowledges alone nobody else need have had it yet.
    fn on_lost_copies(
        &mut self,
        _hosts: &[HostIndex],
        ground: &Ground<'_>,
        scene: &mut Scene<'_>,
    ) -> bool {
        if ground.copies == 1 {
            scene.line(format_args!("** the only copies of some keys may be lost"));
            self.history.doubt(0);
        }
        false
    }

    /// A history of its own begins, from nothing.
    fn on_blackout(&mut self) {
        self.past.push(std::mem::take(&mut self.history));
        (self.unanswered, self.rounds) = (None, 0);
        for client in &mut self.clients {
            assert!(client.open.is_none(), "every connection is broken");
            client.seen.clear();
            (client.again, client.walk) = (None, None);
        }
    }

    fn at_quiescence(&mut self, ground: &Ground<'_>, fleet: &mut Fleet) -> Option<String> {
        match self.unanswered {
            Some(count @ 1..) => Some(format!("{count} last gets are under way")),
            // Something has moved since they were asked, if they were.
            _ if ground.unsettled.is_some() => {
                self.unanswered = None;
                ground.unsettled.map(str::to_owned)
            }
            None => {
                self.ask_all(ground, fleet);
                Some("the last gets are under way".to_owned())
            }
            Some(_) => {
                // What is on its way when the clients end may come to some hosts later.
                self.rounds += 1;
                if self.rounds < ROUNDS_MAX && !self.history.is_agreed() {
                    self.unanswered = None;
                    return Some("hosts say different things".to_owned());
                }
                None
            }
        }
    }

    fn judge(&mut self, _judges: &mut Judges) -> Findings {
        let (mut reads, mut stale) = (0, 0);
        for history in self.past.iter().chain([&self.history]) {
            match places::judge(history) {
                Ok(rates) => {
                    (reads, stale) = (reads + rates.reads, stale + rates.stale + rates.early);
                }
                Err(message) => {
                    let violation = Some(("places", message));
                    return Findings { violation, undecided: None };
                }
            }
        }
        let most = self.section.stale_percent;
        // Of few reads some may be: a rate is one of many.
        let allowed = if most == 0 { 0 } else { FEW + reads * most / 100 };
        let violation = (stale > allowed).then(|| {
            let what = format!("{stale} of {reads} reads are stale or early");
            ("rates", format!("{what}, more than {most} percent and {FEW}"))
        });
        Findings { violation, undecided: None }
    }
}
