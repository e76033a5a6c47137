//! The baseline as a process: the one match on inputs, starts and maps.

use super::keys::{REPLICAS, Records, stored_replicas};
use super::message::Message;
use super::replica::Replica;
use super::serve::refuse;
use super::{Context, Merkle, Settings};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, Ticket};
use quorate_kernel::news::{News, Topic};
use quorate_kernel::operation::{Control, Outcome, Refusal};
use quorate_kernel::part::Part;
use quorate_kernel::process::{Inspect, Process, Recovery, Request};
use quorate_kernel::storage::Class;
use quorate_kernel::time::{Span, Time};
use quorate_protocols::causal::keys::{BIRTH, MAP, state_bytes, state_value, stored_map};
use quorate_protocols::causal::map::Map;
use quorate_protocols::dots::dot::{Actor, Partition};

/// What a deadline guards against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// Lost messages, or the deadline of an operation.
    Operations,
    /// It is time for the next exchanges of anti-entropy.
    Sync,
}

impl quorate_kernel::process::Timer for Timer {
    fn code(self) -> u32 {
        self as u32
    }

    fn from_code(code: u32) -> Option<Timer> {
        [Timer::Operations, Timer::Sync].get(code as usize).copied()
    }
}

impl Merkle {
    /// The baseline before its start.
    #[must_use]
    pub fn new(settings: Settings) -> Merkle {
        Merkle {
            settings,
            map: None,
            birth: 0,
            replicas: BTreeMap::new(),
            operations: super::serve::Operations::default(),
            remembered: super::write::Remembered::default(),
            repaired: 0,
        }
    }

    fn recover(&mut self, recovery: Recovery, cx: &mut Context<'_>) {
        self.map = stored_map(cx.table);
        if self.map.is_none()
            && let Some(first) = self.settings.first_map.clone()
        {
            cx.fx.put_state(MAP, state_bytes(&first));
            self.map = Some(first);
        }
        let birth = cx.table.get(Class::State, &BIRTH);
        let is_newborn = birth.is_none() && recovery == Recovery::Intact;
        self.birth = birth.map_or(0, |bytes| state_value(&bytes));
        let (shape, width) = (self.settings.shape, self.settings.width);
        for (actor, has_joined) in stored_replicas(cx.table) {
            if recovery == Recovery::Forgot {
                // What is left of it cannot be trusted, and its counters neither.
                discard(actor, cx);
            } else {
                let replica = Replica::load(actor, has_joined, shape, width, cx.table);
                self.replicas.insert(actor.partition, replica);
            }
        }
        let is_first = self.map.as_ref().is_some_and(|map| map.version == 1);
        self.take_partitions(is_newborn && is_first, cx);
        let sync = Span(cx.rng.below(self.settings.sync_interval.0.max(1)));
        cx.fx.arm(Timer::Sync, cx.now + sync);
    }

    /// Begins a replica at every partition that this host holds and has none at, and lets go of the
    /// others.
    fn take_partitions(&mut self, are_founders: bool, cx: &mut Context<'_>) {
        let Some(map) = self.map.clone() else { return };
        let (shape, width) = (self.settings.shape, self.settings.width);
        let is_held = |replica: &Replica| {
            let place = map.place(replica.actor.partition);
            place.is_some_and(|it| (it.host, it.since) == (cx.me.node, replica.actor.since))
        };
        let lost: Vec<Actor> =
            self.replicas.values().filter(|one| !is_held(one)).map(|one| one.actor).collect();
        for actor in lost {
            self.replicas.remove(&actor.partition);
            discard(actor, cx);
        }
        for at in map.partitions_of(cx.me.node) {
            if self.replicas.contains_key(&at) {
                continue;
            }
            let since = map.place(at).expect("the map said so").since;
            self.birth = self.birth.checked_add(1).expect("fewer than 2^32 births");
            let actor = Actor { partition: at, since, birth: self.birth, node: cx.me.node };
            let replica = Replica::load(actor, are_founders, shape, width, cx.table);
            assert!(replica.trees.values().all(|tree| tree.is_empty()), "a birth is used once");
            self.replicas.insert(at, replica);
        }
        cx.fx.put_state(BIRTH, state_bytes(&self.birth));
        self.persist(cx);
    }

    fn persist(&self, cx: &mut Context<'_>) {
        let record = |replica: &Replica| (replica.actor, replica.lacking.is_empty());
        let records: Records = self.replicas.values().map(record).collect();
        cx.fx.put_state(REPLICAS, state_bytes(&records));
    }

    /// Notes durably that a replica is equal to all its peers, once it is.
    pub(super) fn note_joined(&mut self, at: Partition, cx: &mut Context<'_>) {
        let Some(replica) = self.replicas.get_mut(&at) else { return };
        if replica.lacking.is_empty() && !replica.is_noted {
            replica.is_noted = true;
            self.persist(cx);
        }
    }

    fn take_map(&mut self, map: Map, cx: &mut Context<'_>) {
        let is_newer = self.map.as_ref().is_none_or(|known| known.version < map.version);
        if !is_newer || !map.fits(self.settings.shape) {
            return;
        }
        cx.fx.put_state(MAP, state_bytes(&map));
        self.map = Some(map);
        for replica in self.replicas.values_mut() {
            replica.agreed.clear();
            replica.asked.clear();
        }
        self.take_partitions(false, cx);
    }
}

/// Deletes everything of a replica.
fn discard(actor: Actor, cx: &mut Context<'_>) {
    let from = actor.birth.to_be_bytes();
    let mut keys = Vec::new();
    cx.table.scan(Class::Data, &from, &mut |key, _| {
        keys.push(Bytes::copy_from_slice(key));
        key.starts_with(&from)
    });
    keys.retain(|key| key.starts_with(&from));
    keys.into_iter().for_each(|key| cx.fx.delete(key));
}

impl Process for Merkle {
    type Message = Message;
    type Timer = Timer;
    const HEARS: &'static [Topic] = &[Topic::Keyspace];

    fn start(&mut self, recovery: Recovery, cx: &mut Context<'_>) {
        self.recover(recovery, cx);
    }

    fn on_message(&mut self, from: Incarnation, message: Message, cx: &mut Context<'_>) {
        match message {
            Message::ReadA { op, key } => self.on_read(from, op, &key, cx),
            Message::ReadB { op, partition, is_serving, object } => {
                self.on_read_reply((op, partition), is_serving, &object, cx);
            }
            Message::WriteA { op, id, context, is_delete, key, value } => {
                let value = (!is_delete).then_some(value);
                self.on_forwarded(from, (op, id), context, (&key, value), cx);
            }
            Message::WriteB { op, told } => self.on_forward_reply(op, told, cx),
            Message::Replicate { key, object } => self.on_replicate(&key, &object, cx),
            Message::Roots { pair, exchange, parts } => {
                self.on_roots(from, (pair, exchange), &parts, cx);
            }
            Message::Buckets { pair, exchange, parts } => {
                self.on_buckets(from, (pair, exchange), &parts, cx);
            }
            Message::Leaves { pair, parts } => self.on_leaves(from, pair, &parts, cx),
            Message::Keys { pair, leaves } => self.on_keys(from, pair, &leaves, cx),
            Message::Repair { pair, wants, page } => self.on_repair(from, (pair, wants), page, cx),
            Message::MapA { version } => {
                if let Some(map) = self.map.as_ref().filter(|map| map.version > version) {
                    cx.fx.send(from, Message::MapB { map: map.clone() });
                }
            }
            Message::MapB { map } => self.take_map(map, cx),
        }
    }

    fn on_request(&mut self, ticket: Ticket, request: Request, cx: &mut Context<'_>) {
        self.begin(ticket, request, cx);
    }

    fn on_control(
        &mut self,
        ticket: Ticket,
        control: Control,
        _deadline: Time,
        cx: &mut Context<'_>,
    ) {
        match control {
            Control::Examine { .. } => cx.fx.answer(ticket, Outcome::parts(self.parts())),
            _ => refuse(ticket, Refusal::Unsupported, cx),
        }
    }

    fn on_timer(&mut self, timer: Timer, cx: &mut Context<'_>) {
        match timer {
            Timer::Operations => self.on_alarm(cx),
            Timer::Sync => self.on_sync_time(cx),
        }
    }

    fn on_news(&mut self, news: News<'_>, cx: &mut Context<'_>) {
        let News::Keyspace(keyspace) = news else { unreachable!("a lane is told what it hears") };
        self.take_map(Map::of(keyspace), cx);
    }

    fn parts(&self) -> Vec<Part> {
        if self.map.is_some() { Vec::new() } else { Vec::from([Part::unknown()]) }
    }

    fn inspect(&self, into: &mut dyn Inspect) {
        let trees = || self.replicas.values().flat_map(|one| one.trees.values());
        let unequal = |one: &Replica| one.unequal(self.settings.shape);
        into.field("map", &self.map.as_ref().map_or(0, |map| map.version));
        into.field("replicas", &self.replicas.len());
        into.field(
            "joining",
            &self.replicas.values().filter(|one| !one.lacking.is_empty()).count(),
        );
        into.field("keys", &trees().map(super::tree::Tree::len).sum::<usize>());
        into.field("tree_bytes", &trees().map(super::tree::Tree::bytes).sum::<usize>());
        into.field("unequal", &self.replicas.values().map(unequal).sum::<usize>());
        into.field("operations", &self.operations.by_id.len());
        into.field("repaired", &self.repaired);
    }

    fn check(&self) {
        self.replicas.values().for_each(Replica::check);
    }
}
