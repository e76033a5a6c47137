//! Clients: each asks one thing at a time, keeps the contexts it was given, and changes hosts.
//!
//! A put or delete carries the newest context that its client has of the key, now and then an older
//! one, or none at all. So writes overlap in every way that contexts allow.

mod draw;

use super::shown::{shown, told, word};
use crate::delay::Delay;
use crate::prepared::Prepared;
use crate::queue::{Event, HostIndex, Queue};
use crate::scenario::WorkloadSection;
use crate::trace::Trace;
use crate::workload::{Counts, Submission};
use bytes::Bytes;
use quorate_check::siblings::{Basis, Ending, History, WriteNumber};
use quorate_kernel::ids::Ticket;
use quorate_kernel::operation::{Operation, Outcome};
use quorate_kernel::rng::Rng;
use std::collections::BTreeMap;

const RECONNECT_NS: (u64, u64) = (1_000_000, 20_000_000);
/// How many contexts of one key a client keeps.
const CONTEXTS_MAX: usize = 3;
/// How many of a million operations are followed by a change of the host.
const MOVE_PPM: u32 = 150_000;
/// How often a write is sent again.
const TRIES_MAX: u32 = 4;

/// What clients do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Anything may fail.
    Free,
    /// Everything must succeed.
    Demand,
    /// Every replica is asked for every key.
    Final,
    /// All is answered.
    Over,
}

/// What a ticket is for.
#[derive(Clone, Debug)]
enum Pending {
    Client { client: usize, connection: u32 },
    Last { key: Bytes },
}

/// What a client waits for.
#[derive(Clone, Debug)]
enum Open {
    Read { key: Bytes },
    Write { key: Bytes, number: WriteNumber, named: Option<Named> },
}

/// A put with a name, which is sent again if its outcome is unknown.
#[derive(Clone, Debug)]
struct Named {
    ask: Operation,
    first_sent: u64,
    tries: u32,
}

#[derive(Debug)]
struct Client {
    rng: Rng,
    host: Option<HostIndex>,
    connection: u32,
    open: Option<Open>,
    is_strict: bool,
    since: u64,
    left: u32,
    written: u64,
    contexts: BTreeMap<Bytes, Vec<(Basis, Bytes)>>,
    /// What it sends again as soon as it has a host.
    again: Option<(WriteNumber, Named)>,
}

/// All clients.
pub(crate) struct Clients {
    /// The number of the first one: lower ones are somebody else's.
    first: usize,
    section: WorkloadSection,
    named_ppm: u32,
    think: Delay,
    keys: Vec<Bytes>,
    clients: Vec<Client>,
    pending: Vec<Pending>,
    hosts: Vec<bool>,
    demanded: u32,
    unanswered: usize,
    pub submissions: Vec<Submission>,
    /// What was acknowledged, and when.
    acknowledged: Vec<(u64, WriteNumber)>,
    pub history: History,
    pub stage: Stage,
    pub counts: Counts,
    pub failure: Option<String>,
}

impl Clients {
    /// The clients of a workload of a scenario.
    pub fn new(
        prepared: &Prepared,
        section: &WorkloadSection,
        first: usize,
        mut rng: Rng,
    ) -> Clients {
        let section = section.clone();
        let keys = rng.between(1, section.keys);
        let share = section.operations / section.clients as u32;
        let client = |index: usize| Client {
            rng: rng.fork(index as u64),
            host: None,
            connection: 0,
            open: None,
            is_strict: false,
            since: 0,
            left: share,
            written: 0,
            contexts: BTreeMap::new(),
            again: None,
        };
        Clients {
            first,
            named_ppm: prepared.scenario.causal.as_ref().map_or(0, |causal| causal.named_ppm),
            think: Delay::new(&section.think),
            keys: (0..keys).map(|key| Bytes::from(format!("k{key}"))).collect(),
            clients: (0..section.clients).map(client).collect(),
            pending: Vec::new(),
            hosts: vec![false; prepared.scenario.hosts],
            demanded: prepared.scenario.liveness.operations,
            unanswered: 0,
            submissions: Vec::new(),
            acknowledged: Vec::new(),
            history: History::default(),
            stage: Stage::Free,
            counts: Counts::default(),
            failure: None,
            section,
        }
    }

    /// Lets every client begin, each at its own time.
    pub fn start(&mut self, queue: &mut Queue) {
        for (index, client) in self.clients.iter_mut().enumerate() {
            let at = self.think.sample(&mut client.rng);
            queue.push(at, client_event(self.first, index, 0));
        }
    }

    /// Says whether a host can be connected to.
    pub fn open(&mut self, host: HostIndex, is_open: bool) {
        self.hosts[host] = is_open;
    }

    /// From now on a few operations of each client must succeed.
    pub fn demand(&mut self, now: u64, queue: &mut Queue) {
        self.stage = Stage::Demand;
        for (index, client) in self.clients.iter_mut().enumerate() {
            client.left = self.demanded;
            if client.open.is_none() {
                client.connection += 1;
                queue.push(now, client_event(self.first, index, client.connection));
            }
        }
    }

    pub fn is_finished(&self) -> bool {
        self.stage == Stage::Demand
            && self.clients.iter().all(|client| client.left == 0 && client.open.is_none())
    }

    /// A client may go on.
    pub fn on_client(
        &mut self,
        number: usize,
        connection: u32,
        now: u64,
        queue: &mut Queue,
        trace: &mut Trace,
    ) {
        let index = number - self.first;
        let client = &mut self.clients[index];
        if client.connection != connection || client.open.is_some() || client.left == 0 {
            return;
        }
        if client.host.is_none_or(|host| !self.hosts[host]) {
            let open: Vec<HostIndex> =
                (0..self.hosts.len()).filter(|host| self.hosts[*host]).collect();
            if open.is_empty() {
                let at = now + client.rng.between(RECONNECT_NS.0, RECONNECT_NS.1);
                return queue.push(at, client_event(self.first, index, connection));
            }
            client.host = Some(open[client.rng.below(open.len() as u64) as usize]);
        }
        let ask = match client.again.take() {
            Some((number, named)) => self.repeat(index, number, named, now),
            None => {
                client.left -= 1;
                self.draw(index, now)
            }
        };
        let client = &mut self.clients[index];
        let host = client.host.expect("it was just connected");
        trace.line(now, format_args!("c{number} -> n{} {}", host + 1, shown(&ask)));
        // Of a write that is sent again a host may not know any more what became of it.
        client.is_strict = self.stage != Stage::Free && !is_again(client);
        client.since = now;
        self.counts.begun += 1;
        self.counts.begun_freely += u64::from(!client.is_strict);
        let ticket = Ticket(self.pending.len() as u64);
        self.pending.push(Pending::Client { client: index, connection });
        self.submissions.push(Submission { host, ticket, operation: ask });
        let patience = now + self.section.patience_ms * 1_000_000;
        queue.push(patience, Event::Patience { client: self.first + index });
    }

    /// A host answered.
    pub fn on_answer(
        &mut self,
        ticket: Ticket,
        outcome: Outcome,
        now: u64,
        queue: &mut Queue,
        trace: &mut Trace,
    ) {
        let Some(pending) = self.pending.get(ticket.0 as usize).cloned() else { return };
        trace.note(ticket.0 << 8 ^ word(&outcome));
        match pending {
            Pending::Last { key } => self.on_last(&key, outcome),
            Pending::Client { client, connection } => {
                if self.clients[client].connection != connection {
                    return;
                }
                trace.line(now, format_args!("c{}: {}", self.first + client, told(&outcome)));
                self.conclude(client, Some(outcome), now);
                self.go_on(client, now, queue);
            }
        }
    }

    /// An operation has ended, or nobody knows.
    fn conclude(&mut self, index: usize, outcome: Option<Outcome>, now: u64) {
        let client = &mut self.clients[index];
        let Some(open) = client.open.take() else { return };
        let is_done = matches!(&outcome, Some(outcome) if !matches!(outcome, Outcome::Refused(_)));
        if client.is_strict && !is_done {
            let what = outcome.as_ref().map_or("nothing".to_owned(), told);
            let number = self.first + index;
            let message = format!("c{number} was told {what} although everything is healed");
            self.failure.get_or_insert(message);
        }
        self.counts.answered += u64::from(is_done);
        self.counts.answered_freely += u64::from(is_done && !client.is_strict);
        let is_unknown = match &outcome {
            None => true,
            Some(Outcome::Refused(refusal)) => refusal.may_have_applied(),
            Some(_) => false,
        };
        self.counts.unknown += u64::from(is_unknown);
        self.counts.refused += u64::from(!is_unknown && !is_done);
        let (key, basis, context) = match (open, outcome) {
            (Open::Read { key }, Some(Outcome::Values { values, context })) => {
                let basis = Basis::Read(self.history.read(&key, values.into_vec()));
                (key, basis, context)
            }
            (
                Open::Write { key, number, .. },
                Some(Outcome::Written { context } | Outcome::Deleted { context, .. }),
            ) => {
                self.history.end(number, Ending::Stored);
                self.acknowledged.push((now, number));
                (key, Basis::Write(number), context)
            }
            (Open::Write { number, named: Some(named), .. }, _)
                if is_unknown && named.tries < TRIES_MAX =>
            {
                let client = &mut self.clients[index];
                client.again = Some((number, named));
                client.host = None;
                return;
            }
            (Open::Write { number, .. }, _) => {
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

    fn go_on(&mut self, index: usize, now: u64, queue: &mut Queue) {
        let client = &mut self.clients[index];
        if client.rng.chance_ppm(MOVE_PPM) {
            client.host = None;
            client.connection += 1;
        }
        let pause = match self.stage {
            Stage::Free => self.think.sample(&mut client.rng),
            _ => client.rng.between(1000, 1_000_000),
        };
        let event = client_event(self.first, index, client.connection);
        queue.push(now + pause, event);
    }

    /// Gives up what a client waits for, and lets it connect elsewhere.
    fn abandon(&mut self, index: usize, now: u64, queue: &mut Queue) {
        self.conclude(index, None, now);
        let client = &mut self.clients[index];
        client.host = None;
        client.connection += 1;
        let at = now + client.rng.between(RECONNECT_NS.0, RECONNECT_NS.1);
        queue.push(at, client_event(self.first, index, client.connection));
    }

    /// Power was lost: whether what was acknowledged since this time is there is not known.
    pub fn doubt(&mut self, since: u64) {
        while let Some((_, number)) = self.acknowledged.pop_if(|(at, _)| *at >= since) {
            self.history.end(number, Ending::Unknown);
        }
    }

    /// Looks whether a client has waited too long.
    pub fn on_patience(&mut self, number: usize, now: u64, queue: &mut Queue) {
        let index = number - self.first;
        let client = &self.clients[index];
        let is_late = now >= client.since + self.section.patience_ms * 1_000_000;
        if client.open.is_some() && is_late {
            self.abandon(index, now, queue);
        }
    }

    /// A host's process has ended: nobody knows what became of what it was asked.
    pub fn on_host_stopped(&mut self, host: HostIndex, now: u64, queue: &mut Queue) {
        for index in 0..self.clients.len() {
            let client = &mut self.clients[index];
            if client.host == Some(host) {
                if client.open.is_some() {
                    self.abandon(index, now, queue);
                } else {
                    client.host = None;
                }
            }
        }
    }

    /// Asks each replica of each key.
    pub fn ask_all(&mut self, holders: impl Fn(&[u8]) -> Vec<HostIndex>) {
        self.stage = Stage::Final;
        for key in &self.keys {
            for host in holders(key) {
                let ticket = Ticket(self.pending.len() as u64);
                self.pending.push(Pending::Last { key: key.clone() });
                let operation = Operation::get_all(key.clone(), Some(1));
                self.submissions.push(Submission { host, ticket, operation });
                self.unanswered += 1;
            }
        }
    }

    fn on_last(&mut self, key: &Bytes, outcome: Outcome) {
        self.unanswered -= 1;
        match outcome {
            Outcome::Values { values, .. } => {
                self.history.read_at_rest(key, values.into_vec());
            }
            other => {
                let what = told(&other);
                self.failure.get_or_insert(format!("a last get of {key:?} was told {what}"));
            }
        }
        if self.unanswered == 0 {
            self.stage = Stage::Over;
        }
    }

    /// Who still waits, for the message of a liveness violation.
    pub fn waiting(&self) -> String {
        let waits = |client: &Client| client.left > 0 || client.open.is_some();
        let count = self.clients.iter().filter(|client| waits(client)).count();
        format!("{count} clients have not finished")
    }
}

/// Whether a client waits for a write that it has sent before.
fn is_again(client: &Client) -> bool {
    matches!(&client.open, Some(Open::Write { named: Some(named), .. }) if named.tries > 1)
}

fn client_event(first: usize, index: usize, connection: u32) -> Event {
    Event::Client { client: first + index, connection }
}
