//! Entries that were read before they are executed: each is read once.
//!
//! An entry is read when it comes, to see whether it can be executed, and executed when it is
//! committed. What it says is kept meanwhile, as long as that is little; it is read again where it
//! is not there.

use super::entry::{Entry, Part};
use super::machine::Machine;
use alloc::collections::VecDeque;
use bytes::Bytes;

/// The most bytes of entries that are kept, and the most entries.
const BYTES_MAX: usize = 4 * 1024 * 1024;
const ENTRIES_MAX: usize = 256;

/// Entries in the order in which they came.
#[derive(Debug)]
pub struct Early<M: Machine> {
    entries: VecDeque<(Bytes, Entry<M>)>,
    /// About how many bytes they take, as they came and as they were read.
    bytes: usize,
}

impl<M: Machine> Default for Early<M> {
    fn default() -> Early<M> {
        Early { entries: VecDeque::new(), bytes: 0 }
    }
}

impl<M: Machine> Early<M> {
    /// An entry was read out of these bytes.
    pub fn put(&mut self, bytes: Bytes, entry: Entry<M>) {
        self.bytes += bytes_of(&bytes, &entry);
        self.entries.push_back((bytes, entry));
        while self.bytes > BYTES_MAX || self.entries.len() > ENTRIES_MAX {
            self.drop_first();
        }
    }

    /// What was read out of these very bytes, if it is kept. Nothing that came before it is kept
    /// any more: entries are executed in their order.
    pub fn take(&mut self, bytes: &Bytes) -> Option<Entry<M>> {
        // These bytes are held here, so nothing else can have come to lie where they are.
        let is_same =
            |(of, _): &(Bytes, Entry<M>)| of.as_ptr() == bytes.as_ptr() && of.len() == bytes.len();
        let at = self.entries.iter().position(is_same)?;
        (0..at).for_each(|_| self.drop_first());
        let (of, entry) = self.entries.pop_front()?;
        self.bytes -= bytes_of(&of, &entry);
        Some(entry)
    }

    fn drop_first(&mut self) {
        if let Some((bytes, entry)) = self.entries.pop_front() {
            self.bytes -= bytes_of(&bytes, &entry);
        }
    }
}

/// About how many bytes an entry takes: what its commands point to is about as long as it came.
fn bytes_of<M: Machine>(bytes: &Bytes, entry: &Entry<M>) -> usize {
    let parts = entry.parts.iter();
    let commands = parts.map(|part| part.commands.len() * size_of::<M::Command>());
    bytes.len() + entry.parts.len() * size_of::<Part<M>>() + commands.sum::<usize>()
}
