//! The one event queue: events leave in the order of (time, insertion).

use bytes::Bytes;
use quorate_kernel::ids::Lsn;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Which host, counted from 0. Traces and plans name host 0 `n1`.
pub type HostIndex = usize;

/// What a connection says of the process at its other end before the frames that rest on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// Which process of the start it is.
    pub run: u64,
    /// How far its log had synced.
    pub synced: Lsn,
}

/// Something that will happen. `life` counts the starts and stops of a host: an event of an earlier
/// life is void.
#[derive(Debug)]
pub enum Event {
    /// A frame arrives at a host.
    Frame {
        /// Where.
        host: HostIndex,
        /// The frame.
        bytes: Bytes,
        /// What the connection that carried it had said of its sender.
        said: Said,
    },
    /// A host handles what has arrived.
    Turn {
        /// Which host.
        host: HostIndex,
        /// In which life.
        life: u32,
    },
    /// A host's next timer is due.
    Wake {
        /// Which host.
        host: HostIndex,
        /// In which life.
        life: u32,
    },
    /// A host's disk has written the batches it took.
    Written {
        /// Which host.
        host: HostIndex,
        /// In which life.
        life: u32,
    },
    /// A host's disk has synced.
    Synced {
        /// Which host.
        host: HostIndex,
        /// In which life.
        life: u32,
    },
    /// A host's disk must sync because its interval has passed.
    Interval {
        /// Which host.
        host: HostIndex,
        /// In which life.
        life: u32,
    },
    /// A client goes on: its think time is over, or its new connection stands.
    Client {
        /// Which client.
        client: usize,
        /// Which connection; another one voids the event.
        connection: u32,
    },
    /// A client looks whether its oldest operation waits too long.
    Patience {
        /// Which client.
        client: usize,
    },
    /// A fault of the plan begins.
    FaultBegins(usize),
    /// A fault of the plan ends.
    FaultEnds(usize),
    /// A spare host joins.
    Join(HostIndex),
    /// The groups are looked at.
    Look,
    /// The groups are looked at while clients work.
    Watch,
    /// Time to ask whether a host that is drained may end.
    Survey,
    /// All faults end.
    Heal,
    /// Clients begin the operations that must succeed.
    Demand,
    /// What must have finished by now has not.
    TooLate,
}

const SLOT_BITS: u32 = 24;
const SEQUENCE_BITS: u32 = 64 - SLOT_BITS;

/// The queue. The heap holds only numbers; events rest in a slab.
#[derive(Debug)]
pub struct Queue<E = Event> {
    /// time (64 bits), insertion (40), slot (24).
    heap: BinaryHeap<Reverse<u128>>,
    slab: Vec<Option<E>>,
    free: Vec<u32>,
    sequence: u64,
}

impl<E> Default for Queue<E> {
    fn default() -> Queue<E> {
        Queue { heap: BinaryHeap::new(), slab: Vec::new(), free: Vec::new(), sequence: 0 }
    }
}

impl<E> Queue<E> {
    /// Adds an event.
    pub fn push(&mut self, time: u64, event: E) {
        let slot = if let Some(slot) = self.free.pop() {
            self.slab[slot as usize] = Some(event);
            slot
        } else {
            self.slab.push(Some(event));
            self.slab.len() as u32 - 1
        };
        assert!(slot < 1 << SLOT_BITS, "fewer than 2^24 events wait at once");
        self.sequence += 1;
        assert!(self.sequence < 1 << SEQUENCE_BITS, "a run has fewer than 2^40 events");
        let place = self.sequence << SLOT_BITS | u64::from(slot);
        self.heap.push(Reverse(u128::from(time) << 64 | u128::from(place)));
    }

    /// Takes the next event and its time.
    pub fn pop(&mut self) -> Option<(u64, E)> {
        let Reverse(entry) = self.heap.pop()?;
        let slot = entry as u32 & ((1 << SLOT_BITS) - 1);
        let event = self.slab[slot as usize].take().expect("every entry of the heap has an event");
        self.free.push(slot);
        Some(((entry >> 64) as u64, event))
    }

    /// Takes the next event and its time, if it happens by then.
    pub fn pop_by(&mut self, end: u64) -> Option<(u64, E)> {
        let Reverse(entry) = self.heap.peek()?;
        if (entry >> 64) as u64 <= end { self.pop() } else { None }
    }

    /// Everything that will happen, in no order.
    pub fn events(&self) -> impl Iterator<Item = &E> {
        self.slab.iter().flatten()
    }

    /// Takes out what is meant.
    pub fn lose(&mut self, is_meant: impl Fn(&E) -> bool) {
        let (slab, free) = (&mut self.slab, &mut self.free);
        self.heap.retain(|Reverse(entry)| {
            let slot = *entry as u32 & ((1 << SLOT_BITS) - 1);
            let is_lost = slab[slot as usize].as_ref().is_some_and(&is_meant);
            if is_lost {
                slab[slot as usize] = None;
                free.push(slot);
            }
            !is_lost
        });
    }
}

impl Queue {
    /// Takes out every frame that is under way.
    pub fn lose_frames(&mut self) {
        self.lose(|event| matches!(event, Event::Frame { .. }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_kernel::rng::Rng;

    #[test]
    fn events_leave_by_time_and_then_by_insertion() {
        let mut queue = Queue::default();
        let mut rng = Rng::new(3);
        let mut model = Vec::new();
        for number in 0..2000 {
            let time = rng.below(50);
            queue.push(time, number);
            model.push((time, number));
            if rng.below(4) == 0 {
                model.sort_unstable();
                if let Some(before) = model[0].0.checked_sub(1) {
                    assert_eq!(queue.pop_by(before), None, "none is due before");
                }
                assert_eq!(queue.pop_by(model[0].0), Some(model.remove(0)));
            }
        }
        model.sort_unstable();
        while let Some(entry) = queue.pop() {
            assert_eq!(model.remove(0), entry);
        }
        assert!(model.is_empty());
    }

    #[test]
    fn lost_frames_leave_everything_else_in_its_order() {
        let mut queue = Queue::default();
        for number in 0..100 {
            queue.push(100 - number, Event::FaultEnds(number as usize));
            queue
                .push(number, Event::Frame { host: 0, bytes: Bytes::new(), said: Said::default() });
        }
        queue.lose_frames();
        for number in (0..100).rev() {
            assert!(matches!(queue.pop(), Some((_, Event::FaultEnds(found))) if found == number));
        }
        assert!(queue.pop().is_none());
    }
}
