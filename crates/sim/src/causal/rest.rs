//! How it is told that all is quiet, and what must hold then.

use super::World;
use super::clients::Stage;
use super::section::AntiEntropy;
use crate::host::{Host, LANE};
use crate::queue::Event;
use crate::turns::Turns;
use quorate_check::siblings::Remains;
use quorate_kernel::process::Inspect;
use quorate_kernel::storage::{Class, Durability, Reader, store_key};
use quorate_protocols::dots::object::Object;
use std::fmt::Display;

/// How often hosts are looked at while they come to rest.
const LOOK_NS: u64 = 250_000_000;

/// A number that a host shows of its lane; 0 if it does not run.
pub(super) fn count(host: &Host, name: &str) -> u64 {
    struct Find<'a>(&'a str, u64);
    impl Inspect for Find<'_> {
        fn field(&mut self, name: &'static str, value: &dyn Display) {
            if name == self.0 {
                self.1 = value.to_string().parse().expect("it shows numbers");
            }
        }
    }
    let mut find = Find(name, 0);
    host.inspect(LANE, &mut find);
    find.1
}

impl World<'_> {
    /// Looks whether the clients have finished and the hosts have come to rest; then every replica
    /// is asked for every key.
    pub(super) fn look(&mut self) {
        self.machines.event(95, 0);
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
            let remains = remains(host);
            if remains != Remains::default() {
                let [joining, leaving, dots] =
                    ["joining", "leaving", "to_hand_over"].map(|name| count(host, name));
                self.unsettled = format!(
                    "n{} still has {remains:?}: {joining} join, {leaving} leave, {dots} to tell",
                    index + 1
                );
                return false;
            }
        }
        if !self.is_known() {
            self.unsettled = "the newest map is not known to all".to_owned();
            return false;
        }
        true
    }

    /// Asks each replica of each key, on its own.
    fn ask_all(&mut self) {
        let holders = |key: &[u8]| {
            let positions = self.shape.replicas_of(self.shape.home(xxh3(key)));
            let places = positions.filter_map(|at| {
                self.map.place(quorate_protocols::dots::dot::Position(at)).map(|place| place.host)
            });
            let hosts = places.filter_map(|node| {
                self.machines.hosts.iter().position(|host| host.node_id == node)
            });
            hosts.collect::<Vec<_>>()
        };
        self.clients.ask_all(holders);
        self.settle();
    }

    /// Everything was asked: notes what is left, for the judge.
    fn conclude(&mut self) {
        let is_memory = self.prepared.scenario.durability() == Durability::Memory;
        for host in &self.machines.hosts {
            let has_tombstones = self.section.anti_entropy == AntiEntropy::Merkle;
            let empty = if is_memory || has_tombstones { 0 } else { empty_objects(host) };
            self.clients.history.remains(Remains { empty, ..remains(host) });
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

/// What a host shows that should not be there at rest.
fn remains(host: &Host) -> Remains {
    Remains {
        // The baseline shows how many of its trees are not known to be equal.
        moving: count(host, "joining") + count(host, "leaving") + count(host, "unequal"),
        dots: count(host, "dot_keys"),
        contexts: count(host, "unstripped"),
        empty: 0,
    }
}

/// The stored objects of a host that have no value.
fn empty_objects(host: &Host) -> u64 {
    let (from, to) = (store_key(LANE, Class::Data, &[]), [0, 0, 0, LANE.0 as u8, 2]);
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

fn xxh3(key: &[u8]) -> u64 {
    quorate_protocols::causal::keys::hash_of_key(key)
}
