//! What nodes run on, one machine each; what of their words gets lost; and who looks on.

use super::costs;
use super::node::Node;
use bytes::BytesMut;
use quorate_kernel::effects::{Effect, Recipients, Release};
use quorate_kernel::ids::NodeId;
use quorate_kernel::rng::Rng;
use quorate_kernel::time::Time;
use quorate_kernel::wire::Body;
use quorate_protocols::membership::{Message, Number, RollId};
use quorate_sim::light::{Around, Step};
use std::collections::BTreeMap;

/// How much of what goes to a node, and of what comes from it, gets lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// Of a million messages to it.
    pub ingress_ppm: u32,
    /// Of a million messages from it.
    pub egress_ppm: u32,
}

/// What one node runs on, and what was seen of it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Machine {
    /// Until when it works.
    busy: Time,
    /// When all that it has written is durable.
    durable: Time,
    pub loss: Loss,
    /// The configuration that it is in, and since when.
    pub roll: RollId,
    pub since: Time,
    /// How many members it counts; 0 while it is none itself.
    pub members: usize,
    /// Bytes to it and from it, since they were last taken.
    pub bytes: [u64; 2],
}

/// What happens to a cluster beside what nodes do.
#[derive(Debug)]
pub enum Plan {
    /// A founder is started.
    Found,
    /// A node is added, that joins.
    Join,
    /// These lose so much from now on.
    Lose(Vec<usize>, Loss),
}

/// All of them.
#[derive(Debug)]
pub struct Machines {
    pub(super) all: Vec<Machine>,
    /// The one chain of configurations: what each is called, how many members it has, and when the
    /// first node was in it.
    pub(super) chain: BTreeMap<Number, (RollId, usize, Time)>,
    /// Messages between nodes, one for each receiver, and their bytes as frames.
    pub(super) sent: [u64; 2],
    rng: Rng,
    arena: BytesMut,
}

impl Machines {
    /// So many, with nothing on them yet.
    #[must_use]
    pub fn new(count: usize, rng: Rng) -> Machines {
        let all = vec![Machine::default(); count];
        let (chain, arena) = (BTreeMap::new(), BytesMut::new());
        Machines { all, chain, sent: [0; 2], rng, arena }
    }

    /// Counts what a node sends; how long it takes to send it.
    fn count(&mut self, from: usize, to: &Recipients, message: &Message) -> u64 {
        let size = Body::encode(message, &mut self.arena).expect("it fits").frame_bytes() as u64;
        let one;
        let nodes: &[NodeId] = match to {
            Recipients::One(to) => {
                one = [to.node];
                &one
            }
            Recipients::Group(nodes) => nodes,
        };
        let mut count = 0;
        for to in nodes.iter().map(|to| quorate_sim::light::index_of(*to)) {
            if to != from {
                count += 1;
                self.all[to].bytes[0] += size;
            }
        }
        self.all[from].bytes[1] += count * size;
        self.sent[0] += count;
        self.sent[1] += count * size;
        count * (costs::SEND + costs::BYTE * size)
    }

    /// Looks at the configuration that a node is in. All are of one chain, or the protocol is
    /// wrong.
    fn look(&mut self, step: &Step<'_, Node>, at: Time) {
        let roll = step.process.roll();
        let machine = &mut self.all[step.node];
        let members = roll.configuration().members.len();
        machine.members = if roll.is_member() { members } else { 0 };
        if roll.roll() != machine.roll {
            assert!(roll.roll().number > machine.roll.number, "configurations only rise");
            (machine.roll, machine.since) = (roll.roll(), at);
            let first = (roll.roll(), members, at);
            let known = self.chain.entry(roll.roll().number).or_insert(first);
            assert_eq!(known.0, roll.roll(), "two configurations of one number");
        }
    }
}

impl Around<Node> for Machines {
    type Plan = Plan;

    fn begin(&self, node: usize, now: Time) -> Time {
        now.max(self.all[node].busy)
    }

    fn end(&mut self, step: Step<'_, Node>) -> Time {
        let (mut cost, mut has_written, mut must_wait) = (costs::STEP, false, false);
        for effect in step.asked {
            match effect {
                Effect::Write { .. } => has_written = true,
                Effect::Send { to, message, release } => {
                    cost += self.count(step.node, to, message);
                    must_wait |= *release != Release::Early;
                }
                _ => {}
            }
        }
        let end = Time(step.begun.0 + cost);
        let machine = &mut self.all[step.node];
        machine.busy = end;
        if has_written {
            machine.durable = machine.durable.max(end + costs::SYNC);
        }
        let said = if must_wait { end.max(machine.durable) } else { end };
        self.look(&step, end);
        said
    }

    fn loses(&mut self, from: usize, to: usize, _message: &Message) -> bool {
        let parts = [self.all[from].loss.egress_ppm, self.all[to].loss.ingress_ppm];
        parts.into_iter().any(|ppm| ppm > 0 && self.rng.chance_ppm(ppm))
    }
}
