//! How it is told that all is quiet, and what must hold then.

use super::World;
use super::clients::Stage;
use super::section::AntiEntropy;
use crate::host::{Host, LANE};
use crate::queue::{Event, HostIndex};
use crate::turns::Turns;
use quorate_check::siblings::Remains;
use quorate_kernel::ids::LaneId;
use quorate_kernel::process::Inspect;
use quorate_kernel::storage::{Class, Durability, Reader, store_key};
use quorate_protocols::causal::keys::hash_of_key;
use quorate_protocols::causal::map::{Map, Shape};
use quorate_protocols::dots::dot::Position;
use quorate_protocols::dots::object::Object;
use std::fmt::Display;

/// How often hosts are looked at while they come to rest.
const LOOK_NS: u64 = 250_000_000;

/// A number that a host shows of a lane; 0 if that does not run.
pub(crate) fn count(host: &Host, lane: LaneId, name: &str) -> u64 {
    struct Find<'a>(&'a str, u64);
    impl Inspect for Find<'_> {
        fn field(&mut self, name: &'static str, value: &dyn Display) {
            if name == self.0 {
                self.1 = value.to_string().parse().expect("it shows numbers");
            }
        }
    }
    let mut find = Find(name, 0);
    host.inspect(lane, &mut find);
    find.1
}

impl World<'_> {
    /// Looks whether the clients have finished and the hosts have come to rest; then every replica
    /// is asked for every key.
    pub(super) fn look(&mut self) {
        self.machines.event(95, 0);
        self.note_moved();
        match self.clients.stage {
            Stage::Over => return self.conclude(),
            Stage::Final => {}
            Stage::Free | Stage::Demand => {
                let is_at_rest = self.clients.is_finished() && self.is_at_rest();
                if is_at_rest {
                    self.machines.line(format_args!("** rest"));
                    self.ask_all();
                }
            }
        }
        self.machines.after(LOOK_NS, Event::Look);
    }

    fn is_at_rest(&mut self) -> bool {
        self.unsettled.clear();
        for (index, host) in self.machines.hosts.iter().enumerate() {
            let remains = remains(host, LANE);
            if remains != Remains::default() {
                let [joining, leaving, dots] =
                    ["joining", "leaving", "to_hand_over"].map(|name| count(host, LANE, name));
                self.unsettled = format!(
                    "n{} still has {remains:?}: {joining} join, {leaving} leave, {dots} to tell",
                    index + 1
                );
                return false;
            }
        }
        if self.machines.net.is_late(self.machines.now) {
            // A write that it carries would be done after all.
            self.unsettled = "a delayed frame is on its way".to_owned();
            return false;
        }
        if !self.is_known() {
            self.unsettled = "the newest map is not known to all".to_owned();
            return false;
        }
        true
    }

    /// Asks each replica of each key, on its own.
    fn ask_all(&mut self) {
        let holders = |key: &[u8]| holders(&self.machines.hosts, self.shape, &self.map, key);
        self.clients.ask_all(holders);
        self.settle();
    }

    /// Everything was asked: notes what is left, for the judge.
    fn conclude(&mut self) {
        let is_memory = self.prepared.scenario.durability() == Durability::Memory;
        for host in &self.machines.hosts {
            let has_tombstones = self.section.anti_entropy == AntiEntropy::Merkle;
            let empty = if is_memory || has_tombstones { 0 } else { empty_objects(host, LANE) };
            self.clients.history.remains(Remains { empty, ..remains(host, LANE) });
        }
        self.is_over = true;
    }

    /// What had to happen by now has not.
    pub(super) fn too_late(&mut self) {
        let what = if self.clients.is_finished() {
            format!("not at rest: {}", self.unsettled)
        } else {
            self.clients.waiting()
        };
        self.machines.condemn("liveness", what);
    }
}

/// What a host shows of a lane that should not be there at rest.
pub(crate) fn remains(host: &Host, lane: LaneId) -> Remains {
    Remains {
        // The baseline shows how many of its trees are not known to be equal. A clock has two
        // entries of a position at most: of who holds it, and of all that held it before.
        moving: ["joining", "leaving", "unequal", "spare_entries"]
            .map(|name| count(host, lane, name))
            .iter()
            .sum(),
        dots: count(host, lane, "dot_keys"),
        contexts: count(host, lane, "unstripped"),
        empty: 0,
    }
}

/// The stored objects of a lane at a host that have no value.
pub(crate) fn empty_objects(host: &Host, lane: LaneId) -> u64 {
    let (from, to) = (store_key(lane, Class::Data, &[]), [0, 0, 0, lane.0 as u8, 2]);
    let mut empty = 0;
    let result = host.disk.store().scan(&from, &to, &mut |key, value| {
        // After lane, class and birth stands the kind.
        if key.get(9) == Some(&b'o') {
            let object = Object::from_bytes(value).expect("what was stored is an object");
            empty += u64::from(object.versions.is_empty());
        }
        true
    });
    result.expect("the simulated store reads");
    empty
}

/// The hosts that hold a key.
pub(crate) fn holders(hosts: &[Host], shape: Shape, map: &Map, key: &[u8]) -> Vec<HostIndex> {
    let positions = shape.replicas_of(shape.home(hash_of_key(key)));
    let places = positions.filter_map(|at| map.place(Position(at)).map(|place| place.host));
    places.filter_map(|node| hosts.iter().position(|host| host.node_id == node)).collect()
}
