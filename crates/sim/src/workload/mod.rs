//! Clients that record what they asked and what they were told.
//!
//! Each client is a closed loop: it sends a batch of operations to the host it is connected to,
//! waits for all answers, thinks, and goes on. It loses its connection when the process ends, gives
//! up when it waits too long, and connects to another host. Whatever was open then is unknown for
//! ever.
//!
//! After the faults each client must get a few operations through (the demand), and then reads
//! every key (the final gets).

pub mod client;
pub mod door;
mod shown;
mod stages;

use crate::delay::Delay;
use crate::queue::{Event, HostIndex, Queue};
use crate::scenario::WorkloadSection;
use crate::trace::Trace;
use bytes::Bytes;
use client::{Client, Flight};
use quorate_check::history::{ClientId, Completion, History, Recorder};
use quorate_kernel::ids::Ticket;
use quorate_kernel::operation::{Operation, Outcome};
use quorate_kernel::rng::Rng;
use quorate_kernel::time::Time;
use shown::{Shown, ShownEnd, outcome_word};
pub use stages::Stage;

/// How long a client waits before it connects again.
const RECONNECT_NS: (u64, u64) = (1_000_000, 20_000_000);
/// How many refusals of a million make a client try another host.
const LEAVE_PPM: u32 = 300_000;

/// Something a host is asked.
#[derive(Debug)]
pub struct Submission {
    /// By which host.
    pub host: HostIndex,
    /// Names it in the answer.
    pub ticket: Ticket,
    /// What is asked.
    pub operation: Operation,
}

/// Whom the answer to a ticket is for.
#[derive(Clone, Copy, Debug)]
struct Pending {
    client: usize,
    connection: u32,
    /// The flight, or the session's number of the operation.
    number: u32,
}

/// How operations ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Operations begun.
    pub begun: u64,
    /// Operations answered.
    pub answered: u64,
    /// Operations begun and answered while anything might fail.
    pub answered_freely: u64,
    /// Operations begun while anything might fail.
    pub begun_freely: u64,
    /// Operations whose outcome is unknown.
    pub unknown: u64,
    /// Operations refused.
    pub refused: u64,
}

impl Counts {
    /// These and others.
    #[must_use]
    pub fn and(&self, other: &Counts) -> Counts {
        Counts {
            begun: self.begun + other.begun,
            answered: self.answered + other.answered,
            answered_freely: self.answered_freely + other.answered_freely,
            begun_freely: self.begun_freely + other.begun_freely,
            unknown: self.unknown + other.unknown,
            refused: self.refused + other.refused,
        }
    }
}

/// All clients of a run.
pub struct Workload {
    section: WorkloadSection,
    think: Delay,
    keys: Vec<Bytes>,
    clients: Vec<Client>,
    pending: Vec<Pending>,
    started: Vec<(u32, Operation)>,
    told: Vec<(usize, Completion)>,
    done: Vec<bool>,
    open: Vec<bool>,
    usable: Vec<bool>,
    demanded: u32,
    /// What hosts shall be asked; the world takes it.
    pub submissions: Vec<Submission>,
    /// The history since everything was lost, if it ever was.
    pub recorder: Recorder,
    /// The histories before.
    pub past: Vec<History>,
    /// What clients must do now.
    pub stage: Stage,
    /// How operations ended.
    pub counts: Counts,
    /// An operation that had to succeed and did not, or an answer that makes no sense.
    pub failure: Option<String>,
}

impl Workload {
    /// The clients of a scenario; `demanded` operations each must succeed after the faults.
    #[must_use]
    pub fn new(
        section: &WorkloadSection,
        think: Delay,
        demanded: u32,
        hosts: usize,
        recorder: Recorder,
        rng: &mut Rng,
    ) -> Workload {
        let keys = rng.between(section.keys_min, section.keys);
        let client = |index: usize| Client::new(index, section, rng.fork(index as u64));
        Workload {
            section: section.clone(),
            think,
            keys: (0..keys).map(|key| Bytes::from(format!("k{key}"))).collect(),
            clients: (0..section.clients).map(client).collect(),
            pending: Vec::new(),
            started: Vec::new(),
            told: Vec::new(),
            done: vec![false; section.clients],
            open: vec![false; hosts],
            usable: vec![true; hosts],
            demanded,
            submissions: Vec::new(),
            recorder,
            past: Vec::new(),
            stage: Stage::Free,
            counts: Counts::default(),
            failure: None,
        }
    }

    /// Lets every client begin, each at its own time.
    pub fn start(&mut self, queue: &mut Queue) {
        for client in &mut self.clients {
            let at = client.pause(&self.section, &self.think);
            queue.push(at, Event::Client { client: client.index, connection: client.connection });
        }
    }

    /// A client's think time is over, or it may try to connect again.
    pub fn on_client(
        &mut self,
        index: usize,
        connection: u32,
        now: u64,
        queue: &mut Queue,
        trace: &mut Trace,
    ) {
        let client = &mut self.clients[index];
        if client.connection != connection || client.open > 0 {
            return;
        }
        let is_finished = match self.stage {
            Stage::Free | Stage::Demand => client.left == 0 && client.scan.is_none(),
            Stage::Final => client.next_final == self.keys.len(),
            Stage::Over => true,
        };
        if is_finished {
            return self.finish_stage(index, now, queue);
        }
        if !self.connect(index, now, queue) {
            return;
        }
        let client = &mut self.clients[index];
        if self.stage == Stage::Final {
            let key = self.keys[client.next_final].clone();
            client.next_final += 1;
            client.asked.clear();
            client.asked.push(Operation::get(key));
        } else {
            client.draw_batch(&self.section, &self.keys);
        }
        self.send(index, now, queue, trace);
    }

    /// Makes sure that a client is connected; if it cannot be, it tries again later. In the final
    /// stage clients spread over the hosts, so that every one is asked.
    fn connect(&mut self, index: usize, now: u64, queue: &mut Queue) -> bool {
        let client = &mut self.clients[index];
        if client.host.is_some() {
            return true;
        }
        let may_use = |host: &HostIndex| self.open[*host] && self.usable[*host];
        let count = (0..self.open.len()).filter(may_use).count();
        if count == 0 {
            let at = now + client.rng.between(RECONNECT_NS.0, RECONNECT_NS.1);
            queue.push(at, Event::Client { client: index, connection: client.connection });
            return false;
        }
        let nth = match self.stage {
            Stage::Final => index % count,
            _ => client.rng.below(count as u64) as usize,
        };
        let host = (0..self.open.len()).filter(may_use).nth(nth);
        client.connect(host.expect("the index is below the number of hosts"));
        true
    }

    fn send(&mut self, index: usize, now: u64, queue: &mut Queue, trace: &mut Trace) {
        let is_strict = self.stage != Stage::Free;
        let client = &mut self.clients[index];
        let host = client.host.expect("a client sends when it is connected");
        client.flights.clear();
        for operation in &client.asked {
            let id = self.recorder.invoke(ClientId(index as u32), operation.clone(), Time(now));
            client.flights.push(Flight { id, is_strict, is_open: true });
            let arrow = if client.door.is_some() { "~>" } else { "->" };
            trace.line(now, format_args!("c{index} {} {arrow} n{}", Shown(operation), host + 1));
        }
        client.open = client.flights.len();
        self.counts.begun += client.open as u64;
        self.counts.begun_freely += if is_strict { 0 } else { client.open as u64 };
        client.patient_until = now + self.section.patience_ms * 1_000_000;
        if !client.is_watched {
            client.is_watched = true;
            queue.push(client.patient_until, Event::Patience { client: index });
        }
        if let Some(door) = &mut client.door {
            door.send(&client.asked, &mut client.rng, &mut self.started);
        } else {
            let asked = client.asked.drain(..).enumerate();
            self.started.extend(asked.map(|(flight, operation)| (flight as u32, operation)));
        }
        self.submit(index);
    }

    /// Turns what a client or its session started into submissions.
    fn submit(&mut self, index: usize) {
        let client = &self.clients[index];
        let connection = client.connection;
        let Some(host) = client.host else { return self.started.clear() };
        for (number, operation) in self.started.drain(..) {
            let ticket = Ticket(self.pending.len() as u64);
            self.pending.push(Pending { client: index, connection, number });
            self.submissions.push(Submission { host, ticket, operation });
        }
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
        let Pending { client: index, connection, number } = self.pending[ticket.0 as usize];
        let client = &mut self.clients[index];
        if client.connection != connection {
            return;
        }
        trace.note(ticket.0 << 8 ^ outcome_word(&outcome));
        let told = &mut self.told;
        if let Some(door) = &mut client.door {
            let result = door.complete(number, outcome, &mut self.started, &mut |flight, end| {
                told.push((flight, end));
            });
            if let Err(message) = result {
                self.failure.get_or_insert(format!("c{index}: {message}"));
            }
        } else {
            told.push((number as usize, outcome.into()));
        }
        let mut told = std::mem::take(&mut self.told);
        let mut is_refused = false;
        for (flight, completion) in told.drain(..) {
            is_refused |= matches!(completion, Completion::Refused | Completion::Unknown);
            self.conclude(index, flight, completion, now, trace);
        }
        self.told = told;
        self.submit(index);
        if self.clients[index].open == 0 {
            self.go_on(index, is_refused, now, queue);
        }
    }

    /// Ends one operation of a client.
    fn conclude(
        &mut self,
        index: usize,
        flight: usize,
        completion: Completion,
        now: u64,
        trace: &mut Trace,
    ) {
        let client = &mut self.clients[index];
        let Flight { id, is_strict, is_open } = client.flights[flight];
        if !is_open {
            self.failure.get_or_insert(format!("c{index}: an operation was answered twice"));
            return;
        }
        client.flights[flight].is_open = false;
        client.open -= 1;
        trace.line(now, format_args!("c{index} #{flight}: {}", ShownEnd(&completion)));
        match &completion {
            Completion::Refused => self.counts.refused += 1,
            Completion::Unknown => self.counts.unknown += 1,
            Completion::Page { next, .. } if self.stage != Stage::Final => {
                client.scan.clone_from(next);
            }
            _ => {}
        }
        if !matches!(completion, Completion::Refused | Completion::Unknown) {
            self.counts.answered += 1;
            self.counts.answered_freely += u64::from(!is_strict);
        } else if is_strict {
            let told = ShownEnd(&completion);
            let message = format!("c{index} was told `{told}` although everything is healed");
            self.failure.get_or_insert(message);
        }
        self.recorder.complete(id, completion, Time(now));
    }

    /// Lets a client think after a batch.
    fn go_on(&mut self, index: usize, is_refused: bool, now: u64, queue: &mut Queue) {
        let client = &mut self.clients[index];
        if is_refused && client.rng.chance_ppm(LEAVE_PPM) {
            client.disconnect();
        }
        let mut at = now + client.pause(&self.section, &self.think);
        if self.stage != Stage::Free {
            at = now + client.rng.between(1000, 1_000_000);
        }
        queue.push(at, Event::Client { client: index, connection: client.connection });
    }

    /// Gives up all open operations of a client and lets it connect elsewhere.
    fn abandon(&mut self, index: usize, now: u64, queue: &mut Queue, trace: &mut Trace) {
        for flight in 0..self.clients[index].flights.len() {
            if self.clients[index].flights[flight].is_open {
                self.conclude(index, flight, Completion::Unknown, now, trace);
            }
        }
        let client = &mut self.clients[index];
        client.disconnect();
        let at = now + client.rng.between(RECONNECT_NS.0, RECONNECT_NS.1);
        queue.push(at, Event::Client { client: index, connection: client.connection });
    }

    /// Looks whether a client has waited too long.
    pub fn on_patience(&mut self, index: usize, now: u64, queue: &mut Queue, trace: &mut Trace) {
        let client = &mut self.clients[index];
        client.is_watched = false;
        if client.open == 0 {
            return;
        }
        if now >= client.patient_until {
            return self.abandon(index, now, queue, trace);
        }
        client.is_watched = true;
        queue.push(client.patient_until, Event::Patience { client: index });
    }

    /// Who still waits, for the message of a liveness violation.
    #[must_use]
    pub fn waiting(&self) -> String {
        let waits = |client: &&Client| !self.done[client.index];
        let shown = |client: &Client| {
            let host = client.host.map_or("nobody".to_owned(), |host| format!("n{}", host + 1));
            format!("c{} ({} open, connected to {host})", client.index, client.open)
        };
        self.clients.iter().filter(waits).map(shown).collect::<Vec<_>>().join(", ")
    }
}
