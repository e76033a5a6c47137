//! What leaves a lane: past the gate, then to peers, clients, the lane itself or its neighbours.

use super::{Node, Slot};
use crate::gate::{Held, Needs};
use crate::host::Host;
use alloc::sync::Arc;
use bytes::Bytes;
use quorate_kernel::effects::{Note, Recipients, Release};
use quorate_kernel::ids::{Incarnation, Start};
use quorate_kernel::lane::Raised;
use quorate_kernel::mutant;
use quorate_kernel::news::News;
use quorate_kernel::storage::{Class, Write, store_prefix};
use quorate_kernel::wire::{Body, Frame};

impl Node {
    /// Takes in one thing that a lane has asked for.
    pub(super) fn take(&mut self, index: usize, effect: Raised, host: &mut dyn Host) {
        let slot = index as u16;
        match effect {
            Raised::Write { class, key, value } => self.write(index, class, key, value),
            Raised::Frame { to, body, release } => {
                self.admit(index, &release, Held::Frame(slot, to, body), host);
            }
            Raised::Local { slot: local, release } => {
                self.admit(index, &release, Held::Local(slot, local), host);
            }
            Raised::Answer { ticket, outcome, release } => {
                self.admit(index, &release, Held::Answer(ticket, outcome), host);
            }
            Raised::Timer { code, at } => self.timers.set((slot, code), at),
            Raised::Note(Note::Refused(what)) => self.dropped.refuse(what),
            Raised::Unsent(what) => self.dropped.leave_unsent(what),
            Raised::Note(note) => {
                let release = match note {
                    Note::Settled { .. } if mutant!("settled_early") => Release::Early,
                    Note::Keyspaces(_) | Note::Settled { .. } => Release::Lane,
                    // Hints, which promise nothing.
                    _ => Release::Early,
                };
                self.admit(index, &release, Held::Note(slot, note), host);
            }
        }
    }

    fn write(&mut self, index: usize, class: Class, key: Bytes, value: Option<Bytes>) {
        let Slot { id, table, .. } = &mut self.slots[index];
        if table.is_logged(class) {
            self.batch.must_sync |= table.must_sync(class);
            let stored = self.arena.join(&[&store_prefix(*id, class), &key]);
            self.batch.writes.push(Write { key: stored, value: value.clone() });
        }
        table.write((class, key, value), self.batch.lsn, self.records.get_mut());
    }

    pub(super) fn admit(
        &mut self,
        index: usize,
        release: &Release,
        held: Held,
        host: &mut dyn Host,
    ) {
        let (table, records) = (&self.slots[index].table, &*self.records.get_mut());
        let needs = match release {
            Release::Lane => table.needs_all(),
            Release::Key(key) => table.needs_key(key, records),
            Release::Keys(keys) => keys
                .iter()
                .fold(table.needs_state(), |needs, key| needs.and(table.needs_key(key, records))),
            Release::State => table.needs_state(),
            Release::Early => Needs::default(),
        };
        match self.gate.admit(needs, held) {
            // What a lane sends to itself arrives after what it is doing now.
            Some(held @ (Held::Local(..) | Held::Note(..))) => self.free.push_back(held),
            Some(held) => self.release(held, host),
            None => {}
        }
    }

    /// Lets everything out that may leave, and delivers what lanes sent to themselves.
    pub(super) fn drain(&mut self, host: &mut dyn Host) {
        while let Some(held) = self.free.pop_front() {
            self.release(held, host);
        }
    }

    fn release(&mut self, held: Held, host: &mut dyn Host) {
        match held {
            Held::Frame(slot, to, body) => self.transmit(slot, &to, body, host),
            Held::Local(slot, local) => {
                self.call(usize::from(slot), host, |lane, env| lane.on_local(local, env));
            }
            Held::Answer(ticket, outcome) => host.answer(ticket, outcome),
            // It says no more than that it is closed.
            Held::Note(from, Note::Load(_) | Note::Observe(_)) if self.is_closed(from) => {}
            Held::Note(from, Note::Load(load)) => {
                let lane = self.slots[usize::from(from)].id;
                self.tell(News::Load { lane, load: &load }, Some(usize::from(from)), host);
            }
            Held::Note(from, Note::Observe(observation)) => {
                let lane = self.slots[usize::from(from)].id;
                let news = News::Observe { lane, observation: &observation };
                self.tell(news, Some(usize::from(from)), host);
            }
            Held::Note(_, Note::Silence { lane, peer, is_over }) => {
                if let Some(index) = self.slot_of(lane) {
                    self.tell_one(index, News::Silence { peer, is_over }, host);
                }
            }
            // Counted when it was raised.
            Held::Note(_, Note::Refused(_)) => {}
            Held::Note(_, Note::Keyspaces(keyspaces)) => {
                self.on_keyspaces(&keyspaces, host);
                self.tell(News::Keyspaces(&keyspaces), None, host);
            }
            Held::Note(from, Note::Settled { partition, since, settlement }) => {
                let lane = self.slots[usize::from(from)].id;
                let news = News::Settled { lane, partition, since, settlement };
                self.tell(news, Some(usize::from(from)), host);
            }
            Held::Note(from, Note::Ring(ring)) => {
                host.ring(&ring);
                self.ring = Some(Arc::clone(&ring));
                self.tell(News::Ring(&ring), Some(usize::from(from)), host);
            }
        }
    }

    fn transmit(&mut self, slot: u16, to: &Recipients, body: Body, host: &mut dyn Host) {
        let lane = self.slots[usize::from(slot)].id;
        let mut frame = Frame { lane, source: self.me, target: Incarnation::default(), body };
        match to {
            Recipients::One(target) => {
                frame.target = *target;
                host.transmit(&frame);
            }
            Recipients::Group(nodes) => {
                for node in nodes.iter().filter(|node| **node != self.me.node) {
                    frame.target = Incarnation { node: *node, start: Start(0) };
                    host.transmit(&frame);
                }
            }
        }
    }
}
