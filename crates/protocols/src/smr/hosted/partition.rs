//! A replica of a partition at its host: what it learns, and what it stores.

use super::action::Context;
use super::copy::{Behind, Source};
use super::keys;
use super::ring::Ring;
use crate::multicast::{Lacking, Reached, RingId, Slot};
use crate::smr::partitioned::{
    Effect, Kept, Layout, Machine, PartitionId, Place, Replica, ReplicaId, Snapshot,
};
use crate::vsr::{Op, TICK};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::NodeId;
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::process::Table;
use quorate_kernel::storage::Class;
use quorate_kernel::time::{Span, Time};

/// How many more slots are lacked for a question that is asked before the next tick.
const MORE_SLOTS: u64 = crate::multicast::AHEAD / 4;
/// How long a question of what is decided waits before it is asked again, of somebody else if
/// nothing has come.
pub(super) const FOLLOWS: Span = Span::millis(200);
/// When what was executed is stored in any case, so that logs are trimmed.
const STORED: Span = Span::secs(10);

/// How a replica learns a ring whose log is not at hand.
#[derive(Debug, Default)]
pub(super) struct Feed {
    /// When it has asked last.
    pub asked: Option<Time>,
    /// Whether something has come since.
    pub is_heard: bool,
    /// How many were asked in vain.
    pub silent: usize,
}

/// A replica of a partition here.
#[derive(Debug)]
pub(super) struct Partition<M: Machine> {
    pub id: PartitionId,
    pub own: ReplicaId,
    pub layout: Layout,
    pub replica: Replica<M>,
    /// How far in each ring what is stored goes.
    stored: BTreeMap<RingId, Op>,
    /// Whether a head and all objects are stored.
    has_stored: bool,
    pub(super) stored_at: Time,
    /// What is kept beside that: its number, and the command that it is of.
    kept: Vec<(u64, Option<Place>)>,
    next_kept: u64,
    pub feeds: BTreeMap<RingId, Feed>,
    /// Which slots were lacked when that was last asked for.
    lacked: BTreeMap<RingId, (Slot, Time)>,
    /// It needs what is gone, and goes on from a copy.
    pub behind: Option<Behind>,
    /// Copies that others take from here.
    pub sources: BTreeMap<NodeId, Source>,
}

/// The rings of a snapshot, and how far it has come in each.
fn reached<M: Machine>(snapshot: &Snapshot<M>) -> BTreeMap<RingId, Op> {
    snapshot.cursor().iter().map(|it| (it.ring, it.op)).collect()
}

impl<M: Machine> Partition<M> {
    /// Goes on from what is stored; a founder begins.
    pub fn open(own: ReplicaId, layout: &Layout, table: &dyn Table, now: Time) -> Partition<M> {
        let id = own.partition;
        let head = table.get(Class::Data, &keys::head(id));
        let has_stored = head.is_some();
        let snapshot = match head {
            Some(head) => {
                let head: Option<Snapshot<M>> = keys::read(&head);
                let head = head.expect("the store returns what was put into it");
                head.with_objects(objects::<M>(id, table))
            }
            None => Snapshot::begin(id, layout.count()),
        };
        let (mut kept, mut numbers) = (Vec::new(), Vec::new());
        table.scan(Class::Data, &keys::kept(id, 0), &mut |key, value| {
            let Some(number) = keys::of_kept(id, key) else { return false };
            let one: Kept<M> = keys::read(value).expect("the store returns what was put into it");
            numbers.push((number, place(&one)));
            kept.push(one);
            true
        });
        if mutant!("partitions_restart_without_what_is_kept") {
            kept.clear();
        }
        Partition {
            id,
            own,
            layout: layout.clone(),
            stored: reached(&snapshot),
            replica: Replica::resume(own, layout.clone(), snapshot, kept),
            has_stored,
            stored_at: now,
            next_kept: numbers.last().map_or(0, |(number, _)| number + 1),
            kept: numbers,
            feeds: BTreeMap::new(),
            lacked: BTreeMap::new(),
            behind: None,
            sources: BTreeMap::new(),
        }
    }

    /// The rings that it learns.
    pub fn rings(&self) -> Vec<RingId> {
        self.stored.keys().copied().collect()
    }

    /// How far in a ring what is stored goes.
    pub fn stored(&self, ring: RingId) -> Option<Op> {
        self.stored.get(&ring).copied()
    }

    /// Learns what is decided in logs that are here, so many positions at most; how many.
    pub fn learn(
        &mut self,
        rings: &BTreeMap<RingId, Ring<M>>,
        most: usize,
        table: &dyn Table,
    ) -> usize {
        let mut count = 0;
        for ring in self.rings() {
            while count < most && self.replica.has_room(ring) {
                let Some(reached) = self.replica.reached(ring) else { break };
                let op = reached.op.next();
                let here = rings.get(&ring);
                let Some(decision) = here.and_then(|it| it.decision(op, table)) else { break };
                if !self.replica.learn(ring, op, decision) {
                    break;
                }
                count += 1;
            }
        }
        count
    }

    /// Rings whose slots it lacks, as far as they are to be asked for now.
    pub fn questions(&mut self, now: Time) -> Vec<Lacking> {
        let questions: Vec<Lacking> = self.replica.questions().collect();
        let due = questions.into_iter().filter(|it| {
            let asked = self.lacked.get(&it.ring);
            asked.is_none_or(|(until, at)| {
                now - *at >= TICK || it.until.0 >= until.0.saturating_add(MORE_SLOTS)
            })
        });
        let due: Vec<Lacking> = due.collect();
        self.lacked.extend(due.iter().map(|it| (it.ring, (it.until, now))));
        due
    }

    /// What the replica asks of others; what it asks of the disk is done.
    pub fn take_effects(&mut self, cx: &mut Context<'_, M>) -> Vec<Effect<M>> {
        let mut others = Vec::new();
        for effect in self.replica.take_effects() {
            match effect {
                Effect::Keep(kept) => kept.iter().for_each(|one| self.keep(one, cx)),
                Effect::Lost(place) => self.falls_behind(Some(place), None),
                Effect::Halt(differs) => {
                    // Which of them is right nobody knows: this one serves on in no case.
                    panic!("replicas of partition {} differ: {differs:?}", self.id.0)
                }
                effect => others.push(effect),
            }
        }
        others
    }

    fn keep(&mut self, kept: &Kept<M>, cx: &mut Context<'_, M>) {
        let number = self.next_kept;
        self.next_kept += 1;
        self.kept.push((number, place(kept)));
        cx.write(keys::kept(self.id, number), Some(keys::encode(kept)));
    }

    /// Stores what was executed, if it is much, or long ago.
    pub fn tick_store(&mut self, every: u64, cx: &mut Context<'_, M>) {
        // What is learned and waits is in the logs.
        let delivered = self.replica.delivered();
        let came =
            |it: &Reached| self.stored.get(&it.ring).map_or(0, |stored| it.op.since(*stored));
        let most = delivered.iter().map(came).max().unwrap_or_default();
        let is_old = most > 0 && cx.now - self.stored_at >= STORED;
        if most >= every || is_old {
            self.store(cx);
        }
    }

    /// Stores what it is now: head and objects in one batch. What was kept for the commands in it
    /// goes with that.
    fn store(&mut self, cx: &mut Context<'_, M>) {
        let changed = self.replica.take_changed();
        let objects = self.replica.objects();
        let mut write = |key: &Bytes| {
            let value = objects.get(key).map(keys::encode);
            cx.write(keys::object(self.id, key), value);
        };
        changed.iter().for_each(&mut write);
        if !self.has_stored && !mutant!("partitions_store_what_changed_alone") {
            objects.keys().filter(|key| !changed.contains(*key)).for_each(&mut write);
        }
        self.write_head(cx);
    }

    fn write_head(&mut self, cx: &mut Context<'_, M>) {
        let head = self.replica.snapshot_without_objects();
        cx.write(keys::head(self.id), Some(keys::encode(&head)));
        self.stored = reached(&head);
        (self.has_stored, self.stored_at) = (true, cx.now);
        let (id, passed) = (self.id, head.passed());
        self.kept.retain(|(number, place)| {
            let is_needed = place.is_some() && *place > passed;
            if !is_needed {
                cx.write(keys::kept(id, *number), None);
            }
            is_needed
        });
    }

    /// Takes a copy of another replica in the place of what is here, also in the store.
    pub fn install(&mut self, copy: Snapshot<M>, cx: &mut Context<'_, M>) {
        invariant!(copy.passed() >= self.replica.passed(), "nobody goes back by a copy");
        let old: Vec<Bytes> = objects::<M>(self.id, cx.table).into_keys().collect();
        for key in old.iter().filter(|key| !copy.objects().contains_key(*key)) {
            cx.write(keys::object(self.id, key), None);
        }
        // What was stored in this very turn is not seen in the store.
        for key in self.replica.objects().keys() {
            if !copy.objects().contains_key(key) {
                cx.write(keys::object(self.id, key), None);
            }
        }
        for (key, object) in copy.objects() {
            cx.write(keys::object(self.id, key), Some(keys::encode(object)));
        }
        self.replica = Replica::resume(self.own, self.layout.clone(), copy, []);
        self.write_head(cx);
        self.behind = None;
        self.sources.clear();
        self.lacked.clear();
    }

    /// What it needs is gone: a command's, or a position of a ring and all before it.
    pub fn falls_behind(&mut self, lost: Option<Place>, base: Option<(RingId, Op)>) {
        let behind = self.behind.get_or_insert_with(Behind::default);
        behind.needs(lost, base);
    }

    /// Whether it has come by itself to what it thought to be gone.
    pub fn catches_up(&mut self) {
        let (passed, replica) = (self.replica.passed(), &self.replica);
        let has = |ring: RingId, op: Op| replica.reached(ring).is_some_and(|it| it.op >= op);
        self.behind.take_if(|behind| behind.is_over(passed, has));
    }
}

fn objects<M: Machine>(id: PartitionId, table: &dyn Table) -> BTreeMap<Bytes, M::Object> {
    let mut objects = BTreeMap::new();
    table.scan(Class::Data, &keys::object(id, &[]), &mut |key, value| {
        let Some(key) = keys::of_object(id, key) else { return false };
        let object = keys::read(value).expect("the store returns what was put into it");
        objects.insert(key, object);
        true
    });
    objects
}

/// The command that something is kept for.
fn place<M: Machine>(kept: &Kept<M>) -> Option<Place> {
    match kept {
        Kept::Signal(signal) => Some(signal.place),
        Kept::Start(_) => None,
    }
}
