//! Faults on purpose: frames to chosen hosts are dropped, or delayed, on their way out.
//!
//! Only a host with the setting `dev.faults` takes any; `quorate dev` sets it. A cut both ways is
//! two cuts, one in each host. Nothing of this costs a host without faults more than one branch.

use bytes::Bytes;
use quorate_kernel::ids::NodeId;
use quorate_kernel::limits::PEER_QUEUE_BYTES_MAX;
use quorate_kernel::wire::Frame;
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// What happens to frames to one host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fault {
    /// Whether they are dropped.
    pub is_cut: bool,
    /// How long each is kept back.
    pub delay: Duration,
}

/// What is to become of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Sent,
    Dropped,
    /// It was taken, and is given back by [`Faults::due`].
    Kept,
}

/// The faults in force, and the frames that are kept back.
#[derive(Default)]
pub(crate) struct Faults {
    table: BTreeMap<NodeId, Fault>,
    kept: BTreeMap<NodeId, VecDeque<(Instant, Bytes)>>,
    kept_bytes: usize,
}

impl Faults {
    /// Replaces all faults. Frames that are kept back stay so until their time.
    pub fn set(&mut self, table: BTreeMap<NodeId, Fault>) {
        self.table = table;
    }

    /// Whether no frame is touched.
    pub fn is_calm(&self) -> bool {
        self.table.is_empty() && self.kept.is_empty()
    }

    /// Decides on a frame, and takes it if it is to be kept back.
    pub fn judge(&mut self, frame: &Frame) -> Fate {
        let node = frame.target.node;
        let fault = self.table.get(&node).copied().unwrap_or_default();
        if fault.is_cut {
            return Fate::Dropped;
        }
        // Behind frames that are kept back nothing overtakes, as on any connection.
        if fault.delay.is_zero() && !self.kept.contains_key(&node) {
            return Fate::Sent;
        }
        if self.kept_bytes + frame.body.frame_bytes() > PEER_QUEUE_BYTES_MAX {
            return Fate::Dropped;
        }
        let bytes = frame.to_bytes();
        self.kept_bytes += bytes.len();
        let queue = self.kept.entry(node).or_default();
        let at = Instant::now() + fault.delay;
        let at = queue.back().map_or(at, |(last, _)| at.max(*last));
        queue.push_back((at, bytes));
        Fate::Kept
    }

    /// When the next frame's time comes.
    pub fn next_due(&self) -> Option<Instant> {
        self.kept.values().filter_map(|queue| queue.front()).map(|(at, _)| *at).min()
    }

    /// The frames whose time has come.
    pub fn due(&mut self, now: Instant) -> Vec<(NodeId, Bytes)> {
        let mut due = Vec::new();
        for (node, queue) in &mut self.kept {
            let count = queue.partition_point(|(at, _)| *at <= now);
            for (_, bytes) in queue.drain(..count) {
                self.kept_bytes -= bytes.len();
                due.push((*node, bytes));
            }
        }
        self.kept.retain(|_, queue| !queue.is_empty());
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;
    use quorate_kernel::error::WireError;
    use quorate_kernel::ids::{Incarnation, LaneId, Start};
    use quorate_kernel::wire::{Body, Decoder, Encoder, Wire};

    struct Ping;

    impl Wire for Ping {
        fn encode(&self, into: &mut Encoder<'_>) {
            into.head(&7_u8);
        }

        fn decode(_: &Decoder) -> Result<Ping, WireError> {
            Ok(Ping)
        }
    }

    fn frame(node: u64) -> Frame {
        let target = Incarnation { node: NodeId(node), start: Start(0) };
        let body = Body::encode(&Ping, &mut BytesMut::new()).expect("it fits");
        Frame { lane: LaneId(1), source: Incarnation::default(), target, body }
    }

    #[test]
    fn frames_are_cut_kept_in_order_or_left_alone() {
        let mut faults = Faults::default();
        assert!(faults.is_calm());
        let cut = Fault { is_cut: true, delay: Duration::ZERO };
        let slow = Fault { is_cut: false, delay: Duration::from_secs(5) };
        faults.set(BTreeMap::from([(NodeId(1), cut), (NodeId(2), slow)]));
        assert_eq!(faults.judge(&frame(1)), Fate::Dropped);
        assert_eq!(faults.judge(&frame(2)), Fate::Kept);
        assert_eq!(faults.judge(&frame(3)), Fate::Sent);
        faults.set(BTreeMap::new());
        assert_eq!(faults.judge(&frame(1)), Fate::Sent);
        assert_eq!(faults.judge(&frame(2)), Fate::Kept, "it may not overtake the first");
        let due = faults.next_due().expect("two are kept");
        assert!(faults.due(due - Duration::from_millis(1)).is_empty());
        let given = faults.due(due);
        assert_eq!(given, [2, 2].map(|node| (NodeId(node), frame(node).to_bytes())));
        assert!(faults.is_calm() && faults.kept_bytes == 0);
    }
}
