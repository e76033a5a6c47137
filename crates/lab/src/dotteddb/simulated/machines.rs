//! What the nodes stand on: machines that are busy for a while with each step, and what they store.
//! Who looks on stands there too.

use super::carried::Carried;
use super::run::{Run, Traffic, costs};
use super::subject::Subject;
use super::table::{Stored, object_key};
use super::watch::Watch;
use bytes::{Bytes, BytesMut};
use quorate_kernel::effects::Effect;
use quorate_kernel::keyspace::Keyspace;
use quorate_kernel::operation::Operation;
use quorate_kernel::process::Table;
use quorate_kernel::rng::Rng;
use quorate_kernel::storage::Class;
use quorate_kernel::time::Time;
use quorate_kernel::wire::Body;
use quorate_protocols::dots::object::Object;
use quorate_sim::light::{Around, Step};
use std::sync::Arc;

/// What one node stands on.
pub(super) struct Node {
    pub partition: u16,
    pub stored: Stored,
    machine: usize,
}

/// What is planned.
pub(super) enum Plan {
    /// A client begins an update.
    Update,
    /// What a client asks reaches a node.
    Request { node: usize, ticket: u64, ask: Operation },
    /// A node is replaced.
    Churn,
    /// A node hears who holds what.
    News { node: usize, record: Arc<Keyspace> },
}

/// The machines, and their nodes.
pub(super) struct Machines {
    pub nodes: Vec<Node>,
    pub watch: Watch,
    pub traffic: Traffic,
    /// Whether there is a load: before, steps keep no machine busy and nothing is lost.
    pub is_loaded: bool,
    /// Until when each machine is busy.
    busy: Vec<Time>,
    busy_ns: u64,
    loss_ppm: u32,
    rng: Rng,
    arena: BytesMut,
}

/// An object as it was stored, with the context beside it.
pub(super) fn whole<S: Subject>(
    engine: &S,
    partition: u16,
    (key, bytes): (&[u8], &Bytes),
) -> Object {
    let mut object = Object::from_bytes(bytes).expect("what an engine stores is an object");
    if let Some(beside) = engine.beside(partition, key) {
        object.context.merge(beside);
    }
    object
}

impl Machines {
    /// Machines without nodes.
    pub(super) fn new(run: &Run, rng: Rng) -> Machines {
        Machines {
            nodes: Vec::new(),
            watch: Watch::new(run),
            traffic: Traffic::default(),
            is_loaded: false,
            busy: vec![Time(0); run.machines],
            busy_ns: 0,
            loss_ppm: run.loss_ppm,
            rng,
            arena: BytesMut::new(),
        }
    }

    /// One more node, which is to have a partition.
    pub(super) fn add(&mut self, partition: u16) {
        let machine = usize::from(partition) % self.busy.len();
        self.nodes.push(Node { partition, stored: Stored::default(), machine });
    }

    /// How much of the machines' time was used since this was last asked, in nanoseconds.
    pub(super) fn take_busy(&mut self) -> u64 {
        std::mem::take(&mut self.busy_ns)
    }

    /// Counts a message; how many bytes it has.
    fn measure<S: Subject>(&mut self, message: &S::Message) -> u64 {
        let size = Body::encode(message, &mut self.arena).expect("it fits").frame_bytes();
        if let Some(Carried { data, clocks }) = S::carried(message) {
            self.traffic.messages += 1;
            self.traffic.data += data as u64;
            self.traffic.clocks += clocks as u64;
            self.traffic.protocol += (size - data - clocks) as u64;
        }
        size as u64
    }
}

impl<S: Subject> Around<S> for Machines {
    type Plan = Plan;

    fn begin(&self, node: usize, now: Time) -> Time {
        now.max(self.busy[self.nodes[node].machine])
    }

    fn table(&self, node: usize) -> &dyn Table {
        &self.nodes[node].stored
    }

    fn end(&mut self, step: Step<'_, S>) -> Time {
        let reads = self.nodes[step.node].stored.take_reads();
        let (mut writes, mut bytes) = (0, 0);
        for effect in step.asked {
            match effect {
                Effect::Write { .. } => writes += 1,
                Effect::Send { message, .. } => bytes += self.measure::<S>(message),
                _ => {}
            }
        }
        let batch = if writes > 0 { costs::BATCH } else { 0 };
        let records = reads * costs::READ + writes * costs::WRITE;
        let cost = costs::STEP + records + batch + bytes * costs::BYTE;
        let end = Time(step.begun.0 + cost);
        let Node { partition, stored, machine } = &mut self.nodes[step.node];
        if self.is_loaded {
            self.busy[*machine] = end;
            self.busy_ns += cost;
        }
        for effect in step.asked {
            let Effect::Write { class, key, value } = effect else { continue };
            let client_key = object_key(key).filter(|_| self.is_loaded && *class == Class::Data);
            if let Some(client_key) = client_key {
                let object = value.as_ref();
                let object =
                    object.map(|bytes| whole(step.process, *partition, (client_key, bytes)));
                self.watch.on_write(*partition, client_key, object.as_ref(), end.0);
            }
            stored.write(*class, key.clone(), value.clone());
        }
        end
    }

    fn loses(&mut self, _from: usize, _to: usize, message: &S::Message) -> bool {
        let is_lossy = self.is_loaded && S::is_replication(message);
        is_lossy && self.rng.chance_ppm(self.loss_ppm)
    }
}
