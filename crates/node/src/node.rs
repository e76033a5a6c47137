//! Three tables and a router. It matches on inputs and effects, never on messages.

mod leave;
mod open;
mod outlet;
mod sweep;
mod tell;

use crate::dropped::Dropped;
use crate::gate::{Gate, Held};
use crate::host::Host;
use crate::peers::Peers;
use crate::records::{CACHE_BYTES_DEFAULT, Records};
use crate::table::LaneTable;
use crate::timers::Timers;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use core::cell::RefCell;
pub use open::Opener;
use outlet::LaneOutlet;
use quorate_kernel::arena::Arena;
use quorate_kernel::error::{Fatal, WireError};
use quorate_kernel::ids::{Incarnation, LaneId, Lsn, Ticket};
use quorate_kernel::lane::{Env, Lane, LaneSpec};
use quorate_kernel::mutant;
use quorate_kernel::news::{News, Topic};
use quorate_kernel::operation::{Control, Outcome, Refusal};
use quorate_kernel::part::Part;
use quorate_kernel::process::{Inspect, Recovery, Request};
use quorate_kernel::ring::{Closing, Ring};
use quorate_kernel::rng::{Rng, mix};
use quorate_kernel::roll::Roll;
use quorate_kernel::storage::{Batch, Durable, Reader};
use quorate_kernel::time::{Time, WallTime};
use quorate_kernel::wire::Received;
use sweep::Sweep;

struct Slot {
    id: LaneId,
    recovery: Recovery,
    /// None once its keyspace was dropped.
    lane: Option<Box<dyn Lane>>,
    /// The decree that changed its keyspace last, of those it was told.
    version: u64,
    table: LaneTable,
    rng: Rng,
    /// It was called, and is not yet told that the turn ends.
    is_touched: bool,
    /// It was called since its state was last checked; nothing else changes that.
    is_unchecked: bool,
}

impl Slot {
    fn new(spec: LaneSpec, rng: &mut Rng) -> Slot {
        Slot {
            id: spec.lane,
            recovery: spec.recovery,
            lane: Some(spec.process),
            version: 0,
            table: LaneTable::new(spec.lane, spec.durability),
            rng: rng.fork(u64::from(spec.lane.0)),
            is_touched: false,
            is_unchecked: true,
        }
    }
}

/// The lanes of a host in one place: the inputs they get, and the effects they have.
pub struct Node {
    me: Incarnation,
    slots: Vec<Slot>,
    rng: Rng,
    opener: Option<Opener>,
    /// What the overlay believes of the ring, for lanes that are opened later.
    ring: Option<Arc<Ring>>,
    /// The roll, for them too.
    roll: Option<Arc<Roll>>,
    sweep: Sweep,
    store: Box<dyn Reader>,
    /// The data of all lanes that is logged, as far as it is at hand.
    records: RefCell<Records>,
    gate: Gate,
    timers: Timers,
    batch: Batch,
    /// Room for the keys of batches.
    arena: Arena,
    unsynced: VecDeque<(Lsn, usize)>,
    unsynced_bytes: usize,
    peers: Peers,
    free: VecDeque<Held>,
    /// The lanes that were called in this turn and want to be told that it ends.
    touched: Vec<usize>,
    fatal: RefCell<Option<Fatal>>,
    dropped: Dropped,
    now: Time,
    wall: WallTime,
}

impl Node {
    /// A node whose log has come as far as `recovered`.
    #[must_use]
    pub fn new(
        me: Incarnation,
        seed: u64,
        recovered: Lsn,
        store: Box<dyn Reader>,
        lanes: Vec<LaneSpec>,
    ) -> Node {
        let mut rng = Rng::new(seed);
        // Whether events are told, or a roll is kept, shifts no draw of another lane.
        let mut aside = Rng::new(mix(seed));
        let slot = |spec: LaneSpec| match spec.lane {
            LaneId::EVENTS | LaneId::ROLL => Slot::new(spec, &mut aside),
            _ => Slot::new(spec, &mut rng),
        };
        let mut slots: Vec<Slot> = lanes.into_iter().map(slot).collect();
        slots.sort_by_key(|slot| slot.id);
        assert!(slots.windows(2).all(|pair| pair[0].id < pair[1].id), "lane ids are distinct");
        let durable = Durable { written: recovered, synced: recovered };
        Node {
            me,
            slots,
            rng,
            opener: None,
            ring: None,
            roll: None,
            sweep: Sweep::default(),
            store,
            records: RefCell::new(Records::new(CACHE_BYTES_DEFAULT)),
            gate: Gate::new(durable),
            timers: Timers::default(),
            arena: Arena::default(),
            batch: Batch { lsn: Lsn(recovered.0 + 1), ..Batch::default() },
            unsynced: VecDeque::new(),
            unsynced_bytes: 0,
            peers: Peers::default(),
            free: VecDeque::new(),
            touched: Vec::new(),
            fatal: RefCell::new(None),
            dropped: Dropped::default(),
            now: Time(0),
            wall: WallTime(0),
        }
    }

    /// Keeps about so many bytes of data at hand, beside what is not durable and what `memory`
    /// lanes have.
    #[must_use]
    pub fn with_cache(self, bytes_max: usize) -> Node {
        Node { records: RefCell::new(Records::new(bytes_max)), ..self }
    }

    /// Who this node is.
    #[must_use]
    pub fn me(&self) -> Incarnation {
        self.me
    }

    /// Sets the time of the turn that begins.
    pub fn begin(&mut self, now: Time, wall: WallTime) {
        assert!(now >= self.now, "monotonic time does not go back");
        self.now = now;
        self.wall = wall;
    }

    /// Starts every lane. Called once, before any other input.
    pub fn start(&mut self, host: &mut dyn Host) {
        for index in 0..self.slots.len() {
            let recovery = self.slots[index].recovery;
            self.call(index, host, |lane, env| lane.start(recovery, env));
        }
        self.drain(host);
    }

    /// A frame arrived, whole.
    pub fn frame(&mut self, bytes: Bytes, host: &mut dyn Host) {
        let received = match Received::decode(bytes) {
            Ok(received) => received,
            Err(_) => return self.dropped.malformed += 1,
        };
        if !self.is_current(&received) {
            return self.dropped.stale += 1;
        }
        let Some(index) = self.slot_of(received.lane) else {
            return self.dropped.homeless += 1;
        };
        let mut result = Ok::<(), WireError>(());
        self.call(index, host, |lane, env| {
            result = lane.on_frame(received.source, &received.message, env);
        });
        if result.is_err() {
            self.dropped.malformed += 1;
        }
        self.drain(host);
    }

    /// Whether the frame is for this start of this node and from the newest known start of its
    /// source.
    fn is_current(&mut self, received: &Received) -> bool {
        let target = received.target;
        let is_mine =
            target.node == self.me.node && (target.start.0 == 0 || target.start == self.me.start);
        is_mine && self.peers.admit(received.source, self.now)
    }

    /// A client asks a lane. While the cluster is being shut down no keyspace begins anything.
    pub fn request(&mut self, lane: LaneId, ticket: Ticket, request: Request, host: &mut dyn Host) {
        let is_closing = self.ring.as_ref().is_some_and(|ring| ring.closing != Closing::No);
        if is_closing && lane >= LaneId::KEYSPACES && !mutant!("begins_while_closing") {
            return host.answer(ticket, Outcome::Refused(Refusal::Stopping));
        }
        match self.slot_of(lane) {
            Some(index) => {
                self.call(index, host, |lane, env| lane.on_request(ticket, request, env));
                self.drain(host);
            }
            None => host.answer(ticket, Outcome::Refused(Refusal::NotOpen)),
        }
    }

    /// An operator asks a lane.
    pub fn control(
        &mut self,
        lane: LaneId,
        ticket: Ticket,
        control: Control,
        deadline: Time,
        host: &mut dyn Host,
    ) {
        match self.slot_of(lane) {
            Some(index) => {
                self.call(index, host, |lane, env| {
                    lane.on_control(ticket, control, deadline, env);
                });
                self.drain(host);
            }
            None => host.answer(ticket, Outcome::Refused(Refusal::NotOpen)),
        }
    }

    /// The host's log has come this far.
    pub fn durable(&mut self, durable: Durable, host: &mut dyn Host) {
        while let Some(&(lsn, bytes)) = self.unsynced.front()
            && lsn <= durable.written
        {
            self.unsynced_bytes -= bytes;
            self.unsynced.pop_front();
        }
        let mut free = core::mem::take(&mut self.free);
        self.gate.pass(durable, &mut free);
        self.free = free;
        let records = self.records.get_mut();
        for slot in &mut self.slots {
            slot.table.settle(durable, records);
        }
        records.trim();
        self.drain(host);
    }

    /// Fires every timer whose deadline has come.
    pub fn fire(&mut self, host: &mut dyn Host) {
        while let Some((slot, code)) = self.timers.pop(self.now) {
            let index = usize::from(slot);
            if self.hears(index, Topic::Heard) {
                let heard = self.peers.take_heard(self.now);
                self.call(index, host, |lane, env| lane.on_news(News::Heard(&heard), env));
            }
            self.call(index, host, |lane, env| lane.on_timer(code, env));
            self.drain(host);
        }
    }

    /// Ends the turn: lanes that it touched are told, and its writes leave as one batch.
    ///
    /// # Errors
    /// The store failed during the turn. The node must not be used again; nothing that rests on the
    /// failed reads has left.
    pub fn end(&mut self, host: &mut dyn Host) -> Result<(), Fatal> {
        self.tell_touched(host);
        if let Some(fatal) = self.fatal.borrow().clone() {
            return Err(fatal);
        }
        self.sweep();
        if !self.batch.writes.is_empty() {
            let next = Batch { lsn: Lsn(self.batch.lsn.0 + 1), ..Batch::default() };
            let batch = core::mem::replace(&mut self.batch, next);
            let bytes = batch.size();
            self.unsynced.push_back((batch.lsn, bytes));
            self.unsynced_bytes += bytes;
            host.commit(batch);
        }
        Ok(())
    }

    /// When the next timer is due.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        if self.has_to_sweep() { Some(self.now) } else { self.timers.next() }
    }

    /// How far the log has come.
    #[must_use]
    pub fn progress(&self) -> Durable {
        self.gate.durable()
    }

    /// Frames dropped so far.
    #[must_use]
    pub fn dropped(&self) -> Dropped {
        self.dropped.clone()
    }

    /// Whether a lane can serve clients: it owes nothing of any part.
    #[must_use]
    pub fn is_ready(&self, lane: LaneId) -> bool {
        self.lane_of(lane).is_some_and(|lane| lane.parts().iter().all(|part| !part.owes))
    }

    /// Shows a lane's state, and what this node has of its parts.
    pub fn inspect(&self, lane: LaneId, into: &mut dyn Inspect) {
        self.inspect_state(lane, into);
        self.parts(lane).iter().for_each(|part| part.show(into));
    }

    /// Shows a lane's state alone.
    pub fn inspect_state(&self, lane: LaneId, into: &mut dyn Inspect) {
        if let Some(lane) = self.lane_of(lane) {
            lane.inspect(into);
        }
    }

    /// The parts of a lane's data that this node knows; none of a lane that it does not have.
    #[must_use]
    pub fn parts(&self, lane: LaneId) -> Vec<Part> {
        self.lane_of(lane).map(|lane| lane.parts()).unwrap_or_default()
    }

    /// Asserts everything that must hold between two turns. A lane that was not called since it was
    /// last checked is as it was then.
    pub fn check(&mut self) {
        for slot in self.slots.iter_mut().filter(|slot| slot.is_unchecked) {
            slot.is_unchecked = false;
            slot.lane.iter().for_each(|lane| lane.check());
        }
        self.records.get_mut().check();
        assert!(self.free.is_empty(), "a turn delivers everything that may leave");
        assert_eq!(self.dropped.unsent_last, None, "lanes say nothing that is too long");
    }

    fn slot_of(&self, lane: LaneId) -> Option<usize> {
        let found = self.slots.binary_search_by_key(&lane, |slot| slot.id).ok();
        found.filter(|index| self.slots[*index].lane.is_some())
    }

    fn lane_of(&self, lane: LaneId) -> Option<&dyn Lane> {
        self.slot_of(lane).and_then(|index| self.slots[index].lane.as_deref())
    }

    /// Calls one lane, and lets out what it asks for or holds it back.
    fn call(
        &mut self,
        index: usize,
        host: &mut dyn Host,
        handler: impl FnOnce(&mut dyn Lane, &mut Env<'_>),
    ) {
        if self.fatal.get_mut().is_some() {
            return;
        }
        let Slot { id, lane, table, rng, is_unchecked, .. } = &mut self.slots[index];
        let Some(lane) = lane else { return };
        *is_unchecked = true;
        let mut out = LaneOutlet {
            me: self.me,
            slot: index as u16,
            lane: *id,
            table,
            records: &self.records,
            store: &*self.store,
            fatal: &self.fatal,
            gate: &mut self.gate,
            batch: &mut self.batch,
            arena: &mut self.arena,
            timers: &mut self.timers,
            free: &mut self.free,
            dropped: &mut self.dropped,
            host,
        };
        let (me, lane_id, now, wall) = (self.me, *id, self.now, self.wall);
        let mut env = Env { me, lane: lane_id, now, wall, rng, out: &mut out };
        handler(lane.as_mut(), &mut env);
        self.touch(index);
    }
}
