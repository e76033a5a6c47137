//! What the node lends a lane for one call, and what becomes of the effects: what may leave goes
//! to the host at once, without a stop on the way; the rest waits at the gate.

use crate::dropped::Dropped;
use crate::gate::{Gate, Held, Needs};
use crate::host::Host;
use crate::records::Records;
use crate::table::{LaneReader, LaneTable};
use crate::timers::Timers;
use alloc::collections::VecDeque;
use bytes::Bytes;
use core::cell::RefCell;
use quorate_kernel::arena::Arena;
use quorate_kernel::effects::{Note, Recipients, Release};
use quorate_kernel::error::Fatal;
use quorate_kernel::ids::{Incarnation, LaneId, Start};
use quorate_kernel::lane::{Outlet, Raised};
use quorate_kernel::mutant;
use quorate_kernel::process::Table;
use quorate_kernel::storage::{Batch, Class, Reader, ValueHead, Write, store_prefix};
use quorate_kernel::wire::{Body, Frame};

/// The parts of a node that one of its lanes touches.
pub(super) struct LaneOutlet<'a> {
    pub me: Incarnation,
    pub slot: u16,
    pub lane: LaneId,
    pub table: &'a mut LaneTable,
    pub records: &'a RefCell<Records>,
    pub store: &'a dyn Reader,
    pub fatal: &'a RefCell<Option<Fatal>>,
    pub gate: &'a mut Gate,
    pub batch: &'a mut Batch,
    pub arena: &'a mut Arena,
    pub timers: &'a mut Timers,
    pub free: &'a mut VecDeque<Held>,
    pub dropped: &'a mut Dropped,
    pub host: &'a mut dyn Host,
}

impl LaneOutlet<'_> {
    fn reader(&self) -> LaneReader<'_> {
        let (records, store, fatal) = (self.records, self.store, self.fatal);
        LaneReader { table: self.table, records, store, fatal }
    }

    fn needs(&self, release: &Release) -> Needs {
        let table = &*self.table;
        let needs_key = |key: &Bytes| table.needs_key(key, &self.records.borrow());
        match release {
            Release::Lane => table.needs_all(),
            Release::Key(key) => needs_key(key),
            Release::Keys(keys) => {
                keys.iter().fold(table.needs_state(), |needs, key| needs.and(needs_key(key)))
            }
            Release::State => table.needs_state(),
            Release::Early => Needs::default(),
        }
    }

    fn write(&mut self, class: Class, key: Bytes, value: Option<Bytes>) {
        let stored = self.table.is_logged(class).then(|| {
            self.batch.must_sync |= self.table.must_sync(class);
            self.arena.join(&[&store_prefix(self.lane, class), &key])
        });
        let mut records = self.records.borrow_mut();
        let value = self.table.write((class, key, value), self.batch.lsn, &mut records);
        if let Some(key) = stored {
            self.batch.writes.push(Write { key, value });
        }
    }

    /// Delivers what a lane tells itself or the node, when that may be: after what the lane is
    /// doing now.
    fn admit(&mut self, release: &Release, held: Held) {
        let needs = self.needs(release);
        match self.gate.lets_out(needs) {
            true => self.free.push_back(held),
            false => self.gate.hold(needs, held),
        }
    }

    fn note(&mut self, note: Note) {
        let release = match note {
            Note::Refused(what) => return self.dropped.refuse(what),
            Note::Settled { .. } if mutant!("settled_early") => Release::Early,
            Note::Keyspaces(_) | Note::Settled { .. } => Release::Lane,
            // Hints, which promise nothing.
            _ => Release::Early,
        };
        self.admit(&release, Held::Note(self.slot, note));
    }
}

impl Table for LaneOutlet<'_> {
    fn get(&self, class: Class, key: &Bytes) -> Option<Bytes> {
        self.reader().get(class, key)
    }

    fn head(&self, key: &Bytes) -> Option<ValueHead> {
        self.reader().head(key)
    }

    fn scan(&self, class: Class, from: &[u8], each: &mut dyn FnMut(&[u8], &Bytes) -> bool) {
        self.reader().scan(class, from, each);
    }
}

impl Outlet for LaneOutlet<'_> {
    fn take(&mut self, raised: Raised) {
        if self.fatal.borrow().is_some() {
            // It may rest on a read that failed.
            return;
        }
        match raised {
            Raised::Write { class, key, value } => self.write(class, key, value),
            Raised::Frame { to, body, release } => {
                let needs = self.needs(&release);
                match self.gate.lets_out(needs) {
                    true => transmit(self.me, self.lane, &to, body, self.host),
                    false => self.gate.hold(needs, Held::Frame(self.slot, to, body)),
                }
            }
            Raised::Local { slot, release } => {
                self.admit(&release, Held::Local(self.slot, slot));
            }
            Raised::Answer { ticket, outcome, release } => {
                let needs = self.needs(&release);
                match self.gate.lets_out(needs) {
                    true if self.free.is_empty() || mutant!("answer_overtakes") => {
                        self.host.answer(ticket, outcome);
                    }
                    // One that was held may be on its way out, of the same watch.
                    true => self.free.push_back(Held::Answer(ticket, outcome)),
                    false => self.gate.hold(needs, Held::Answer(ticket, outcome)),
                }
            }
            Raised::Timer { code, at } => self.timers.set((self.slot, code), at),
            Raised::Unsent(what) => self.dropped.leave_unsent(what),
            Raised::Note(note) => self.note(note),
        }
    }
}

/// Hands a message to the host, once for each recipient but the node itself.
pub(super) fn transmit(
    me: Incarnation,
    lane: LaneId,
    to: &Recipients,
    body: Body,
    host: &mut dyn Host,
) {
    let mut frame = Frame { lane, source: me, target: Incarnation::default(), body };
    match to {
        Recipients::One(target) => {
            frame.target = *target;
            host.transmit(&frame);
        }
        Recipients::Group(nodes) => {
            for node in nodes.iter().filter(|node| **node != me.node) {
                frame.target = Incarnation { node: *node, start: Start(0) };
                host.transmit(&frame);
            }
        }
    }
}
