//! Holds back what would show or acknowledge state that the disk has not kept yet.
//!
//! Batches are numbered without a gap, so what waits for batch `n` stands in the bucket `n -
//! first`. Two lines wait: for a batch to be synced, and (data of `periodic` keyspaces) for it to
//! be written.
//!
//! What waits is counted in bytes. The gate refuses nothing: while the disk does not keep up, the
//! host takes no more from clients and from keyspaces of other hosts.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use quorate_kernel::effects::{Note, Recipients};
use quorate_kernel::ids::{Lsn, Ticket};
use quorate_kernel::mutant;
use quorate_kernel::operation::Outcome;
use quorate_kernel::storage::Durable;
use quorate_kernel::wire::Body;

/// Something that may not leave yet, and the slot of the lane that asked for it.
#[derive(Debug)]
pub enum Held {
    /// A message to other nodes.
    Frame(u16, Recipients, Body),
    /// A message of a lane to itself.
    Local(u16, u32),
    /// An answer to a client.
    Answer(Ticket, Outcome),
    /// Something the node shall be told.
    Note(u16, Note),
}

impl Held {
    /// About how many bytes of memory it takes. A value that several answers share counts for each
    /// of them; a message of a lane to itself counts where its client is counted.
    fn bytes(&self) -> usize {
        let beside = match self {
            Held::Frame(_, _, body) => body.frame_bytes(),
            Held::Answer(_, outcome) => outcome.bytes(),
            Held::Local(..) | Held::Note(..) => 0,
        };
        size_of::<Held>() + beside
    }
}

/// What must have happened before something may leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// This batch is synced.
    pub synced: Lsn,
    /// This batch is written.
    pub written: Lsn,
}

impl Needs {
    /// What is needed where both are.
    #[must_use]
    pub fn and(self, other: Needs) -> Needs {
        let synced = self.synced.max(other.synced);
        Needs { synced, written: self.written.max(other.written) }
    }
}

/// Who waits for one batch.
#[derive(Debug)]
struct Bucket<T> {
    items: Vec<T>,
    /// How many bytes they take together.
    bytes: usize,
}

/// One line of waiters in buckets by batch.
#[derive(Debug)]
struct Line<T> {
    passed: Lsn,
    buckets: VecDeque<Bucket<T>>,
    spare: Vec<Vec<T>>,
    /// How many bytes all that wait take together.
    bytes: usize,
}

impl<T> Line<T> {
    fn new(passed: Lsn) -> Line<T> {
        Line { passed, buckets: VecDeque::new(), spare: Vec::new(), bytes: 0 }
    }

    fn hold(&mut self, until: Lsn, item: T, bytes: usize) {
        let bucket = (until.0 - self.passed.0 - 1) as usize;
        while self.buckets.len() <= bucket {
            let items = self.spare.pop().unwrap_or_default();
            self.buckets.push_back(Bucket { items, bytes: 0 });
        }
        let bucket = &mut self.buckets[bucket];
        bucket.items.push(item);
        bucket.bytes += bytes;
        self.bytes += bytes;
    }

    fn pass(&mut self, upto: Lsn, free: &mut dyn FnMut(T)) {
        assert!(upto >= self.passed, "syncs complete in order");
        while self.passed < upto {
            self.passed.0 += 1;
            if let Some(Bucket { mut items, bytes }) = self.buckets.pop_front() {
                self.bytes -= bytes;
                items.drain(..).for_each(&mut *free);
                self.spare.push(items);
            }
        }
    }
}

/// The gate of one node.
#[derive(Debug)]
pub struct Gate {
    synced: Line<(Lsn, Held)>,
    written: Line<Held>,
}

impl Gate {
    /// A gate whose log has come this far already.
    #[must_use]
    pub fn new(durable: Durable) -> Gate {
        Gate { synced: Line::new(durable.synced), written: Line::new(durable.written) }
    }

    /// How far the log has come.
    #[must_use]
    pub fn durable(&self) -> Durable {
        Durable { written: self.written.passed, synced: self.synced.passed }
    }

    /// About how many bytes of memory all that waits takes.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.synced.bytes + self.written.bytes
    }

    /// Whether what has these needs may leave.
    #[must_use]
    pub fn lets_out(&self, needs: Needs) -> bool {
        needs.synced <= self.synced.passed && needs.written <= self.written.passed
    }

    /// Keeps what may not leave until its needs are met.
    pub fn hold(&mut self, needs: Needs, held: Held) {
        assert!(!self.lets_out(needs), "what may leave does not wait");
        let bytes = if mutant!("gate_counts_nothing") { 0 } else { held.bytes() };
        if needs.synced > self.synced.passed {
            self.synced.hold(needs.synced, (needs.written, held), bytes);
        } else {
            self.written.hold(needs.written, held, bytes);
        }
    }

    /// The log has come this far: everything whose needs are met leaves, in the order it came for
    /// each batch.
    pub fn pass(&mut self, durable: Durable, free: &mut VecDeque<Held>) {
        assert!(durable.synced <= durable.written, "what is synced was written");
        let Gate { synced, written } = self;
        written.pass(durable.written, &mut |held| free.push_back(held));
        synced.pass(durable.synced, &mut |(needs_written, held)| {
            if needs_written > written.passed {
                let bytes = held.bytes();
                written.hold(needs_written, held, bytes);
            } else {
                free.push_back(held);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn answer(n: u64) -> Held {
        Held::Answer(Ticket(n), Outcome::written())
    }

    fn tickets(free: &mut VecDeque<Held>) -> Vec<u64> {
        let ticket = |held| match held {
            Held::Answer(ticket, _) => ticket.0,
            other => panic!("only answers are held here, not {other:?}"),
        };
        free.drain(..).map(ticket).collect()
    }

    #[test]
    fn what_waits_leaves_when_its_batch_is_durable_and_not_before() {
        let mut gate = Gate::new(Durable { written: Lsn(7), synced: Lsn(5) });
        let mut free = VecDeque::new();
        let needs = |synced, written| Needs { synced: Lsn(synced), written: Lsn(written) };
        assert!(gate.lets_out(needs(5, 7)));
        for (needs, ticket) in [
            (needs(6, 0), 2),
            (needs(8, 0), 3),
            (needs(6, 9), 4),
            (needs(0, 8), 5),
            (needs(6, 0), 6),
        ] {
            assert!(!gate.lets_out(needs));
            gate.hold(needs, answer(ticket));
        }
        gate.pass(Durable { written: Lsn(8), synced: Lsn(6) }, &mut free);
        assert_eq!(tickets(&mut free), [5, 2, 6]);
        gate.pass(Durable { written: Lsn(9), synced: Lsn(7) }, &mut free);
        assert_eq!(tickets(&mut free), [4]);
        gate.pass(Durable { written: Lsn(9), synced: Lsn(9) }, &mut free);
        assert_eq!(tickets(&mut free), [3]);
        assert_eq!(gate.durable(), Durable { written: Lsn(9), synced: Lsn(9) });
        assert_eq!(gate.held_bytes(), 0);
    }

    #[test]
    fn what_waits_is_counted_until_it_leaves_also_where_it_waits_twice() {
        let mut gate = Gate::new(Durable { written: Lsn(5), synced: Lsn(5) });
        let mut free = VecDeque::new();
        let mut hold = |synced, written, length: usize| {
            let before = gate.held_bytes();
            let answer = Outcome::value(Some(vec![7; length].into()));
            let needs = Needs { synced: Lsn(synced), written: Lsn(written) };
            gate.hold(needs, Held::Answer(Ticket(1), answer));
            gate.held_bytes() - before - length
        };
        let beside = hold(6, 0, 0);
        assert!(beside > 0, "also an answer without a value takes room");
        assert_eq!((hold(6, 9, 1000), hold(0, 6, 100), hold(7, 0, 10)), (beside, beside, beside));
        let mut pass = |synced, written| {
            gate.pass(Durable { written: Lsn(written), synced: Lsn(synced) }, &mut free);
            (free.drain(..).count(), gate.held_bytes())
        };
        assert_eq!(pass(5, 6), (1, 3 * beside + 1010));
        assert_eq!(pass(6, 8), (1, 2 * beside + 1010), "one waits for its data as well");
        assert_eq!(pass(7, 8), (1, beside + 1000));
        assert_eq!(pass(9, 9), (1, 0));
    }
}
