//! What was executed, and in which order one place would have executed it.

use super::{Ended, Seen};
use crate::multicast::RingId;
use crate::smr::partitioned::{Answered, CommandId, Machine, Ordered, PartitionId, Placement};
use std::collections::BTreeMap;
use std::vec::Vec;

/// Where something is in the order of all logs: by slots, a partition's own before that of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The slot of its decision.
    pub slot: u64,
    /// Whether that is of the ring of all.
    pub is_all: bool,
    /// The ring.
    pub ring: RingId,
    /// Where in the decision.
    pub index: u32,
}

/// What a partition executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Executed {
    Command(CommandId),
    /// Objects move; the version of the placement.
    Switch(u64),
}

/// What each partition has executed, in its order.
#[derive(Debug)]
pub struct Witness<M: Machine> {
    placement: Placement,
    places: BTreeMap<CommandId, Key>,
    orders: BTreeMap<PartitionId, BTreeMap<Key, Executed>>,
    /// The last command of each.
    last: BTreeMap<PartitionId, Key>,
    answers: BTreeMap<CommandId, Answered<M>>,
}

impl<M: Machine> Witness<M> {
    /// Nothing is executed yet.
    pub fn new(placement: Placement) -> Witness<M> {
        let (places, orders) = (BTreeMap::new(), BTreeMap::new());
        Witness { placement, places, orders, last: BTreeMap::new(), answers: BTreeMap::new() }
    }

    /// A ring has decided this. A command is executed where it comes first, if it is.
    pub fn decides(&mut self, decided: Vec<(Key, Ordered<M>)>) {
        for (key, ordered) in decided {
            match ordered {
                Ordered::Command(command) => _ = self.places.entry(command.id).or_insert(key),
                Ordered::Switch(switch) => {
                    let Some(next) = self.placement.switched(&switch) else { continue };
                    let (old, new) = (self.placement.partitions(), next.partitions());
                    for partition in old.iter().chain(new.iter()) {
                        let order = self.orders.entry(partition).or_default();
                        order.insert(key, Executed::Switch(next.version()));
                    }
                    self.placement = next;
                }
            }
        }
    }

    /// A replica answers a command. The first replica to come to a command has executed, here or
    /// where it was copied from, all that others of its partition have answered before.
    pub fn answers(&mut self, by: PartitionId, id: CommandId, answer: &Answered<M>) {
        let known = self.answers.entry(id).or_insert_with(|| answer.clone());
        assert_eq!(known, answer, "a command has one answer, whoever gives it: {id:?}");
        let key = self.places[&id];
        let is_done = matches!(answer, Answered::Done(_));
        let order = self.orders.entry(by).or_default();
        if is_done && order.insert(key, Executed::Command(id)).is_none() {
            let last = self.last.insert(by, key);
            assert!(last < Some(key), "partitions execute in the order of slots: {id:?}");
        }
    }

    /// A replica answers a question that was not ordered, behind what is before a place.
    pub fn reads(&mut self, by: PartitionId, id: CommandId, answer: &Answered<M>, key: Key) {
        self.answers.insert(id, answer.clone());
        let before = self.orders.entry(by).or_default().insert(key, Executed::Command(id));
        assert!(before.is_none(), "each has a place of its own: {id:?}");
    }

    /// Commands that were executed, with their answers, in an order that is each partition's, and
    /// in which none comes before one that was answered before it was asked. What is asked of
    /// objects of one partition is ordered by that partition; so if one place executes commands in
    /// this order and answers the same, what clients saw is linearizable. None if there is no such
    /// order.
    #[must_use]
    pub fn order(&self, history: &[Seen<M>]) -> Option<Vec<(Seen<M>, M::Output)>> {
        let seen: BTreeMap<CommandId, &Seen<M>> = history.iter().map(|it| (it.id, it)).collect();
        let mut answered: BTreeMap<CommandId, u64> = BTreeMap::new();
        for it in history {
            if let Ended::Answered { at, .. } = it.ended {
                answered.insert(it.id, at);
            }
        }
        let orders: Vec<Vec<Executed>> =
            self.orders.values().map(|order| order.values().copied().collect()).collect();
        let mut left: Vec<&[Executed]> = orders.iter().map(|order| &order[..]).collect();
        let mut placed = Vec::new();
        while left.iter().any(|order| !order.is_empty()) {
            let horizon = answered.values().min().copied().unwrap_or(u64::MAX);
            let is_first =
                |it: &Executed| left.iter().all(|of| of.first() == Some(it) || !of.contains(it));
            let is_asked = |it: &Executed| match it {
                Executed::Command(id) => seen[id].asked < horizon,
                Executed::Switch(_) => true,
            };
            let mut heads = left.iter().filter_map(|order| order.first());
            let next = *heads.find(|it| is_first(it) && is_asked(it))?;
            for order in left.iter_mut().filter(|order| order.first() == Some(&next)) {
                *order = &order[1..];
            }
            let Executed::Command(id) = next else { continue };
            answered.remove(&id);
            if let Some(Answered::Done(output)) = self.answers.get(&id) {
                placed.push((seen[&id].clone(), output.clone()));
            }
        }
        answered.is_empty().then_some(placed)
    }
}
