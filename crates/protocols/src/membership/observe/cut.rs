//! Multi-process cut detection (paper §4.2): what all observers have reported in a configuration,
//! and the one change that it amounts to.
//!
//! A subject with at least H reports is stable: it is part of the change. One with at least L and
//! fewer than H is in flux: the change waits for it, so that nodes that fail together leave
//! together, and everybody sees the same. Fewer are noise.

use super::super::change::Change;
use super::super::configuration::{Configuration, Member, Shape};
use super::super::timer::REINFORCE;
use super::Rings;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::NodeId;
use quorate_kernel::limits::{ROLL_CHANGE_MAX, ROLL_JOINERS_MAX, ROLL_MEMBERS_MAX};
use quorate_kernel::mutant;
use quorate_kernel::time::Time;

/// What was reported of a subject.
#[derive(Clone, Debug)]
struct Report {
    /// The rings in which it was, by the observer there or implied.
    rings: u16,
    /// When the first one came.
    since: Time,
    /// Who it is, if it wants to join.
    member: Option<Arc<Member>>,
}

/// The reports of one configuration. They are only ever added to.
#[derive(Debug, Default)]
pub struct Cut {
    reports: BTreeMap<NodeId, Report>,
    joiners: usize,
}

impl Cut {
    /// Counts an alert that is right: the observer is one in these rings, and the subject can leave
    /// or join.
    pub fn count(&mut self, subject: NodeId, rings: u16, member: Option<&Arc<Member>>, now: Time) {
        if !self.reports.contains_key(&subject) {
            if member.is_some() && self.joiners >= ROLL_JOINERS_MAX {
                // It is told again in the next configuration.
                return;
            }
            self.joiners += usize::from(member.is_some());
            let member = member.cloned();
            self.reports.insert(subject, Report { rings: 0, since: now, member });
        }
        let report = self.reports.get_mut(&subject).expect("it is there");
        report.rings |= rings;
        if let (Some(known), Some(member)) = (&mut report.member, member)
            && member < known
        {
            // One that says different things to its observers is the smallest of them for all.
            *known = Arc::clone(member);
        }
    }

    /// The rings in which a subject was reported.
    #[must_use]
    pub fn rings(&self, subject: NodeId) -> u16 {
        self.reports.get(&subject).map_or(0, |report| report.rings)
    }

    /// Whether a subject has so many reports that one more counts for those that are like it: L of
    /// them, or any for long. The latter is not the paper's: where many fail at once, of some not
    /// even L observers are left, and each would wait for the other.
    fn is_suspect(report: &Report, shape: Shape, now: Time) -> bool {
        count(report) >= u32::from(shape.low) || now - report.since >= REINFORCE
    }

    /// Counts what nobody is there to report: an edge whose observer is itself suspected (paper
    /// §4.2: implicit detections).
    pub fn imply(&mut self, rings: &Rings, shape: Shape, now: Time) {
        if mutant!("roll_no_implicit_edges") {
            return;
        }
        let suspects: Vec<NodeId> = self
            .reports
            .iter()
            .filter(|(_, report)| Cut::is_suspect(report, shape, now))
            .map(|(subject, _)| *subject)
            .collect();
        let is_down = |node: &NodeId| {
            let report = self.reports.get(node);
            report.is_some_and(|it| it.member.is_none() && Cut::is_suspect(it, shape, now))
        };
        let implied = |subject: NodeId| {
            let silent = rings.observers(subject).filter(|(_, observer)| is_down(observer));
            (subject, silent.fold(0, |bits, (ring, _)| bits | 1 << ring))
        };
        let all: Vec<(NodeId, u16)> = suspects.into_iter().map(implied).collect();
        for (subject, bits) in all {
            self.reports.get_mut(&subject).expect("it is reported").rings |= bits;
        }
    }

    /// Subjects that have been in flux for long: their observers shall say so too (paper §4.2:
    /// reinforcements).
    pub fn lingering(
        &self,
        shape: Shape,
        now: Time,
    ) -> impl Iterator<Item = (NodeId, Option<&Arc<Member>>)> {
        let lingers = move |report: &Report| {
            let is_long = now - report.since >= REINFORCE;
            is_in_flux(report, shape) && is_long && !mutant!("roll_no_reinforcement")
        };
        let reports = self.reports.iter().filter(move |(_, report)| lingers(report));
        reports.map(|(subject, report)| (*subject, report.member.as_ref()))
    }

    /// The change that all reports amount to; none while a subject is in flux. What would be too
    /// much for one is left for the next, and somebody always stays.
    #[must_use]
    pub fn proposal(&self, configuration: &Configuration) -> Option<Change> {
        let shape = configuration.shape;
        let waits = self.reports.values().any(|report| is_in_flux(report, shape));
        if waits && !mutant!("roll_cuts_while_in_flux") {
            return None;
        }
        let stable = || self.reports.iter().filter(|(_, report)| is_stable(report, shape));
        let leaving = stable().filter(|(_, report)| report.member.is_none()).map(|(node, _)| *node);
        let mut leaves: BTreeSet<NodeId> = leaving.take(ROLL_CHANGE_MAX).collect();
        if leaves.len() == configuration.members.len() {
            leaves.pop_first();
        }
        let room = ROLL_MEMBERS_MAX - (configuration.members.len() - leaves.len());
        let most = room.min(ROLL_CHANGE_MAX - leaves.len());
        let joins = stable().filter_map(|(_, report)| report.member.clone()).take(most).collect();
        let mut leaves: Vec<NodeId> = leaves.into_iter().collect();
        if mutant!("roll_order_not_canonical") {
            leaves.sort_by_key(|node| self.reports.get(node).map(|report| report.since));
        }
        let change = Change::new(joins, leaves);
        change.is_well_formed().then_some(change)
    }

    /// How many subjects were reported.
    #[must_use]
    pub fn len(&self) -> usize {
        self.reports.len()
    }
}

fn count(report: &Report) -> u32 {
    report.rings.count_ones()
}

fn is_stable(report: &Report, shape: Shape) -> bool {
    count(report) >= u32::from(shape.high)
}

fn is_in_flux(report: &Report, shape: Shape) -> bool {
    count(report) >= u32::from(shape.low) && !is_stable(report, shape)
}

#[cfg(test)]
mod tests;
