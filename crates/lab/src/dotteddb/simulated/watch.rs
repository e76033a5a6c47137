//! What becomes of each update at each replica: seen from outside, by the objects that are written.
//!
//! Objects are only ever sent whole. So a replica that stores a version holds, or has replaced, all
//! that its coordinator knew of the key when it issued that version: an update counts as stored
//! where its own version was stored, one whose coordinator knew it, or an object whose context
//! covers it (its client had seen it at another replica).

use super::carried::clock_entries;
use super::run::{Piece, Run, Times};
use quorate_kernel::limits::GROUP_MEMBERS_MAX;
use quorate_protocols::causal::keys::hash_of_key;
use quorate_protocols::causal::map::Shape;
use quorate_protocols::dots::dot::{Counter, Dot};
use quorate_protocols::dots::object::Object;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// One update that some replica does not hold yet.
#[derive(Debug)]
struct Update {
    dot: Dot,
    at: u64,
    /// The replicas that hold it, a bit each.
    holders: u8,
    /// What its coordinator held.
    past: Vec<Dot>,
}

#[derive(Debug, Default)]
struct Key {
    /// The last counter that each replica has issued for it.
    issued: [Counter; GROUP_MEMBERS_MAX],
    updates: Vec<Update>,
    /// For each replica the updates that arrived and are not stripped: when they were issued.
    unstripped: [Vec<u64>; GROUP_MEMBERS_MAX],
}

/// The watch.
#[derive(Debug)]
pub(super) struct Watch {
    shape: Shape,
    /// Whether updates are followed, and not only counted.
    is_following: bool,
    keys: HashMap<u32, Key>,
    /// For each partition the objects that were written with a context.
    waiting: HashMap<u16, BTreeMap<u32, Object>>,
    strip: Vec<u64>,
    replication: Vec<u64>,
    /// The present piece of the time line.
    pub piece: Piece,
}

/// The client's key of a number.
pub(super) fn key_of(number: u32) -> String {
    format!("key{number:08}")
}

fn number_of(key: &[u8]) -> u32 {
    let digits = key.strip_prefix(b"key").expect("clients name the keys so");
    digits.iter().fold(0, |number, digit| number * 10 + u32::from(digit - b'0'))
}

impl Watch {
    pub(super) fn new(run: &Run) -> Watch {
        Watch {
            shape: run.shape(),
            is_following: false,
            keys: HashMap::new(),
            waiting: HashMap::new(),
            strip: Vec::new(),
            replication: Vec::new(),
            piece: Piece::default(),
        }
    }

    /// From here on updates are followed.
    pub(super) fn follow(&mut self) {
        self.is_following = true;
    }

    /// The replica at a partition writes the object of a key, or deletes it.
    pub(super) fn on_write(
        &mut self,
        partition: u16,
        key: &[u8],
        value: Option<&Object>,
        now: u64,
    ) {
        let waiting = self.waiting.entry(partition).or_default();
        waiting.remove(&number_of(key));
        if let Some(object) = value {
            self.piece.writes += 1;
            self.piece.entries += clock_entries(object) as u64;
            if !object.context.is_empty() {
                waiting.insert(number_of(key), object.clone());
            }
        }
        let Some(object) = value.filter(|_| self.is_following) else { return };
        let first = *self.shape.replicas_of(self.shape.home(hash_of_key(key))).start();
        let slot = usize::from(partition - first);
        let all = (1_u8 << self.shape.replicas) - 1;
        let known = self.keys.entry(number_of(key)).or_default();
        let is_own = |dot: &&Dot| dot.actor.partition.0 == partition;
        let mut arrived = Vec::new();
        // What is told is a version, was replaced by this object, or by a version of it.
        let mut told: BTreeSet<Dot> = object.versions.keys().copied().collect();
        for update in &known.updates {
            if told.contains(&update.dot) {
                told.extend(&update.past);
            }
        }
        for update in known.updates.iter_mut().filter(|update| update.holders & 1 << slot == 0) {
            if told.contains(&update.dot) || object.context.covers(update.dot) {
                update.holders |= 1 << slot;
                self.replication.push(now.saturating_sub(update.at));
                arrived.push(update.at);
            }
        }
        for dot in object.versions.keys().filter(is_own) {
            if dot.counter > known.issued[slot] {
                known.issued[slot] = dot.counter;
                let held = known.updates.iter().filter(|update| update.holders & 1 << slot != 0);
                let past = held.map(|update| update.dot).collect();
                known.updates.push(Update { dot: *dot, at: now, holders: 1 << slot, past });
                arrived.push(now);
            }
        }
        known.updates.retain(|update| update.holders != all);
        let waiting = &mut known.unstripped[slot];
        waiting.append(&mut arrived);
        if object.context.is_empty() {
            self.strip.extend(waiting.drain(..).map(|at| now.saturating_sub(at)));
        }
    }

    /// The contexts for which this does not hold are gone by now from the replica at a partition.
    pub(super) fn keep(&mut self, partition: u16, is_left: impl Fn(&[u8]) -> bool, now: u64) {
        let waiting = self.waiting.entry(partition).or_default();
        let is_gone = |number: &u32| !is_left(key_of(*number).as_bytes());
        let gone: Vec<u32> = waiting.keys().copied().filter(is_gone).collect();
        for number in gone {
            let versions = self.waiting[&partition][&number].versions.clone();
            let stripped = Object { versions, ..Object::default() };
            self.on_write(partition, key_of(number).as_bytes(), Some(&stripped), now);
        }
    }

    /// How long stripping and replication took, in microseconds; and how many updates are open.
    pub(super) fn times(&self) -> (Times, Times) {
        let micros = |times: &[u64]| times.iter().map(|time| time / 1000).collect();
        let keys = || self.keys.values();
        let unstripped = keys().flat_map(|key| &key.unstripped).map(Vec::len).sum::<usize>();
        let lacking =
            |update: &Update| u32::from(self.shape.replicas) - update.holders.count_ones();
        let unheld: u32 = keys().flat_map(|key| &key.updates).map(lacking).sum();
        let strip = Times::new(micros(&self.strip), unstripped as u64);
        (strip, Times::new(micros(&self.replication), u64::from(unheld)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_protocols::dots::dot::{Actor, Partition};
    use quorate_protocols::dots::object::Version;

    #[test]
    fn an_update_is_followed_to_each_replica() {
        let run = Run { nodes: 3, ..Run::usual(10, 1, 1) };
        let mut watch = Watch::new(&run);
        watch.follow();
        let dot = |partition, counter| Dot {
            actor: Actor { partition: Partition(partition), ..Actor::default() },
            counter,
        };
        let object = |dots: &[Dot], context: &[Dot]| {
            let version = |dot: &Dot| (*dot, Version { id: None, value: "v".into() });
            let mut object = Object::default();
            object.versions.extend(dots.iter().map(version));
            context.iter().for_each(|dot| object.context.raise(dot.actor, dot.counter));
            object
        };
        let (first, second, key) = (dot(0, 1), dot(0, 2), key_of(7));
        watch.on_write(0, key.as_bytes(), Some(&object(&[first], &[])), 1_000_000);
        watch.on_write(0, key.as_bytes(), Some(&object(&[second], &[])), 2_000_000);
        // The first was never stored at partition 1, but replaced there; and not stripped at once.
        watch.on_write(1, key.as_bytes(), Some(&object(&[second], &[first])), 5_000_000);
        watch.keep(1, |_| true, 6_000_000);
        watch.keep(1, |left| left != key.as_bytes(), 7_000_000);
        let (strip, replication) = watch.times();
        assert_eq!(replication, Times::new(vec![3000, 4000], 2), "partition 2 has neither");
        assert_eq!(strip, Times::new(vec![0, 0, 5000, 6000], 0));
        watch.on_write(2, key.as_bytes(), Some(&object(&[second], &[])), 9_000_000);
        let (strip, replication) = watch.times();
        assert_eq!((replication.open, replication.quantile(1.0)), (0, Some(8000)));
        assert_eq!(strip.len(), 6);
        assert_eq!((watch.piece.writes, watch.piece.entries), (5, 5));
    }
}
