//! Clients: each orders one thing at a time, of few names so that orders collide, and changes
//! hosts.

use super::CatalogSection;
use crate::delay::Delay;
use crate::host::Host;
use crate::machines::Machines;
use crate::prepared::Prepared;
use crate::queue::{Event, HostIndex, Queue};
use crate::scenario::WorkloadSection;
use crate::workload::Counts;
use quorate_check::catalog::{Ask, Ending, History, OrderNumber};
use quorate_kernel::ids::Ticket;
use quorate_kernel::keyspace::{CatalogRefusal, KeyspaceOrder, NewKeyspace, Settings};
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::rng::Rng;

const RECONNECT_NS: (u64, u64) = (1_000_000, 20_000_000);
/// How many of a million orders are followed by a change of the host.
const MOVE_PPM: u32 = 500_000;
/// The setting that tells what an order has done: the engine takes any number for it.
pub(super) const TAG: &str = "value";

/// What a client does next.
pub(super) enum Asked {
    /// It orders something of a host.
    Order(HostIndex, Ticket, KeyspaceOrder),
    /// It asks a host which keyspaces there are.
    List(HostIndex),
}

/// What a client waits for.
#[derive(Clone, Copy, Debug)]
struct Open {
    ticket: Ticket,
    order: OrderNumber,
    /// Whether all was healed when it was ordered.
    is_strict: bool,
}

#[derive(Debug)]
struct Client {
    rng: Rng,
    host: Option<HostIndex>,
    connection: u32,
    open: Option<Open>,
    since: u64,
    left: u32,
}

/// All clients.
pub(super) struct Clients {
    workload: WorkloadSection,
    section: CatalogSection,
    think: Delay,
    names: u64,
    clients: Vec<Client>,
    /// Whose each ticket is.
    tickets: Vec<usize>,
    /// Which hosts can be connected to.
    hosts: Vec<bool>,
    tags: u64,
    pub is_strict: bool,
    pub history: History,
    pub counts: Counts,
    pub failure: Option<String>,
}

impl Clients {
    pub fn new(prepared: &Prepared, section: &CatalogSection, mut rng: Rng) -> Clients {
        let workload = prepared.scenario.workload.clone();
        let share = workload.operations / workload.clients as u32;
        let names = rng.between(workload.keys_min, workload.keys);
        let client = |index: usize| {
            let rng = rng.fork(index as u64);
            Client { rng, host: None, connection: 0, open: None, since: 0, left: share }
        };
        Clients {
            think: prepared.think.clone(),
            names,
            clients: (0..workload.clients).map(client).collect(),
            tickets: Vec::new(),
            hosts: vec![false; prepared.scenario.hosts],
            tags: 0,
            is_strict: false,
            history: History::default(),
            counts: Counts::default(),
            failure: None,
            section: section.clone(),
            workload,
        }
    }

    /// Lets every client begin, each at its own time.
    pub fn start(&mut self, queue: &mut Queue) {
        for (index, client) in self.clients.iter_mut().enumerate() {
            let at = self.think.sample(&mut client.rng);
            queue.push(at, Event::Client { client: index, connection: 0 });
        }
    }

    /// Says whether a host can be connected to.
    pub fn open(&mut self, host: HostIndex, is_open: bool) {
        self.hosts[host] = is_open;
    }

    /// From now on each client must learn what becomes of each of its last orders.
    pub fn demand(&mut self, orders: u32, now: u64, queue: &mut Queue) {
        self.is_strict = true;
        for (index, client) in self.clients.iter_mut().enumerate() {
            client.left = orders;
            if client.open.is_none() {
                client.connection += 1;
                queue.push(now, Event::Client { client: index, connection: client.connection });
            }
        }
    }

    pub fn is_finished(&self) -> bool {
        let is_done = |client: &Client| client.left == 0 && client.open.is_none();
        self.is_strict && self.clients.iter().all(is_done)
    }

    /// A client may go on; what it asks, if it can.
    pub fn on_client(
        &mut self,
        index: usize,
        connection: u32,
        machines: &mut Machines,
    ) -> Option<Asked> {
        let client = &mut self.clients[index];
        if client.connection != connection || client.open.is_some() || client.left == 0 {
            return None;
        }
        let (now, queue) = (machines.now, &mut machines.queue);
        if client.host.is_none_or(|host| !self.hosts[host]) {
            let open: Vec<HostIndex> =
                (0..self.hosts.len()).filter(|host| self.hosts[*host]).collect();
            if open.is_empty() {
                let at = now + client.rng.between(RECONNECT_NS.0, RECONNECT_NS.1);
                queue.push(at, Event::Client { client: index, connection });
                return None;
            }
            client.host = Some(open[client.rng.below(open.len() as u64) as usize]);
        }
        client.left -= 1;
        self.counts.begun += 1;
        self.counts.begun_freely += u64::from(!self.is_strict);
        let host = client.host.expect("it was just connected");
        let Some((order, ask)) = self.draw(index) else {
            self.go_on(index, now, queue);
            return Some(Asked::List(host));
        };
        machines.line(format_args!("c{index} -> n{} {order:?}", host + 1));
        let ticket = Ticket(self.tickets.len() as u64);
        self.tickets.push(index);
        let number = self.history.order(machines.hosts[host].me(), ask);
        let client = &mut self.clients[index];
        let is_strict = self.is_strict;
        client.open = Some(Open { ticket, order: number, is_strict });
        client.since = now;
        let patience = self.workload.patience_ms * 1_000_000;
        machines.after(patience, Event::Patience { client: index });
        Some(Asked::Order(host, ticket, order))
    }

    /// Draws what a client orders; nothing if it asks for a list.
    fn draw(&mut self, index: usize) -> Option<(KeyspaceOrder, Ask)> {
        let (rng, workload) = (&mut self.clients[index].rng, &self.workload);
        let name = format!("k{}", rng.below(self.names));
        let (list, create) = (u64::from(workload.get), u64::from(workload.put));
        let (drop, alter) = (u64::from(workload.delete), u64::from(self.section.alter));
        let drawn = rng.below(list + create + drop + alter);
        self.tags += 1;
        let tag = self.tags;
        let settings = Settings::from([(TAG.to_owned(), tag.to_string())]);
        if drawn < list {
            None
        } else if drawn < list + create {
            let (engine, ask) = ("linearizable".to_owned(), name.clone());
            let order = KeyspaceOrder::Create(NewKeyspace { name, engine, settings });
            Some((order, Ask::Create { name: ask, tag }))
        } else if drawn < list + create + drop {
            Some((KeyspaceOrder::Drop { name: name.clone() }, Ask::Drop { name }))
        } else {
            let ask = Ask::Alter { name: name.clone(), tag };
            Some((KeyspaceOrder::Alter { name, settings }, ask))
        }
    }

    /// A host has told which keyspaces there are, if it knows.
    pub fn on_list(&mut self, host: &Host) {
        if let Some(told) = &host.told {
            self.history.said(host.node_id, told.version, super::watch::known(told));
            self.counts.answered += 1;
            self.counts.answered_freely += u64::from(!self.is_strict);
        }
    }

    /// A host answered.
    pub fn on_answer(&mut self, ticket: Ticket, outcome: &Outcome, machines: &mut Machines) {
        let Some(client) = self.tickets.get(ticket.0 as usize).copied() else { return };
        let told = format!("{outcome:?}");
        machines.trace.note(ticket.0 << 16 ^ told.len() as u64);
        machines.line(format_args!("c{client}: {told}"));
        if self.clients[client].open.is_some_and(|open| open.ticket == ticket) {
            self.conclude(client, ending(outcome), &told);
            self.go_on(client, machines.now, &mut machines.queue);
        }
    }

    /// An order has ended, or nobody knows.
    fn conclude(&mut self, index: usize, ending: Ending, told: &str) {
        let Some(Open { order, is_strict, .. }) = self.clients[index].open.take() else { return };
        self.history.end(order, ending);
        let is_answered = matches!(ending, Ending::Done | Ending::Exists | Ending::Missing);
        if is_strict && !is_answered {
            let message = format!("c{index} was told {told} although everything is healed");
            self.failure.get_or_insert(message);
        }
        self.counts.answered += u64::from(is_answered);
        self.counts.answered_freely += u64::from(is_answered && !is_strict);
        self.counts.unknown += u64::from(ending == Ending::Unknown);
        self.counts.refused += u64::from(ending == Ending::Refused);
    }

    fn go_on(&mut self, index: usize, now: u64, queue: &mut Queue) {
        let client = &mut self.clients[index];
        if client.rng.chance_ppm(MOVE_PPM) {
            client.host = None;
            client.connection += 1;
        }
        let is_burst = client.rng.chance_ppm(self.workload.burst_ppm);
        let pause = match self.is_strict || is_burst {
            false => self.think.sample(&mut client.rng),
            true => client.rng.between(1000, 1_000_000),
        };
        let event = Event::Client { client: index, connection: client.connection };
        queue.push(now + pause, event);
    }

    /// Gives up what a client waits for, and lets it connect elsewhere.
    fn abandon(&mut self, index: usize, now: u64, queue: &mut Queue) {
        self.conclude(index, Ending::Unknown, "nothing");
        let client = &mut self.clients[index];
        client.host = None;
        client.connection += 1;
        let at = now + client.rng.between(RECONNECT_NS.0, RECONNECT_NS.1);
        queue.push(at, Event::Client { client: index, connection: client.connection });
    }

    /// Looks whether a client has waited too long.
    pub fn on_patience(&mut self, index: usize, now: u64, queue: &mut Queue) {
        let client = &self.clients[index];
        let is_late = now >= client.since + self.workload.patience_ms * 1_000_000;
        // The host may take longer for what it must do; it answers.
        if client.open.is_some_and(|open| !open.is_strict) && is_late {
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

    /// Who still waits, for the message of a liveness violation.
    pub fn waiting(&self) -> String {
        let waits = |client: &&Client| client.left > 0 || client.open.is_some();
        format!("{} clients have not finished", self.clients.iter().filter(waits).count())
    }
}

/// What an answer means.
fn ending(outcome: &Outcome) -> Ending {
    match outcome {
        Outcome::Noted => Ending::Done,
        Outcome::Refused(Refusal::Catalog(CatalogRefusal::Exists { .. })) => Ending::Exists,
        Outcome::Refused(Refusal::Catalog(CatalogRefusal::Unknown { .. })) => Ending::Missing,
        Outcome::Refused(refusal) if !refusal.may_have_applied() => Ending::Refused,
        _ => Ending::Unknown,
    }
}
