//! What must hold of both keyspaces at any time, how it is told that all is quiet, and what must
//! hold then.

use super::World;
use super::keyspace::siblings_at;
use super::section::{REGISTERS, SIBLINGS};
use crate::causal::clients::Stage as Siblings;
use crate::causal::rest::{count, empty_objects, holders, remains};
use crate::groups::{self, Groups};
use crate::host::{Host, Running};
use crate::operators::Operators;
use crate::queue::{Event, HostIndex};
use crate::turns::Turns;
use crate::workload::Stage as Registers;
use quorate_check::siblings::Remains;
use quorate_protocols::causal::map::{Map, Shape};
use std::collections::BTreeMap;

/// How often hosts are looked at while they come to rest.
const LOOK_NS: u64 = 250_000_000;

impl World<'_> {
    /// What the hosts that run say of their groups.
    fn said(&self) -> Vec<(HostIndex, Groups)> {
        let hosts = self.machines.hosts.iter().enumerate();
        hosts.filter_map(|(index, host)| Some((index, Groups::of(host, REGISTERS)?))).collect()
    }

    /// Looks whether hosts contradict each other.
    pub(super) fn watch(&mut self) {
        let said = self.said();
        if let Some(message) = groups::differing(&said).or_else(|| groups::rivals(&said)) {
            self.machines.condemn("views", message);
        }
        let version = said.iter().map(|(_, groups)| groups.number("view")).max();
        self.views = self.views.max(version.unwrap_or(0));
        if let Some(message) = differing(&self.machines.hosts) {
            self.machines.condemn("catalog", message);
        }
    }

    /// What is moving, or not yet known to all that take part; also a lost disk that was not made
    /// up for.
    pub(super) fn unsettled(&self) -> Option<String> {
        self.uninformed().or_else(|| self.ungrouped()).or_else(|| self.unplaced())
    }

    /// Who does not know the catalog as others do.
    fn uninformed(&self) -> Option<String> {
        let mut first = None;
        let hosts = self.machines.hosts.iter().enumerate();
        for (index, host) in hosts.filter(|(_, host)| host.has_joined) {
            let Some(told) = host.told.as_ref().filter(|_| host.running == Running::Up) else {
                return Some(format!("n{} knows no catalog", index + 1));
            };
            let (first, mine) = (first.get_or_insert(told.version), told.version);
            if *first != mine {
                return Some(format!("n{} is at decree {mine}, others at {first}", index + 1));
            }
            if let Some(lost) = self.lost().find(|node| told.members.contains(node)) {
                return Some(format!("{lost} is in the system group, and its disk was lost"));
            }
        }
        None
    }

    /// What of the groups is not as the ring wants it.
    fn ungrouped(&self) -> Option<String> {
        let said = self.said();
        for (host, groups) in &said {
            if let Some(what) = groups.unsettled() {
                return Some(format!("n{} has {what}", host + 1));
            }
            let members = groups.rows.iter().filter(|row| row.is_member);
            let mut names = members.flat_map(|row| &row.members);
            if names.any(|name| self.lost().any(|node| node.to_string() == *name)) {
                return Some(format!("n{} has a group with a member that was lost", host + 1));
            }
        }
        (!groups::covers(&said)).then(|| "no group serves a part of the ring".to_owned())
    }

    /// What of the positions is not as the catalog wants it.
    fn unplaced(&self) -> Option<String> {
        let Some(keyspace) = self.siblings_keyspace() else {
            return Some("there is no keyspace of siblings".to_owned());
        };
        let is_lost = |node| self.lost().any(|lost| lost == node);
        if let Some(at) =
            keyspace.positions.iter().position(|place| !place.is_settled || is_lost(place.node))
        {
            return Some(format!("position {at} is not settled: {:?}", keyspace.positions[at]));
        }
        if let Some(former) = keyspace.former.first() {
            return Some(format!("a former replica was not handed over: {former:?}"));
        }
        let hosts = self.machines.hosts.iter().enumerate();
        for (index, host) in hosts.filter(|(_, host)| host.has_joined) {
            let held = keyspace.positions.iter().filter(|place| place.node == host.node_id);
            let (held, has) = (held.count() as u64, count(host, SIBLINGS, "replicas"));
            let [joining, leaving] = ["joining", "leaving"].map(|name| count(host, SIBLINGS, name));
            if held != has || joining + leaving > 0 {
                let what = format!("{has} of {held} replicas, {joining} join, {leaving} leave");
                return Some(format!("n{} has {what}", index + 1));
            }
        }
        None
    }

    /// Looks whether the clients have finished and the hosts have come to rest; then every replica
    /// of the keyspace of siblings is asked for every key.
    pub(super) fn look(&mut self) {
        self.machines.event(95, 0);
        let is_done = self.registers.stage == Registers::Over && self.siblings.is_finished();
        match self.siblings.stage {
            Siblings::Over if self.unrest().is_none() => return self.conclude(),
            // A position has moved meanwhile, for the shares of all were not even yet.
            Siblings::Over => self.siblings.stage = Siblings::Demand,
            Siblings::Final => {}
            Siblings::Free | Siblings::Demand => {
                self.unsettled = self.unrest();
                if self.unsettled.is_some() {
                    let up = self.up().next();
                    up.into_iter().for_each(|host| self.remove_wiped(host));
                } else if is_done {
                    self.machines.line(format_args!("** rest"));
                    self.ask_all();
                }
            }
        }
        self.machines.after(LOOK_NS, Event::Look);
    }

    /// What keeps the run from its end.
    fn unrest(&self) -> Option<String> {
        self.unsettled().or_else(|| self.unclean())
    }

    /// What a replica keeps that is of no use any more.
    fn unclean(&self) -> Option<String> {
        let mut hosts = self.machines.hosts.iter().enumerate();
        hosts.find_map(|(index, host)| {
            let remains = remains(host, SIBLINGS);
            (remains != Remains::default()).then(|| format!("n{} has {remains:?}", index + 1))
        })
    }

    /// Asks each replica of each key, on its own.
    fn ask_all(&mut self) {
        let keyspace = self.siblings_keyspace().expect("all that is looked at is there");
        let (section, scenario) = (self.section, &self.prepared.scenario);
        let shape = Shape::new(section.positions, u16::from(section.replicas(scenario.replicas())));
        let map = Map::of(&keyspace);
        let hosts = &self.machines.hosts;
        self.siblings.ask_all(|key| holders(hosts, shape, &map, key));
        self.settle();
    }

    /// Everything was asked: notes what is left, for the judge.
    fn conclude(&mut self) {
        for host in &self.machines.hosts {
            let empty = empty_objects(host, SIBLINGS);
            let remains = Remains { empty, ..remains(host, SIBLINGS) };
            self.siblings.history.remains(remains);
        }
        self.is_over = true;
    }

    /// What had to happen by now has not.
    pub(super) fn too_late(&mut self) {
        let what = if self.registers.stage != Registers::Over {
            format!("registers: {}", self.registers.waiting())
        } else if !self.siblings.is_finished() {
            format!("siblings: {}", self.siblings.waiting())
        } else {
            format!("not at rest: {}", self.unsettled.take().unwrap_or_default())
        };
        self.machines.line(format_args!("** too late, with {:?}", self.siblings_keyspace()));
        self.machines.condemn("liveness", what);
    }
}

/// Two hosts have the same decrees and know another keyspace by them.
fn differing(hosts: &[Host]) -> Option<String> {
    let mut known = BTreeMap::new();
    for (index, host) in hosts.iter().enumerate() {
        let Some(keyspace) = siblings_at(host) else { continue };
        let (first, other) = *known.entry(keyspace.changed).or_insert((index, keyspace));
        if keyspace != other {
            let (one, two) = (first + 1, index + 1);
            return Some(format!("n{one} knows {other:?}, and n{two} {keyspace:?}"));
        }
    }
    None
}
