//! What the directory of a simulated host knows of its own past and of the other hosts, and the
//! copy that an operator made of it.

use crate::queue::{Event, Queue, Said};
use quorate_kernel::ids::{Lsn, NodeId, Start};
use quorate_kernel::sighting::{Disowned, Past, Sighting};
use quorate_store::memory::MemoryStore;
use std::collections::BTreeMap;

/// What a directory remembers beside its store.
#[derive(Debug, Default)]
pub struct Memory {
    past: Past,
    /// What was seen of the others. A real host writes it down within a second.
    seen: BTreeMap<NodeId, Sighting>,
    copy: Option<Copy>,
}

/// A copy of a directory.
#[derive(Debug)]
struct Copy {
    start: Start,
    store: MemoryStore,
    past: Past,
}

impl Memory {
    /// The host speaks in a new start, on what the store kept of the earlier ones.
    pub fn speak(&mut self, start: Start, run: u64, recovered: Lsn) {
        self.past.end(recovered);
        // A planted bug repeats starts.
        if self.past.spoken().last().is_none_or(|last| last.start < start) {
            self.past.begin(start, run);
        }
    }

    /// Takes in what was seen of another host.
    pub fn see(&mut self, sighting: Sighting) {
        self.seen.entry(sighting.node).or_insert(sighting).raise(&sighting);
    }

    /// What was seen of a node.
    #[must_use]
    pub fn seen(&self, node: NodeId) -> Option<&Sighting> {
        self.seen.get(&node)
    }

    /// Whether all of that lies in the past of the directory, opened for the next start.
    ///
    /// # Errors
    /// It does not: the directory is not the one that was seen.
    pub fn judge(
        &self,
        start: Start,
        store: &MemoryStore,
        seen: &Sighting,
    ) -> Result<(), Disowned> {
        let mut past = self.past.clone();
        past.end(store.durable().written);
        past.judge(start, 0, seen)
    }

    /// Keeps a copy of the directory, made while its host runs. One of this start that waits to be
    /// put back stays, so that what is put back is as old as the fault that made it says.
    pub fn keep_copy(&mut self, start: Start, store: &MemoryStore) {
        if self.copy.as_ref().is_none_or(|copy| copy.start != start) {
            self.copy = Some(Copy { start, store: store.copy(), past: self.past.clone() });
        }
    }

    /// Puts the copy back if it was made in this start. What was seen of others is as old as it.
    pub fn put_back(&mut self, start: Start) -> Option<MemoryStore> {
        let copy = self.copy.take().filter(|copy| copy.start == start)?;
        self.past = copy.past;
        Some(copy.store)
    }
}

/// What a frame and its connection say of its sender.
#[must_use]
pub fn sighting(frame: &[u8], said: Said) -> Sighting {
    let word = |at: usize| frame.get(at..at + 8).and_then(|eight| eight.try_into().ok());
    let start = frame.get(17..21).and_then(|four| four.try_into().ok());
    Sighting {
        node: NodeId(word(9).map_or(0, u64::from_le_bytes)),
        start: Start(start.map_or(0, u32::from_le_bytes)),
        run: said.run,
        synced: said.synced,
    }
}

/// What frames under way will have others see of a node: whoever starts a host again waits longer
/// than they take.
pub fn under_way(queue: &Queue, node: NodeId) -> Vec<Sighting> {
    let frames = queue.events().filter_map(|event| match event {
        Event::Frame { bytes, said, .. } if said.run > 0 => Some(sighting(bytes, *said)),
        _ => None,
    });
    frames.filter(|seen| seen.node == node).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_kernel::storage::{Batch, Log};

    fn store(batches: u64) -> MemoryStore {
        let mut store = MemoryStore::new();
        for lsn in 1..=batches {
            let batch = Batch { lsn: Lsn(lsn), must_sync: true, writes: Vec::new() };
            store.apply(&[batch]).expect("applied");
        }
        store
    }

    #[test]
    fn a_copy_of_the_present_start_is_put_back_and_known_by_what_it_lacks() {
        let node = NodeId(7);
        let seen = |synced| Sighting { node, start: Start(1), run: 3, synced: Lsn(synced) };
        let mut memory = Memory::default();
        memory.speak(Start(1), 3, Lsn(0));
        memory.keep_copy(Start(1), &store(5));
        memory.keep_copy(Start(1), &store(6));
        let copy = memory.put_back(Start(1)).expect("it is of this start");
        assert_eq!(memory.judge(Start(2), &copy, &seen(5)), Ok(()));
        let lost = Disowned::Lost { start: 1, synced: 6, kept: 5 };
        assert_eq!(memory.judge(Start(2), &copy, &seen(6)), Err(lost));
        memory.keep_copy(Start(1), &store(5));
        assert!(memory.put_back(Start(2)).is_none(), "it was started since");
    }
}
