//! Writes to a range that a node has not taken over yet: they are done when it has.
//!
//! Done at once, a request that was done before would be done again, as its name comes with a
//! snapshot only; and what another client has written in between would be replaced.

use super::join::Standing;
use crate::epidemic::Epidemic;
use crate::epidemic::ordered::batch::{Act, BatchItem};
use crate::epidemic::replica::range::{Range, position};
use crate::epto::EventKey;
use alloc::vec::Vec;
use quorate_kernel::invariant;
use quorate_kernel::probe;

/// The most writes that wait.
const DEFERRED_MAX: usize = 16_384;
/// From how many bytes on no further one does.
const DEFERRED_BYTES: usize = 16 * 1024 * 1024;

/// What waits, in the order.
#[derive(Clone, Debug, Default)]
pub(super) struct Deferred {
    writes: Vec<(EventKey, BatchItem)>,
    bytes: usize,
}

impl Deferred {
    /// Takes one; returns whether there was room.
    fn push(&mut self, event: EventKey, asked: BatchItem) -> bool {
        let has_room = self.writes.len() < DEFERRED_MAX && self.bytes < DEFERRED_BYTES;
        if has_room {
            self.bytes += asked.bytes();
            self.writes.push((event, asked));
        }
        has_room
    }
}

impl Epidemic {
    /// A write to what is not taken over yet has its turn. Without room the snapshots must have it.
    pub(in crate::epidemic) fn defer(&mut self, event: EventKey, asked: BatchItem) {
        invariant!(asked.is_write(), "who is not ready answers no read");
        let Standing::Joining(joining) = &mut self.state.standing else {
            panic!("who has not all of its range joins")
        };
        probe!("epidemic/deferred");
        if !joining.deferred.push(event, asked) {
            probe!("epidemic/deferred_full");
            joining.deferred = Deferred::default();
            joining.floor = Some(event);
            joining.restart();
        }
        invariant!(joining.deferred.writes.len() <= DEFERRED_MAX, "few writes wait");
    }

    /// A range is taken over: what waits for it is done.
    pub(super) fn perform_deferred(&mut self, deferred: Deferred, target: &Range) {
        for (event, asked) in deferred.writes {
            if target.has(position(&asked.key)) {
                let value = match asked.act {
                    Act::Put(value) => Some(value),
                    Act::Delete | Act::Get => None,
                };
                self.write(event, (asked.id, asked.since), asked.key, value);
            }
        }
    }
}
