//! What must hold of the roll, where hosts keep one.

use super::World;
use crate::host::{Host, Running, count};
use quorate_kernel::ids::LaneId;
use quorate_kernel::process::Inspect;
use quorate_kernel::roll::Kind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Display;

/// How hosts keep the roll.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RollSection {
    /// By agreement of a majority.
    Rapid,
    /// By reports in one probable order.
    Prime,
}

impl RollSection {
    /// The lane's word.
    #[must_use]
    pub fn kind(self) -> Kind {
        match self {
            RollSection::Rapid => Kind::Rapid,
            RollSection::Prime => Kind::Prime,
        }
    }
}

/// What hosts have said of the roll, now or earlier.
#[derive(Debug, Default)]
pub(super) struct Rolls {
    /// The digests of Rapid's configurations, by number.
    numbered: BTreeMap<u64, u64>,
    /// The digests of PRIME's views, by what names the reports that led to them.
    heard: BTreeMap<u64, u64>,
    /// From which view each of PRIME's was made.
    before: BTreeMap<u64, u64>,
}

/// A step of PRIME's history, as a host shows it.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    digest: u64,
    /// The name of the report that made it, in the order of reports; zeros for the first view.
    by: (u64, u64, u64),
}

#[derive(Debug, Default)]
struct Steps(Vec<Step>);

impl Inspect for Steps {
    fn field(&mut self, _: &'static str, _: &dyn Display) {}

    fn row(&mut self, table: &'static str, cells: &[(&'static str, &dyn Display)]) {
        if table != "steps" {
            return;
        }
        let number = |name: &str| -> u64 {
            let cell = cells.iter().find(|(other, _)| *other == name).expect("a step has it");
            cell.1.to_string().parse().expect("it shows numbers")
        };
        let by = (number("time"), number("source"), number("start"));
        self.0.push(Step { digest: number("digest"), by });
    }
}

impl Rolls {
    /// Two hosts with the same number know the same configuration.
    fn see_number(&mut self, host: &Host) -> Option<String> {
        let (number, digest) = (of(host, "number"), of(host, "digest"));
        let known = *self.numbered.entry(number).or_insert(digest);
        (known != digest).then(|| format!("another configuration {number}"))
    }

    /// Hosts may have missed changes, and never differ in their order: each history goes on in the
    /// order of reports, a view has one history, and who has taken in the same reports is in the
    /// same view.
    fn see_history(&mut self, host: &Host) -> Option<String> {
        let mut steps = Steps::default();
        host.inspect_state(LaneId::ROLL, &mut steps);
        for two in steps.0.windows(2) {
            if two[0].by >= two[1].by {
                return Some(format!("views that are not in the order of reports: {two:?}"));
            }
            let before = *self.before.entry(two[1].digest).or_insert(two[0].digest);
            if before != two[0].digest {
                return Some(format!("another history of the view {:x}", two[1].digest));
            }
        }
        let (heard, digest) = (of(host, "heard"), of(host, "digest"));
        let known = *self.heard.entry(heard).or_insert(digest);
        (known != digest).then(|| format!("another view after the same reports: {digest:x}"))
    }
}

fn of(host: &Host, name: &str) -> u64 {
    count(host, LaneId::ROLL, name)
}

impl World<'_> {
    /// Looks whether two hosts differ in what they must not differ in.
    pub(super) fn watch_roll(&mut self) {
        let Some(kind) = self.prepared.scenario.roll else { return };
        for (index, host) in self.machines.hosts.iter().enumerate() {
            if of(host, "number") == 0 {
                continue;
            }
            let wrong = match kind {
                RollSection::Rapid => self.rolls.see_number(host),
                RollSection::Prime => self.rolls.see_history(host),
            };
            if let Some(wrong) = wrong {
                return self.machines.condemn("roll", format!("n{} has {wrong}", index + 1));
            }
        }
    }

    /// Who is not on the one roll of all that take part, or does not know it. Where disks were
    /// lost, and the members that are left are no majority, it stands still for good: then all have
    /// to say so.
    pub(super) fn unlisted(&self) -> Option<String> {
        self.prepared.scenario.roll?;
        let joined = || self.machines.hosts.iter().enumerate().filter(|(_, it)| it.has_joined);
        let newest = joined().map(|(_, host)| of(host, "number")).max()?;
        let hosts = joined().count() as u64;
        let knows = |(_, host): &(_, &Host)| of(host, "number") == newest;
        let (_, knowing) = joined().find(knows)?;
        let (members, digest) = (of(knowing, "members"), of(knowing, "digest"));
        let left: u64 = joined().map(|(_, host)| of(host, "is_member")).sum();
        if left < members / 2 + 1 && self.lost().next().is_some() {
            let mut going = joined().filter(|(_, host)| of(host, "goes_on") == 1);
            return going
                .next()
                .map(|(index, _)| format!("n{} has a roll without others", index + 1));
        }
        joined().find_map(|(index, host)| {
            let is_up = host.running == Running::Up;
            let is_same = of(host, "number") == newest && of(host, "digest") == digest;
            let knows = is_same && of(host, "goes_on") == 1;
            let are_all = of(host, "members") == hosts && of(host, "hosts") == hosts;
            let (number, members) = (of(host, "number"), of(host, "members"));
            (!is_up || !knows || !are_all)
                .then(|| format!("n{} is at roll {number} of {newest}, {members} on it", index + 1))
        })
    }
}
