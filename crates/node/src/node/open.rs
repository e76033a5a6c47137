//! Lanes that come and go while the node runs, as the catalog says.
//!
//! A lane is opened when the catalog first has its keyspace, and gets a slot above all others: lane
//! ids only grow. One that could not be opened then is left for the next start. When its keyspace
//! is dropped the lane ends at once; its slot stays empty until the node stops, for what it sent
//! may still wait at the gate. Its bytes are swept.

use super::{Node, Slot};
use crate::host::Host;
use crate::table::LaneTable;
use alloc::boxed::Box;
use alloc::sync::Arc;
use quorate_kernel::ids::{LaneId, Start};
use quorate_kernel::invariant;
use quorate_kernel::keyspace::{Keyspace, Keyspaces};
use quorate_kernel::lane::LaneSpec;
use quorate_kernel::news::News;

#[cfg(test)]
mod tests;

/// Makes the lane of a keyspace that this node first heard of in that start; `None` if this build
/// cannot.
pub type Opener = Box<dyn Fn(&Keyspace, Start) -> Option<LaneSpec>>;

/// The most lanes of one start: slots are counted with 16 bits.
const SLOTS_MAX: usize = u16::MAX as usize;

impl Node {
    /// Has lanes opened and dropped as the catalog says.
    #[must_use]
    pub fn with_opener(self, opener: Opener) -> Node {
        Node { opener: Some(opener), ..self }
    }

    /// Opens, changes and drops lanes.
    pub(super) fn on_keyspaces(&mut self, keyspaces: &Arc<Keyspaces>, host: &mut dyn Host) {
        host.keyspaces(keyspaces);
        let is_kept = |lane: LaneId| keyspaces.list.binary_search_by_key(&lane, |(k, _)| k.lane);
        for index in 0..self.slots.len() {
            let lane = self.slots[index].id;
            if lane >= LaneId::KEYSPACES && is_kept(lane).is_err() {
                self.close(index, host);
            }
        }
        let batch = self.batch.lsn;
        for lane in &keyspaces.dropped {
            self.sweep.add(*lane, batch);
        }
        for (keyspace, since) in &keyspaces.list {
            match self.slot_of(keyspace.lane) {
                None => self.open(keyspace, *since, host),
                Some(index) if self.slots[index].version < keyspace.changed => {
                    self.slots[index].version = keyspace.changed;
                    self.tell_one(index, News::Keyspace(keyspace), host);
                }
                Some(_) => {}
            }
        }
    }

    /// Whether there is a lane: one of a keyspace may have to wait for the next start.
    #[must_use]
    pub fn has_lane(&self, lane: LaneId) -> bool {
        self.slot_of(lane).is_some()
    }

    fn open(&mut self, keyspace: &Arc<Keyspace>, since: Start, host: &mut dyn Host) {
        let Some(opener) = &self.opener else { return };
        let newest = self.slots.last().map_or(LaneId::OVERLAY, |slot| slot.id);
        // Where a decree made a keyspace readable that was not when newer ones were opened, or
        // there is no slot left, it is not served before the next start.
        if keyspace.lane <= newest || self.slots.len() >= SLOTS_MAX {
            return;
        }
        let Some(spec) = opener(keyspace, since) else { return };
        invariant!(spec.lane == keyspace.lane, "the lane of the keyspace is opened");
        let recovery = spec.recovery;
        self.slots.push(Slot::new(spec, &mut self.rng));
        let index = self.slots.len() - 1;
        self.slots[index].version = keyspace.changed;
        self.call(index, host, |lane, env| lane.start(recovery, env));
        if let Some(ring) = self.ring.clone() {
            self.tell_one(index, News::Ring(&ring), host);
        }
        if let Some(roll) = self.roll.clone() {
            self.tell_one(index, News::Roll(&roll), host);
        }
        self.tell_one(index, News::Keyspace(keyspace), host);
    }

    /// Ends a lane. What it asked for before may still leave.
    fn close(&mut self, index: usize, host: &mut dyn Host) {
        let slot = &mut self.slots[index];
        if slot.lane.take().is_none() {
            return;
        }
        let lane = slot.id;
        slot.table = LaneTable::new(lane, slot.table.durability());
        self.records.get_mut().forget(lane);
        self.timers.drop_slot(index as u16);
        self.tell_closed(lane, host);
    }
}
