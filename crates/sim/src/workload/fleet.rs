//! The clients of one keyspace: whom they are connected to, how long they wait, what they may still
//! begin. What they ask is their workload's business.
//!
//! Each client is a closed loop: it asks the host that it is connected to, waits for all answers,
//! thinks, and goes on. It loses its connection when the process ends, gives up when it waits too
//! long, and connects to another host. Whatever was open then is unknown for ever.

use super::section::WorkloadSection;
use super::{Demand, Submission};
use crate::delay::Delay;
use crate::hosts::machines::Scene;
use crate::queue::{Event, HostIndex};
use quorate_kernel::ids::Ticket;
use quorate_kernel::rng::Rng;
use quorate_kernel::time::Span;

/// How long a client waits before it connects again.
const RECONNECT_NS: (u64, u64) = (1_000_000, 20_000_000);
/// The pauses of who follows at once, and of everybody when everything must succeed.
const BURST_NS: (u64, u64) = (1000, 50_000);
const STRICT_NS: (u64, u64) = (1000, 1_000_000);
/// What clients must do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Anything may fail.
    Free,
    /// Every operation begun must succeed.
    Demand,
    /// The same; what a workload asks of clients after that.
    Final,
    /// Every client has finished.
    Over,
}

/// How something ended that a client had asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It was done.
    Answered,
    /// It was refused: nothing was changed.
    Refused,
    /// Nobody knows.
    Unknown,
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

/// Whom the answer to a ticket is for.
#[derive(Clone, Copy, Debug)]
pub struct Addressee {
    /// The client; none if the workload itself asked.
    pub client: Option<usize>,
    pub(super) connection: u32,
    /// The workload's own number of what was asked.
    pub number: u32,
}

/// What a client is to the fleet.
#[derive(Debug)]
pub struct Seat {
    /// Its own randomness.
    pub rng: Rng,
    /// The host it is connected to.
    pub host: Option<HostIndex>,
    /// Counts connections; what was meant for an earlier one is void.
    pub connection: u32,
    /// How many operations it may still begin in this stage.
    pub left: u32,
    /// How many answers it waits for.
    pub open: usize,
    /// Whether what it waits for must succeed.
    pub is_strict: bool,
    pub(super) patient_until: u64,
    pub(super) is_watched: bool,
}

/// The clients of one keyspace.
pub struct Fleet {
    /// The number of the first one in the world: lower ones are somebody else's.
    pub first: usize,
    pub(super) section: WorkloadSection,
    think: Delay,
    /// The clients.
    pub seats: Vec<Seat>,
    pub(super) done: Vec<bool>,
    /// Which hosts accept connections, and which may be asked.
    pub(super) open: Vec<bool>,
    pub(super) usable: Vec<bool>,
    pub(super) demanded: u32,
    pub(super) asked: Vec<Addressee>,
    /// What hosts shall be asked; the world takes it.
    pub submissions: Vec<Submission>,
    /// What clients must do now.
    pub stage: Stage,
    /// How operations ended.
    pub counts: Counts,
    /// An operation that had to succeed and did not, or an answer that makes no sense.
    pub failure: Option<String>,
}

impl Fleet {
    /// The clients of a section; `demanded` operations each must succeed after the faults.
    #[must_use]
    pub fn new(
        section: &WorkloadSection,
        think: Delay,
        first: usize,
        demanded: u32,
        hosts: usize,
        rng: &mut Rng,
    ) -> Fleet {
        let share = section.operations / section.clients as u32;
        let rest = section.operations % section.clients as u32;
        let seat = |index: usize| Seat {
            rng: rng.fork(index as u64),
            host: None,
            connection: 0,
            left: share + u32::from((index as u32) < rest),
            open: 0,
            is_strict: false,
            patient_until: 0,
            is_watched: false,
        };
        Fleet {
            first,
            section: section.clone(),
            think,
            seats: (0..section.clients).map(seat).collect(),
            done: vec![false; section.clients],
            open: vec![false; hosts],
            usable: vec![true; hosts],
            demanded,
            asked: Vec::new(),
            submissions: Vec::new(),
            stage: Stage::Free,
            counts: Counts::default(),
            failure: None,
        }
    }

    /// The name of a client in traces.
    #[must_use]
    pub fn name(&self, client: usize) -> String {
        format!("c{}", self.first + client)
    }

    /// Lets every client begin, each at its own time.
    pub fn start(&mut self, scene: &mut Scene<'_>) {
        for client in 0..self.seats.len() {
            let pause = self.pause(client);
            self.wake(client, pause, scene);
        }
    }

    /// How long an operation begun now may take.
    #[must_use]
    pub fn deadline(&self) -> Span {
        Span::millis(self.section.deadline_ms)
    }

    /// Whether every client has done what was demanded of it.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.stage == Stage::Over
    }

    /// A client begins so many operations. By its stage they must succeed, unless it is said that
    /// they may fail.
    pub fn begin(&mut self, client: usize, count: usize, may_fail: bool, scene: &mut Scene<'_>) {
        let is_strict = self.stage != Stage::Free && !may_fail;
        let patience = self.section.patience_ms * 1_000_000;
        let seat = &mut self.seats[client];
        assert_eq!(seat.open, 0, "a client waits for all answers before it goes on");
        (seat.open, seat.is_strict) = (count, is_strict);
        seat.patient_until = scene.now + patience;
        self.counts.begun += count as u64;
        self.counts.begun_freely += if is_strict { 0 } else { count as u64 };
        if !seat.is_watched {
            seat.is_watched = true;
            let event = Event::Patience { client: self.first + client };
            scene.queue.push(seat.patient_until, event);
        }
    }

    /// A client sends something to its host. The number comes back with the answer.
    pub fn send(&mut self, client: usize, number: u32, ask: Demand) -> Ticket {
        let Seat { host, connection, .. } = self.seats[client];
        let host = host.expect("a client sends when it is connected");
        self.push(host, Addressee { client: Some(client), connection, number }, ask)
    }

    /// Tells a host that what is followed by this ticket is followed no more.
    pub fn unwatch(&mut self, host: HostIndex, ticket: Ticket) {
        self.submissions.push(Submission { host, ticket, ask: Demand::Unwatch });
    }

    /// Asks a host something that no client waits for; the workload does.
    pub fn ask(&mut self, host: HostIndex, number: u32, ask: Demand) {
        self.push(host, Addressee { client: None, connection: 0, number }, ask);
    }

    fn push(&mut self, host: HostIndex, asked: Addressee, ask: Demand) -> Ticket {
        let ticket = Ticket(self.asked.len() as u64);
        self.asked.push(asked);
        self.submissions.push(Submission { host, ticket, ask });
        ticket
    }

    /// One operation of a client has ended; `told` says in words how.
    pub fn end(&mut self, client: usize, end: End, told: &dyn Fn() -> String) {
        let seat = &mut self.seats[client];
        seat.open -= 1;
        match end {
            End::Answered => {
                self.counts.answered += 1;
                self.counts.answered_freely += u64::from(!seat.is_strict);
                return;
            }
            End::Refused => self.counts.refused += 1,
            End::Unknown => self.counts.unknown += 1,
        }
        if seat.is_strict {
            let (name, told) = (self.name(client), told());
            let message = format!("{name} was told `{told}` although everything is healed");
            self.failure.get_or_insert(message);
        }
    }

    /// A client has all answers: it thinks and goes on, perhaps at another host.
    pub fn go_on(&mut self, client: usize, leave_ppm: u32, scene: &mut Scene<'_>) {
        if self.seats[client].rng.chance_ppm(leave_ppm) {
            self.disconnect(client);
        }
        let pause = self.pause(client);
        self.wake(client, pause, scene);
    }

    fn pause(&mut self, client: usize) -> u64 {
        let rng = &mut self.seats[client].rng;
        let is_burst = rng.chance_ppm(self.section.burst_ppm);
        match (self.stage, is_burst) {
            (Stage::Free, false) => self.think.sample(rng),
            (Stage::Free, true) => rng.between(BURST_NS.0, BURST_NS.1),
            _ => rng.between(STRICT_NS.0, STRICT_NS.1),
        }
    }

    pub(super) fn wake(&self, client: usize, after: u64, scene: &mut Scene<'_>) {
        let connection = self.seats[client].connection;
        let event = Event::Client { client: self.first + client, connection };
        scene.queue.push(scene.now + after, event);
    }

    /// A client leaves its host; whatever was under way there no longer reaches it.
    pub fn disconnect(&mut self, client: usize) {
        let seat = &mut self.seats[client];
        seat.connection += 1;
        seat.host = None;
    }

    /// Makes sure that a client is connected; if it cannot be, it tries again later. In the final
    /// stage clients spread over the hosts, so that every one is asked.
    pub(super) fn connect(&mut self, client: usize, scene: &mut Scene<'_>) -> bool {
        if self.seats[client].host.is_some() {
            return true;
        }
        let may_use = |host: &HostIndex| self.open[*host] && self.usable[*host];
        let hosts: Vec<HostIndex> = (0..self.open.len()).filter(may_use).collect();
        if hosts.is_empty() {
            self.connect_later(client, scene);
            return false;
        }
        let seat = &mut self.seats[client];
        let nth = match self.stage {
            Stage::Final => client % hosts.len(),
            _ => seat.rng.below(hosts.len() as u64) as usize,
        };
        seat.connection += 1;
        seat.host = Some(hosts[nth]);
        true
    }

    pub(super) fn connect_later(&mut self, client: usize, scene: &mut Scene<'_>) {
        let after = self.seats[client].rng.between(RECONNECT_NS.0, RECONNECT_NS.1);
        self.wake(client, after, scene);
    }
}
