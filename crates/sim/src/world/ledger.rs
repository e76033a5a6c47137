//! What was asked of whom, when, and how it ended: by this the engines are compared.

use crate::queue::HostIndex;
use crate::workload::{Demand, Submission};
use quorate_kernel::ids::Ticket;
use quorate_kernel::operation::Outcome;

/// How something ended that a host was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It was done.
    Done,
    /// It was refused: nothing was changed.
    Refused,
    /// The host does not know.
    Unknown,
}

/// Something that a host was asked.
#[derive(Clone, Debug)]
pub struct LedgerEntry {
    /// By its ticket.
    pub ticket: Ticket,
    /// Which host.
    pub host: HostIndex,
    /// When, in nanoseconds.
    pub at: u64,
    /// Whether it changes something.
    pub is_write: bool,
    /// How it ended and when; nothing if the host did not answer.
    pub end: Option<(u64, End)>,
}

/// All that was asked of one keyspace.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// In the order of asking, which is that of tickets.
    pub asked: Vec<LedgerEntry>,
}

impl Ledger {
    pub(super) fn ask(&mut self, ticket: Ticket, submission: &Submission, at: u64) {
        let Submission { host, ask, .. } = submission;
        let is_write = match ask {
            Demand::Operation(operation) => operation.is_write(),
            Demand::Order(_) => true,
            Demand::Watch(_) => false,
            // It ends what was asked by the same ticket, and is not answered.
            Demand::Unwatch => return,
        };
        self.asked.push(LedgerEntry { ticket, host: *host, at, is_write, end: None });
    }

    pub(super) fn end(&mut self, ticket: Ticket, outcome: &Outcome, at: u64) {
        let end = match outcome {
            Outcome::Refused(refusal) if refusal.may_have_applied() => End::Unknown,
            Outcome::Refused(_) => End::Refused,
            // More follows.
            Outcome::More(_) => return,
            _ => End::Done,
        };
        let found = self.asked.binary_search_by_key(&ticket, |asked| asked.ticket);
        let asked = &mut self.asked[found.expect("who is answered has asked")];
        assert!(asked.end.is_none(), "a host answers once");
        asked.end = Some((at, end));
    }

    /// Of what was asked in this time and done: how many there were, and how long it took in
    /// nanoseconds, the shortest first.
    #[must_use]
    pub fn latencies(&self, from: u64, until: u64) -> Vec<u64> {
        let is_in = |asked: &&LedgerEntry| (from..until).contains(&asked.at);
        let done = self.asked.iter().filter(is_in).filter_map(|asked| match asked.end {
            Some((at, End::Done)) => Some(at - asked.at),
            _ => None,
        });
        let mut latencies: Vec<u64> = done.collect();
        latencies.sort_unstable();
        latencies
    }
}
