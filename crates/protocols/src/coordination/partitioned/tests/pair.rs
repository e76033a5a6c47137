//! Two partitions of one replica each, which tell each other all that they have to at once.

use super::super::{Command, Volery, check, slot};
use crate::coordination::tree::{self, Answer};
use crate::multicast::{Decision, RingId};
use crate::smr::partitioned::{
    Addressed, Answered, Batch, CommandId, Effect, Layout, Machine as _, Message, Ordered,
    PartitionId, Placement, Replica, ReplicaId, Signal, Snapshot, Switch,
};
use crate::vsr::Op;
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::tree::{TreeReply, Zxid};
use std::collections::{BTreeMap, VecDeque};
use std::format;
use std::string::String;
use std::vec::Vec;

pub struct Pair {
    replicas: BTreeMap<PartitionId, Replica<Volery>>,
    /// Which partition has what.
    pub placement: Placement,
    /// How many positions each ring has. They all have as many slots.
    positions: BTreeMap<RingId, u64>,
    number: u64,
    now_ms: u64,
    /// What was signalled of the last command.
    pub signals: Vec<Signal<Volery>>,
}

fn node(partition: PartitionId) -> NodeId {
    NodeId(u64::from(partition.0) + 1)
}

fn incarnation(node: NodeId) -> Incarnation {
    Incarnation { node, start: Start(1) }
}

/// A path of this partition, as it is at first.
pub fn path_at(partition: u8, number: u64) -> String {
    let is_there = |path: &String| Placement::even(2).of(slot(path)) == PartitionId(partition);
    (0..).map(|it| format!("/{number}-{it}")).find(is_there).expect("one of them is")
}

impl Pair {
    pub fn new() -> Pair {
        let placement = Placement::even(2);
        let all = [PartitionId(0), PartitionId(1)];
        let layout = Layout::new(all.iter().map(|it| [node(*it)].into()).collect());
        let replica = |partition| {
            let id = ReplicaId { partition, incarnation: incarnation(node(partition)) };
            let first = Snapshot::begin(partition, 2);
            let mut replica = Replica::resume(id, layout.clone(), first, []);
            replica.designate(true);
            (partition, replica)
        };
        let replicas = all.into_iter().map(replica).collect();
        let (positions, signals) = (BTreeMap::new(), Vec::new());
        Pair { replicas, placement, positions, number: 0, now_ms: 1000, signals }
    }

    /// A slot is decided in each ring, and in this one something is in it.
    fn decide(&mut self, ring: RingId, ordered: Ordered<Volery>) -> Vec<Answered<Volery>> {
        self.signals.clear();
        for of in [PartitionId(0).ring(), PartitionId(1).ring(), RingId::ALL] {
            let decision = match of == ring {
                true => Decision::Commands(Batch::from([ordered.clone()])),
                false => Decision::Skip(1),
            };
            let position = self.positions.entry(of).or_default();
            *position += 1;
            for (partition, replica) in &mut self.replicas {
                if of == RingId::ALL || of == partition.ring() {
                    assert!(replica.learn(of, Op(*position), decision.clone()));
                }
            }
        }
        self.settle()
    }

    fn settle(&mut self) -> Vec<Answered<Volery>> {
        let (mut wire, mut answers) = (VecDeque::new(), Vec::new());
        loop {
            for replica in self.replicas.values_mut() {
                for effect in replica.take_effects() {
                    match effect {
                        Effect::Send(to, message) => wire.push_back((to, message)),
                        Effect::Answer(_, answer) => answers.push(answer),
                        Effect::Keep(_) => {}
                        other => panic!("nothing is lost: {other:?}"),
                    }
                }
            }
            let Some((to, message)) = wire.pop_front() else { break };
            if let Message::Signal(signal) = &message {
                self.signals.push(signal.clone());
            }
            self.replicas.get_mut(&to).expect("it is there").on_message(message);
        }
        let of = self.replicas.iter().map(|(partition, it)| (*partition, it.objects())).collect();
        check(&of, self.replicas[&PartitionId(0)].placement());
        answers
    }

    /// A command that is addressed by a placement; what all of its partitions answer.
    pub fn asks_by(&mut self, placement: &Placement, command: tree::Command) -> Answered<Volery> {
        self.now_ms += 1;
        self.number += 1;
        let command = Command { now_ms: self.now_ms, seen: Zxid(0), command };
        assert!(Volery::is_sound(&command));
        let destinations = Volery::destinations(&command, placement);
        let id = CommandId { client: incarnation(NodeId(9)), number: self.number };
        let (acked, version) = (self.number - 1, placement.version());
        let addressed = Addressed { id, acked, version, destinations, command };
        let ring = destinations.ring().expect("it goes somewhere");
        let answers = self.decide(ring, addressed.into());
        assert_eq!(answers.len() as u32, destinations.count(), "all of its partitions answer");
        assert!(answers.iter().all(|it| *it == answers[0]), "they answer the same");
        answers[0].clone()
    }

    pub fn asks(&mut self, command: tree::Command) -> Answer {
        let placement = self.placement.clone();
        match self.asks_by(&placement, command) {
            Answered::Done(answer) => answer,
            other => panic!("it is addressed right: {other:?}"),
        }
    }

    /// What is told of a command that is no session's beginning or end.
    pub fn told(&mut self, command: tree::Command) -> TreeReply {
        match self.asks(command) {
            Answer::Told(reply) => reply,
            other => panic!("it is told something: {other:?}"),
        }
    }

    /// The slot of a path is of a partition from now on.
    pub fn moves(&mut self, path: &str, to: u8) {
        let buckets = BTreeMap::from([(slot(path), PartitionId(to))]);
        let switch = Switch { version: self.placement.version() + 1, buckets };
        self.placement = self.placement.switched(&switch).expect("it is the next");
        self.decide(RingId::ALL, Ordered::Switch(switch));
    }

    /// An object as a partition has it.
    pub fn object(&self, partition: u8, key: &Bytes) -> Option<&tree::Object> {
        self.replicas[&PartitionId(partition)].objects().get(key)
    }
}
