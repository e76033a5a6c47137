//! How many slots a ring's log has: all that its replicas make of it. What its commands do is the
//! business of partitions, which read the log.

use super::decided;
use super::keys;
use crate::multicast::{Reached, RingId, Slot};
use crate::smr::partitioned::Machine;
use crate::vsr::{self, Op, Page, Store, Stored};
use bytes::Bytes;
use core::marker::PhantomData;
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::process::Table;
use quorate_kernel::storage::Class;

/// The machine of a ring's log.
#[derive(Debug)]
pub(super) struct Slots<M> {
    /// How many partitions there are.
    count: u8,
    /// As of the last entry that was executed, but for changes of members behind the last command:
    /// each takes one slot, and the log does not show it to its machine.
    at: Reached,
    /// What is stored of that.
    stored: Op,
    /// Nobody needs entries up to here: whose turn it is to learn them has them durably.
    free: Op,
    /// A copy that is under way.
    copy: Option<Reached>,
    machine: PhantomData<fn() -> M>,
}

impl<M: Machine> Slots<M> {
    /// Those of a ring without entries.
    pub fn new(ring: RingId, count: u8) -> Slots<M> {
        let at = Reached { ring, op: Op(0), next: Slot(0) };
        Slots { count, at, stored: Op(0), free: Op(0), copy: None, machine: PhantomData }
    }

    /// The log may let go of entries up to here.
    pub fn set_free(&mut self, free: Op) {
        self.free = free.max(self.free);
    }

    /// The first slot behind the entry at `op`, the last one that was executed.
    pub fn next_at(&self, op: Op) -> Slot {
        invariant!(op >= self.at.op, "slots are counted as entries are executed");
        Slot(self.at.next.0 + op.since(self.at.op))
    }

    fn write(&self, store: &mut Store<'_>) {
        let value = keys::encode(&(self.at.op, self.at.next));
        store.write(keys::slots(self.at.ring), Some(value));
    }
}

impl<M: Machine> vsr::Machine for Slots<M> {
    fn is_command(&mut self, command: &Bytes) -> bool {
        decided::read::<M>(command, self.at.ring, self.count).is_some()
    }

    fn apply(&mut self, op: Op, command: &Bytes, _store: &mut Store<'_>) {
        if op <= self.at.op {
            return;
        }
        let slots = decided::slots(command).expect("what is in the log could be read once");
        let next = Slot(self.next_at(op.before()).0 + slots);
        invariant!(next > self.at.next, "each entry takes a slot");
        self.at = Reached { op, next, ..self.at };
    }

    fn load(&mut self, store: &mut Store<'_>) -> Stored {
        let stored = store.table.get(Class::Data, &keys::slots(self.at.ring));
        if let Some(stored) = stored {
            let (op, next) = keys::read(&stored).expect("the store returns what was put into it");
            self.at = Reached { op, next, ..self.at };
            self.stored = op;
        }
        Stored { whole: self.stored, newest: self.stored }
    }

    fn store(&mut self, applied: Op, _bytes_max: usize, store: &mut Store<'_>) {
        if applied > self.stored {
            self.at = Reached { op: applied, next: self.next_at(applied), ..self.at };
            self.stored = applied;
            self.write(store);
        }
    }

    fn stored(&self) -> Op {
        if mutant!("rings_forget_what_partitions_need") {
            return self.stored;
        }
        self.stored.min(self.free)
    }

    fn unstored(&self) -> usize {
        0
    }

    fn head(&mut self, at: Op) -> Bytes {
        keys::encode(&(at, self.next_at(at)))
    }

    fn page(
        &self,
        _at: Op,
        _cursor: &Bytes,
        _bytes_max: usize,
        _table: &dyn Table,
    ) -> Option<Page> {
        Some(Page { items: Bytes::new(), next: None })
    }

    fn begin_install(&mut self, op: Op, head: &Bytes, _store: &mut Store<'_>) -> bool {
        let read = match head.is_empty() {
            true => Some((Op(0), Slot(0))),
            false => keys::read::<(Op, Slot)>(head),
        };
        let copy = read.filter(|(at, _)| *at == op);
        let copy = copy.map(|(op, next)| Reached { op, next, ..self.at });
        self.copy = copy.or(self.copy);
        copy.is_some()
    }

    fn install(&mut self, items: &Bytes, _store: &mut Store<'_>) -> bool {
        items.is_empty()
    }

    fn end_install(&mut self, op: Op, store: &mut Store<'_>) {
        let copy = self.copy.take().expect("a copy that ends was begun");
        invariant!(copy.op == op, "it is of its head's entry");
        self.at = copy;
        self.stored = op;
        self.write(store);
    }
}
