//! What stands around the nodes: what they store, and what of their words gets lost. Who looks on
//! stands there too.

use super::order::Order;
use super::reads::Reads;
use super::traffic::{Kind, Traffic};
use bytes::{Bytes, BytesMut};
use quorate_kernel::effects::{Effect, Recipients};
use quorate_kernel::plain::PlainData;
use quorate_kernel::process::Table;
use quorate_kernel::rng::Rng;
use quorate_kernel::storage::Class;
use quorate_kernel::time::Time;
use quorate_kernel::wire::Body;
use quorate_protocols::epidemic::Epidemic;
use quorate_protocols::epidemic::keys::LAST;
use quorate_protocols::epidemic::message::{Came, Message};
use quorate_protocols::epto::{self, EventKey};
use quorate_sim::light::{Around, Step, node_id};
use std::collections::BTreeMap;

/// What is planned.
#[derive(Debug)]
pub enum Plan {
    /// A client asks the next thing.
    Ask {
        /// Which client.
        client: usize,
    },
    /// Who has asked this waits no longer.
    GiveUp {
        /// Its ticket.
        ticket: u64,
    },
    /// A node is replaced.
    Replace,
    /// A node is added.
    Add,
}

/// What one node stores.
#[derive(Debug, Default)]
pub(super) struct Stored(pub BTreeMap<Bytes, Bytes>);

impl Table for Stored {
    fn get(&self, _: Class, key: &Bytes) -> Option<Bytes> {
        self.0.get(key).cloned()
    }

    fn scan(&self, _: Class, from: &[u8], each: &mut dyn FnMut(&[u8], &Bytes) -> bool) {
        let from = (std::ops::Bound::Included(from), std::ops::Bound::Unbounded);
        let mut all = self.0.range::<[u8], _>(from);
        all.all(|(key, value)| each(key, value));
    }
}

/// All that stands around them.
#[derive(Debug)]
pub struct Nodes {
    pub(super) stored: Vec<Stored>,
    pub(super) traffic: Traffic,
    pub(super) order: Order,
    pub(super) reads: Reads,
    loss_ppm: u32,
    rng: Rng,
    arena: BytesMut,
}

impl Nodes {
    /// Nothing, where so much gets lost.
    #[must_use]
    pub fn new(loss_ppm: u32, rng: Rng) -> Nodes {
        Nodes {
            stored: Vec::new(),
            traffic: Traffic::default(),
            order: Order::default(),
            reads: Reads::default(),
            loss_ppm,
            rng,
            arena: BytesMut::new(),
        }
    }

    fn wrote(&mut self, step: &Step<'_, Epidemic>, key: &Bytes, value: Option<&Bytes>) {
        let stored = &mut self.stored[step.node].0;
        match value {
            Some(value) => {
                stored.insert(key.clone(), value.clone());
                if *key == LAST {
                    let event = EventKey::from_bytes(value).expect("the engine wrote it");
                    self.order.note(step.node, step.process, event);
                }
            }
            None => drop(stored.remove(key)),
        }
    }

    fn sent(&mut self, from: usize, to: &Recipients, message: &Message) {
        let count = match to {
            // What a node says to itself is not sent.
            Recipients::One(to) => u64::from(to.node != node_id(from)),
            Recipients::Group(nodes) => nodes.len() as u64,
        };
        let body = Body::encode(message, &mut self.arena).expect("it fits a frame");
        let sum = &mut self.traffic[Kind::of(message)];
        sum.messages += count;
        sum.bytes += count * body.frame_bytes() as u64;
        match message {
            Message::Epto(epto::Message::Ball(ball)) => {
                let payloads = ball.0.iter().map(|copy| copy.event.payload.length() as u64);
                self.traffic.carried_bytes += count * payloads.sum::<u64>();
            }
            Message::Epto(epto::Message::Payloads(payloads)) => {
                let mut rest = &payloads.bytes[..];
                for (event, length) in &payloads.found {
                    let (payload, behind) = rest.split_at(*length as usize);
                    rest = behind;
                    if !self.reads.knows(event) {
                        self.reads.learn(*event, payload);
                    }
                }
            }
            Message::Did { event, results, .. } => {
                for (id, came) in results {
                    if let Came::Read { version, .. } = came {
                        self.reads.said(*event, *id, *version);
                    }
                }
            }
            _ => {}
        }
    }
}

impl Around<Epidemic> for Nodes {
    type Plan = Plan;

    fn table(&self, node: usize) -> &dyn Table {
        &self.stored[node]
    }

    fn end(&mut self, step: Step<'_, Epidemic>) -> Time {
        for effect in step.asked {
            match effect {
                Effect::Write { key, value, .. } => self.wrote(&step, key, value.as_ref()),
                Effect::Send { to, message, .. } => self.sent(step.node, to, message),
                _ => {}
            }
        }
        step.begun
    }

    fn loses(&mut self, _from: usize, _to: usize, _message: &Message) -> bool {
        self.loss_ppm > 0 && self.rng.chance_ppm(self.loss_ppm)
    }
}
