//! Replicas of partitions, their logs, and the messages between them, step by step.

use super::letters::{Command, Letters, Step};
use crate::multicast::{Decision, RingId};
use crate::smr::partitioned::{
    Addressed, Answered, Batch, CommandId, Differs, Effect, Kept, Layout, Machine as _, Message,
    PartitionId, Partitions, Replica, ReplicaId, Snapshot, may_order,
};
use crate::smr::partitioned::{Bucket, Ordered, Placement, Switch};
use crate::vsr::Op;
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::vec::Vec;

pub type Node = (u8, u64);

pub const A: PartitionId = PartitionId(0);
pub const B: PartitionId = PartitionId(1);
pub const C: PartitionId = PartitionId(2);

pub struct Cluster {
    pub replicas: BTreeMap<Node, Replica<Letters>>,
    pub layout: Layout,
    /// By which commands are addressed.
    pub placement: Placement,
    pub logs: BTreeMap<RingId, Vec<Decision<Batch<Letters>>>>,
    learned: BTreeMap<(Node, RingId), usize>,
    /// Messages on their way: from whom, to whom.
    pub wire: VecDeque<(Node, Node, Message<Letters>)>,
    /// Nothing passes from one partition to another.
    pub cuts: BTreeSet<(u8, u64, u8)>,
    /// What was answered, by which partition, in order.
    pub answers: Vec<(u8, CommandId, Answered<Letters>)>,
    pub kept: BTreeMap<Node, Vec<Kept<Letters>>>,
    /// Who needs what nobody keeps.
    pub lost: Vec<Node>,
    /// Who has halted, and what differs.
    pub halted: Vec<(Node, Differs)>,
    starts: BTreeMap<Node, u32>,
    next: BTreeMap<Incarnation, u64>,
}

pub fn node_id((partition, index): Node) -> NodeId {
    NodeId(u64::from(partition) * 100 + index)
}

pub fn replica_id(at: Node, start: u32) -> ReplicaId {
    let incarnation = Incarnation { node: node_id(at), start: Start(start) };
    ReplicaId { partition: PartitionId(at.0), incarnation }
}

fn node(id: NodeId) -> Node {
    ((id.0 / 100) as u8, id.0 % 100)
}

pub fn client(node: u64, start: u32) -> Incarnation {
    Incarnation { node: NodeId(node), start: Start(start) }
}

pub fn done(output: &[u64]) -> Answered<Letters> {
    Answered::Done(output.to_vec())
}

impl Cluster {
    /// So many partitions of so many replicas, of which the first is designated.
    pub fn new(partitions: u8, replicas: u64) -> Cluster {
        Cluster::placed(partitions, replicas, &Placement::even(partitions))
    }

    /// The same, with some that are idle.
    pub fn placed(partitions: u8, replicas: u64, placement: &Placement) -> Cluster {
        let nodes = |of: u8| (1..=replicas).map(move |index| (of, index));
        let members = (0..partitions).map(|of| nodes(of).map(node_id).collect());
        let mut cluster = Cluster {
            replicas: BTreeMap::new(),
            layout: Layout::new(members.collect()),
            placement: placement.clone(),
            logs: BTreeMap::new(),
            learned: BTreeMap::new(),
            wire: VecDeque::new(),
            cuts: BTreeSet::new(),
            answers: Vec::new(),
            kept: BTreeMap::new(),
            lost: Vec::new(),
            halted: Vec::new(),
            starts: BTreeMap::new(),
            next: BTreeMap::new(),
        };
        for at in (0..partitions).flat_map(nodes) {
            let first = match partitions {
                1 => Snapshot::begin(PartitionId(at.0), partitions),
                _ => Snapshot::begin_at(PartitionId(at.0), placement),
            };
            cluster.resume(at, first);
            cluster.replica(at).designate(at.1 == 1);
        }
        cluster
    }

    pub fn replica(&mut self, at: Node) -> &mut Replica<Letters> {
        self.replicas.get_mut(&at).expect("it is there")
    }

    /// Starts a replica behind a snapshot, with what it has kept.
    pub fn resume(&mut self, at: Node, snapshot: Snapshot<Letters>) {
        for reached in snapshot.cursor() {
            self.learned.insert((at, reached.ring), reached.op.0 as usize);
        }
        let kept = self.kept.get(&at).cloned().unwrap_or_default();
        let start = self.starts.entry(at).or_default();
        *start += 1;
        let id = replica_id(at, *start);
        self.replicas.insert(at, Replica::resume(id, self.layout.clone(), snapshot, kept));
    }

    pub fn command(&mut self, of: Incarnation, steps: &[Step]) -> Addressed<Letters> {
        let number = self.next.entry(of).or_default();
        *number += 1;
        let id = CommandId { client: of, number: *number };
        let command = Command { steps: steps.to_vec(), early: false };
        let destinations = Letters::destinations(&command, &self.placement);
        let version = self.placement.version();
        Addressed { id, acked: 0, version, destinations, command }
    }

    /// Decides a command in its ring; nobody has learned it yet.
    pub fn decide(&mut self, command: Addressed<Letters>) -> CommandId {
        let (id, ring) = (command.id, command.destinations.ring().expect("it goes somewhere"));
        let batch = Vec::from([command.into()]);
        assert!(may_order(ring, &batch, self.layout.count()));
        self.logs.entry(ring).or_default().push(Decision::Commands(batch));
        id
    }

    /// A command of a client of its own is decided.
    pub fn ask(&mut self, steps: &[Step]) -> CommandId {
        let of = client(1000 + self.next.len() as u64, 1);
        let command = self.command(of, steps);
        self.decide(command)
    }

    /// Buckets of these letters are of these partitions, and commands are addressed so from now on.
    pub fn switch(&mut self, letters: &[(u8, PartitionId)]) {
        let bucket = |(letter, to): &(u8, _)| (Bucket(u16::from(letter - b'a')), *to);
        let buckets = letters.iter().map(bucket).collect();
        let switch = Switch { version: self.placement.version() + 1, buckets };
        self.placement = self.placement.switched(&switch).expect("it is the next");
        self.decide_switch(switch);
        // What is asked from now on comes behind it.
        self.level();
    }

    pub fn decide_switch(&mut self, switch: Switch) {
        let batch = Vec::from([Ordered::Switch(switch)]);
        assert!(may_order(RingId::ALL, &batch, self.layout.count()));
        self.logs.entry(RingId::ALL).or_default().push(Decision::Commands(batch));
    }

    pub fn skip(&mut self, ring: RingId, slots: u64) {
        self.logs.entry(ring).or_default().push(Decision::Skip(slots));
    }

    /// All rings have as many slots as the one with the most, so none holds another back.
    pub fn level(&mut self) {
        let all = (0..self.layout.count()).map(|of| PartitionId(of).ring()).chain([RingId::ALL]);
        let slots = |log: &Vec<Decision<_>>| log.iter().map(Decision::slots).sum::<u64>();
        let most = self.logs.values().map(slots).max().unwrap_or_default() + 1;
        for ring in all {
            let has = self.logs.get(&ring).map(slots).unwrap_or_default();
            self.skip(ring, most - has);
        }
    }

    /// A replica learns all that is decided in its rings.
    pub fn learn(&mut self, at: Node) {
        let rings = [PartitionId(at.0).ring(), RingId::ALL];
        for ring in rings {
            while let Some(decision) = self.next_of(at, ring) {
                let op = *self.learned.entry((at, ring)).and_modify(|it| *it += 1).or_insert(1);
                assert!(self.replica(at).learn(ring, Op(op as u64), decision));
            }
        }
        self.effects(at);
    }

    fn next_of(&self, at: Node, ring: RingId) -> Option<Decision<Batch<Letters>>> {
        let learned = self.learned.get(&(at, ring)).copied().unwrap_or_default();
        self.logs.get(&ring)?.get(learned).cloned()
    }

    pub fn effects(&mut self, at: Node) {
        for effect in self.replica(at).take_effects() {
            match effect {
                Effect::Send(to, message) => {
                    for member in self.layout.members(to) {
                        self.wire.push_back((at, node(member), message.clone()));
                    }
                }
                Effect::Tell(to, message) => {
                    self.wire.push_back((at, node(to.incarnation.node), message));
                }
                Effect::Answer(id, answer) => self.answers.push((at.0, id, answer)),
                Effect::Halt(differs) => self.halted.push((at, differs)),
                Effect::Lost(_) => self.lost.push(at),
                Effect::Keep(kept) => self.kept.entry(at).or_default().extend(kept),
            }
        }
    }

    /// All learn what is decided, and all messages arrive or are lost, until nothing is left.
    pub fn settle(&mut self) {
        for at in self.nodes() {
            self.learn(at);
        }
        while let Some((from, to, message)) = self.wire.pop_front() {
            if self.cuts.contains(&(from.0, from.1, to.0)) || !self.replicas.contains_key(&to) {
                continue;
            }
            self.replica(to).on_message(message);
            self.effects(to);
        }
    }

    /// Some time passes.
    pub fn period(&mut self) {
        for at in self.nodes() {
            self.replica(at).on_period();
            self.effects(at);
        }
        self.settle();
    }

    fn nodes(&self) -> Vec<Node> {
        self.replicas.keys().copied().collect()
    }

    /// What a command was answered, by which partitions; each once.
    pub fn answer(&self, id: CommandId) -> BTreeMap<u8, Answered<Letters>> {
        let of = self.answers.iter().filter(|(_, of, _)| *of == id);
        let mut answers = BTreeMap::new();
        for (partition, _, answer) in of {
            let known = answers.entry(*partition).or_insert_with(|| answer.clone());
            assert_eq!(known, answer, "a command has one answer");
        }
        answers
    }

    /// The one answer of a command, if it is answered.
    pub fn output(&self, id: CommandId) -> Option<Answered<Letters>> {
        let answers = self.answer(id);
        let first = answers.values().next()?;
        assert!(answers.values().all(|it| it == first), "all partitions answer the same");
        Some(first.clone())
    }

    pub fn number(&self, at: Node, name: &str) -> Option<u64> {
        self.replicas[&at].objects().get(name.as_bytes()).copied()
    }

    pub fn to_all(&self) -> Partitions {
        Partitions::all(self.layout.count())
    }
}
