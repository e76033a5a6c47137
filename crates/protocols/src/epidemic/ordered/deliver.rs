//! What a node does with an event when its turn comes.

use super::batch::{Act, Batch, BatchItem};
use super::holes::{Delivered, HeldRead};
use crate::epidemic::message::{Came, Message, PAGE_BYTES};
use crate::epidemic::replica::range::position;
use crate::epidemic::replica::seen::{Done, SEEN_MAX};
use crate::epidemic::replica::store::{Put, Record};
use crate::epidemic::replica::version::{RequestId, Version};
use crate::epidemic::{Context, Epidemic};
use crate::epto::{Action, Event, EventKey, LogicalTime};
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::NodeId;
use quorate_kernel::plain::PlainData;
use quorate_kernel::{invariant, mutant, probe};

impl Epidemic {
    /// Does what EpTO asks for, in order.
    pub(in crate::epidemic) fn on_actions(&mut self, actions: Vec<Action>, cx: &mut Context<'_>) {
        for action in actions {
            match action {
                Action::Send { to, message } => {
                    let to: Arc<[NodeId]> = to.into();
                    // Balls and payloads promise nothing.
                    cx.fx.send_early(&to, Message::Epto(message));
                }
                Action::Deliver { event, payload } => self.on_deliver(&event, &payload, cx),
                Action::Hole { event } | Action::Late { event } => {
                    let source = event.key.source;
                    self.on_hole(source, event.sequence, event.sequence);
                }
                Action::Gap { source, first, last } => self.on_hole(source, first, last),
                Action::LostPlace => self.lose_place(),
                Action::Refuse { .. } => cx.fx.refuse("a clock that is too far ahead"),
            }
        }
    }

    fn on_deliver(&mut self, event: &Event, payload: &Bytes, cx: &mut Context<'_>) {
        let is_next = self.state.last.is_none_or(|last| last < event.key);
        invariant!(is_next, "events are done in the order of their keys, each once");
        invariant!(self.state.epto.has_place(), "who delivers knows its place in the order");
        let mut delivered = Delivered::of(self.state.ready);
        let mut results = Vec::new();
        match Batch::from_bytes(payload) {
            Ok(batch) => {
                #[cfg(test)]
                let ids = batch.0.iter().map(|asked| asked.id).collect();
                #[cfg(test)]
                self.state.requests.insert(event.key, ids);
                for asked in batch.0 {
                    if self.state.is_mine(position(&asked.key)) {
                        self.perform(event.key, asked, &mut delivered, &mut results, cx);
                    }
                }
            }
            Err(_) => self.state.counters.malformed += 1,
        }
        self.state.set_last(event.key);
        #[cfg(test)]
        self.state.delivered.push(event.key);
        self.state.holes.delivered((event.key.source, event.sequence), delivered);
        self.forget_old(event.key.time);
        self.flush(cx);
        self.tell_did(event.key, results, cx);
        invariant!(self.state.last == Some(event.key), "the order goes on");
    }

    /// Tells the source what its event did, in as many messages as it takes.
    fn tell_did(&self, event: EventKey, results: Vec<(RequestId, Came)>, cx: &mut Context<'_>) {
        let members = self.state.told_size();
        let (mut part, mut bytes) = (Vec::new(), 0);
        let mut results = results.into_iter().peekable();
        while let Some((id, came)) = results.next() {
            if let Came::Read { value: Some(value), .. } = &came {
                bytes += value.len();
            }
            part.push((id, came));
            if bytes >= PAGE_BYTES || results.peek().is_none() {
                let results = core::mem::take(&mut part);
                cx.fx.send(event.source, Message::Did { event, members, results });
                bytes = 0;
            }
        }
    }

    /// Does one request of an event. Who is not ready for its key does it when it is, and says
    /// nothing.
    fn perform(
        &mut self,
        event: EventKey,
        asked: BatchItem,
        delivered: &mut Delivered,
        results: &mut Vec<(RequestId, Came)>,
        cx: &Context<'_>,
    ) {
        let is_ready = self.state.is_ready(position(&asked.key));
        if !is_ready && asked.is_write() && !mutant!("epidemic_growth_writes_at_once") {
            return self.defer(event, asked);
        }
        let (id, since) = (asked.id, asked.since);
        let came = match asked.act {
            Act::Get if is_ready => self.read_at(event, id, asked.key, cx),
            Act::Get => None,
            Act::Put(value) => {
                delivered.note(asked.key.clone(), id);
                Some(self.write(event, (id, since), asked.key, Some(value)))
            }
            Act::Delete => {
                delivered.note(asked.key.clone(), id);
                Some(self.write(event, (id, since), asked.key, None))
            }
        };
        results.extend(came.filter(|_| is_ready).map(|came| (id, came)));
    }

    /// A write: the first event of its request does it. Whoever has forgotten whether there was one
    /// before does nothing.
    pub(in crate::epidemic) fn write(
        &mut self,
        event: EventKey,
        (id, since): (RequestId, Option<LogicalTime>),
        key: Bytes,
        value: Option<Bytes>,
    ) -> Came {
        let state = &mut self.state;
        if let Some(done) = state.seen.get(id) {
            // A snapshot may have brought what this very event has done.
            state.counters.repeated += u64::from(done.event != event);
            // Ids come apart from what was written, which may never come: here it is. Of a time
            // before which tombstones were purged it is not known what became of it.
            let purged = event.time.0.saturating_sub(self.settings.grace);
            let is_its = done.position == position(&key) && done.event.time.0 >= purged;
            if is_its && !mutant!("epidemic_seen_is_stored") {
                let record = Record { key, version: Version::Ordered(done.event), id, value };
                let put = state.store.put(record, &mut state.writes);
                state.counters.conflicts += u64::from(put == Put::Conflict);
            }
            return Came::Wrote { version: Version::Ordered(done.event), existed: done.existed };
        }
        let is_doubtful = since.is_some_and(|since| state.seen.may_have_forgotten(since));
        if is_doubtful && !mutant!("epidemic_old_name_done_again") {
            probe!("epidemic/name_forgotten");
            return Came::Forgotten;
        }
        let held = state.store.held(&key, None);
        let existed = held.is_some_and(|held| !held.is_deleted);
        let mut version = Version::Ordered(event);
        if mutant!("epidemic_version_counted") {
            let count = held.map_or(0, |held| held.version.time().0) + 1;
            let source = quorate_kernel::ids::Incarnation::default();
            version = Version::Ordered(EventKey { time: LogicalTime(count), source });
        }
        let done = Done { event, position: position(&key), existed };
        state.seen.note(id, done, &mut state.writes);
        let record = Record { key, version, id, value };
        if state.store.put(record, &mut state.writes) == Put::Conflict {
            state.counters.conflicts += 1;
        }
        Came::Wrote { version, existed }
    }

    /// A read at its event. Who has a later write already cannot tell what there was; who knows of
    /// a hole waits until it is filled, and does not read where too many wait.
    fn read_at(
        &mut self,
        event: EventKey,
        id: RequestId,
        key: Bytes,
        cx: &Context<'_>,
    ) -> Option<Came> {
        let version = self.state.store.held(&key, None).map(|held| held.version);
        let is_ahead = version.is_some_and(|version| version > Version::Ordered(event));
        if is_ahead && !mutant!("epidemic_reads_ahead") {
            probe!("epidemic/ahead");
            self.state.counters.ahead += 1;
            return None;
        }
        let record = version.and_then(|version| self.state.store.record(&key, version, cx.table));
        let value = record.and_then(|record| record.value);
        let is_degraded = self.state.is_degraded(&key);
        let came = Came::Read { version, value, is_degraded };
        if self.state.holes.is_open() && !mutant!("epidemic_holes_unseen") {
            probe!("epidemic/read_waits");
            let read = HeldRead { event, id, key, came, round: self.state.round };
            return (!self.state.holes.hold(read)).then_some(Came::Overloaded);
        }
        Some(came)
    }

    /// Forgets requests, and tombstones, of events that are old by now: everywhere at this event.
    pub(in crate::epidemic) fn forget_old(&mut self, now: LogicalTime) {
        let state = &mut self.state;
        let before = |age: u64| LogicalTime(now.0.saturating_sub(age));
        let (window, grace) = (before(self.settings.window), before(self.settings.grace));
        state.seen.forget_before(window, &mut state.writes);
        state.seen.forget_above(SEEN_MAX, &mut state.writes);
        let purged = state.store.purge_before(grace, &mut state.writes);
        state.counters.purged += purged as u64;
    }
}
