//! What an entry of a ring's log carries, as bytes.

use crate::multicast::{Decision, RingId};
use crate::smr::partitioned::{Batch, Machine, Ordered, may_order};
use crate::smr::sized;
use bytes::Bytes;

/// The version of an entry's bytes.
const VERSION: u8 = 1;

/// A decision as the log has it.
pub(super) fn encode<M: Machine>(decision: &Decision<Batch<M>>) -> Bytes {
    sized(&[VERSION], decision)
}

/// Reads one back; none if no correct peer puts it into the log of this ring, of a machine that has
/// so many partitions.
pub(super) fn read<M: Machine>(
    bytes: &[u8],
    ring: RingId,
    count: u8,
) -> Option<Decision<Batch<M>>> {
    let (&VERSION, rest) = bytes.split_first()? else { return None };
    let (decision, rest) = postcard::take_from_bytes::<Decision<Batch<M>>>(rest).ok()?;
    let is_sound = match &decision {
        Decision::Commands(batch) => {
            // A signal may come in pieces, and a switch takes the first for all of it.
            let moves = batch.iter().any(|it| matches!(it, Ordered::Switch(_)));
            !moves && may_order(ring, batch, count)
        }
        Decision::Skip(_) => decision.is_sound(),
        // What the log says of itself is no command.
        Decision::Nothing => false,
    };
    (rest.is_empty() && is_sound).then_some(decision)
}

/// How many slots an entry takes, without reading its commands.
pub(super) fn slots(bytes: &[u8]) -> Option<u64> {
    let (&VERSION, rest) = bytes.split_first()? else { return None };
    let (decision, _) = postcard::take_from_bytes::<Decision<()>>(rest).ok()?;
    Some(decision.slots())
}
