//! How much each lane sent to other hosts.

use quorate_kernel::ids::LaneId;
use quorate_kernel::wire::Frame;
use std::collections::BTreeMap;

/// Bytes of the frames that lanes had for other hosts, those included that were dropped on the way
/// out.
#[derive(Default)]
pub(crate) struct Sent(BTreeMap<LaneId, u64>);

impl Sent {
    /// Counts a frame.
    pub fn count(&mut self, frame: &Frame) {
        *self.0.entry(frame.lane).or_default() += frame.body.frame_bytes() as u64;
    }

    /// The bytes of a lane so far.
    pub fn of(&self, lane: LaneId) -> u64 {
        self.0.get(&lane).copied().unwrap_or(0)
    }
}
