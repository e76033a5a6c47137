//! The keyspaces of a world, each with its clients.

use super::ledger::Ledger;
use crate::host::Host;
use crate::hosts::machines::CLIENTS;
use crate::keyspace::KeyspaceSection;
use crate::prepared::{Prepared, PreparedKeyspace};
use crate::seed::{Report, Violation};
use crate::workload::clients::Clients;
use crate::workload::fleet::Fleet;
use crate::workload::{self, Ground, Submission};
use quorate_check::Judges;
use quorate_kernel::ids::{GroupId, LaneId, Ticket};
use quorate_kernel::keyspace::Keyspace;
use quorate_kernel::rng::Rng;
use std::collections::BTreeSet;

/// The bits of a ticket that say whose it is.
const OF_BITS: u32 = 48;
/// The judge whose findings explain others.
const CHAIN: &str = "catalog";

/// How long after a loss of everything an operator waits until a keyspace that stands still is
/// given up.
const STUCK_NS: u64 = 5_000_000_000;

/// A loss of everything that a keyspace had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LostAll {
    /// When.
    pub at: u64,
    /// Whether the members of its groups were changing then.
    pub were_members_changing: bool,
    /// The groups that stood still when they were looked at last.
    still: BTreeSet<GroupId>,
}

impl LostAll {
    /// It is lost now.
    pub fn new(at: u64, were_members_changing: bool) -> LostAll {
        LostAll { at, were_members_changing, still: BTreeSet::new() }
    }

    /// Whether groups that stand still now do so by design, and one of them did when this was asked
    /// last.
    pub fn excuses(&mut self, now: u64, still: BTreeSet<GroupId>) -> bool {
        let is_time = self.were_members_changing && now >= self.at + STUCK_NS;
        let still = if is_time { still } else { BTreeSet::new() };
        let before = std::mem::replace(&mut self.still, still);
        !before.is_disjoint(&self.still)
    }
}

/// A keyspace of a world, or its catalog, and the clients that use it.
pub struct Tenant<'a> {
    /// The keyspace.
    pub keyspace: &'a PreparedKeyspace,
    /// The lane that serves it now: another one after it was dropped and made again.
    pub(super) lane: LaneId,
    /// Whether what only operators can help was lost with a disk: they make it again.
    pub(super) is_beyond_help: bool,
    /// The last time that everything was lost that it had in memory alone, unless all of it was
    /// served again since.
    pub(super) lost_all: Option<LostAll>,
    /// Its clients.
    pub clients: Clients,
    /// What was asked of it.
    pub ledger: Ledger,
    index: u64,
}

impl<'a> Tenant<'a> {
    /// Those of a seed of a scenario.
    pub(super) fn all(prepared: &'a Prepared, seed: u64) -> Vec<Tenant<'a>> {
        let mut first = 0;
        let scenario = &prepared.scenario;
        let sections = scenario.keyspaces.iter().zip(&prepared.keyspaces).enumerate();
        let tenant =
            |(index, (section, keyspace)): (usize, (&KeyspaceSection, &'a PreparedKeyspace))| {
                // A stream of its own for each, so that none shifts the others.
                let mut rng = Rng::new(seed).fork(CLIENTS | (index as u64) << 32);
                let mut seats = rng.fork(1 << 32);
                let demanded = scenario.liveness.operations;
                let (think, workload) = (keyspace.think.clone(), &section.workload);
                let fleet =
                    Fleet::new(workload, think, first, demanded, scenario.hosts, &mut seats);
                first += workload.clients;
                let clients = Clients { fleet, work: workload::of(section, &mut rng) };
                let (lane, is_beyond_help) = (keyspace.lane, false);
                let (ledger, index) = (Ledger::default(), index as u64);
                let lost_all = None;
                Tenant { keyspace, lane, is_beyond_help, lost_all, clients, ledger, index }
            };
        sections.map(tenant).collect()
    }

    /// The lane that serves it.
    #[must_use]
    pub fn lane(&self) -> LaneId {
        self.lane
    }

    /// The facts that its promise depends on now.
    pub(super) fn ground<'g>(
        &self,
        hosts: &'g [Host],
        known: Option<&'g Keyspace>,
        unsettled: Option<&'g str>,
    ) -> Ground<'g> {
        Ground { lane: self.lane, ..self.keyspace.ground(hosts, known, unsettled) }
    }

    /// What its clients want hosts to be asked, with the tickets of this tenant.
    pub(super) fn take_submissions(&mut self, into: &mut Vec<Submission>) {
        let of = self.index << OF_BITS;
        into.extend(self.clients.fleet.submissions.drain(..).map(|submission| {
            let ticket = Ticket(submission.ticket.0 | of);
            Submission { ticket, ..submission }
        }));
    }

    /// Judges what its clients were told, unless something is wrong already.
    pub(super) fn judge(&mut self, judges: &mut Judges, report: &mut Report) {
        let is_clean = report.violation.is_none();
        let explains = self.keyspace.engine.is_none()
            && report.violation.as_ref().is_some_and(|violation| violation.judge != "panic");
        if !is_clean && !explains {
            return;
        }
        let findings = self.clients.work.judge(judges);
        if let Some((judge, message)) = findings.violation
            && (is_clean || judge == CHAIN)
        {
            report.violation = Some(Violation { judge, message });
        }
        if let Some(why) = findings.undecided {
            report.undecided.get_or_insert(why);
        }
    }
}

/// Whose a ticket is, and what it is there.
pub(super) fn owner(ticket: Ticket) -> (usize, Ticket) {
    let of = ticket.0 >> OF_BITS;
    (of as usize, Ticket(ticket.0 & ((1 << OF_BITS) - 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is over before all is lost is no reason to stand still afterwards.
    #[test]
    fn a_keyspace_may_stand_still_if_its_members_were_changing_when_all_was_lost() {
        let still = |groups: &[u64]| groups.iter().copied().map(GroupId).collect::<BTreeSet<_>>();
        let asked = |were_members_changing, now: [u64; 2], groups: [&[u64]; 2]| {
            let mut lost = LostAll::new(7, were_members_changing);
            let [first, then] = [0, 1].map(|at| lost.excuses(now[at], still(groups[at])));
            assert!(!first, "it may be for a moment");
            then
        };
        let late = [7 + STUCK_NS, 8 + STUCK_NS];
        assert!(asked(true, late, [&[1, 2], &[2]]));
        assert!(!asked(true, [6 + STUCK_NS, 7 + STUCK_NS], [&[1], &[1]]), "it may go on soon");
        assert!(!asked(false, late, [&[1], &[1]]));
        assert!(!asked(true, late, [&[1], &[]]), "it goes on");
        assert!(!asked(true, late, [&[1], &[2]]), "one goes on, and another stands still");
    }
}
