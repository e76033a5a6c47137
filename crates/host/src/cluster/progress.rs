//! How far this host's log has synced, said to the other end of a connection; first of all also
//! which hosts have left for good, for who waits to meet them.
//!
//! It is a frame of the link itself. It leaves before the first frame that may rest on what was
//! synced since the last one, so whoever holds an acknowledgement knows the batch under it; and
//! within a second of it if no other frame leaves. A lane never sees it.

use bytes::{Bytes, BytesMut};
use quorate_kernel::error::WireError;
use quorate_kernel::ids::{Incarnation, LaneId, Lsn, NodeId, Start};
use quorate_kernel::wire::{Body, Decoder, Encoder, Frame, Received, Wire};

/// Where a frame names its lane.
const LANE_AT: usize = 5;

/// Of more hosts that have left so many are told: who waits for another one asks its operator.
const LEFT_MAX: usize = 1024;

/// What a connection says of its sender.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    /// Its log is synced up to this batch.
    pub synced: Lsn,
    /// Who has left the cluster for good, as far as it knows; said when it has changed.
    pub left: Vec<NodeId>,
}

impl Report {
    /// The same, with as many of those that have left as a frame takes.
    pub fn new(synced: Lsn, left: impl Iterator<Item = NodeId>) -> Report {
        Report { synced, left: left.take(LEFT_MAX).collect() }
    }
}

impl Wire for Report {
    fn encode(&self, out: &mut Encoder<'_>) {
        out.head(&(self.synced, &self.left));
    }

    fn decode(input: &Decoder) -> Result<Report, WireError> {
        input.head().map(|(synced, left)| Report { synced, left })
    }
}

/// The frame that tells a node so.
pub(super) fn frame(me: Incarnation, to: NodeId, report: &Report) -> Bytes {
    let body = Body::encode(report, &mut BytesMut::new()).expect("it fits");
    let target = Incarnation { node: to, start: Start(0) };
    Frame { lane: LaneId::LINK, source: me, target, body }.to_bytes()
}

/// Whether a frame is of the link itself, and not of a lane.
pub(super) fn is_of_link(frame: &[u8]) -> bool {
    lane_of(frame) == Some(LaneId::LINK)
}

/// Whether a frame is of a keyspace's lane.
pub(super) fn is_of_keyspace(frame: &[u8]) -> bool {
    lane_of(frame).is_some_and(|lane| lane >= LaneId::KEYSPACES && lane != LaneId::LINK)
}

fn lane_of(frame: &[u8]) -> Option<LaneId> {
    let bytes = frame.get(LANE_AT..)?.first_chunk()?;
    Some(LaneId(u32::from_le_bytes(*bytes)))
}

/// Who says so, and what.
pub(super) fn read(frame: Bytes) -> Result<(Incarnation, Report), WireError> {
    let received = Received::decode(frame)?;
    Ok((received.source, Report::decode(&received.message)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_back_and_told_from_a_lanes_frames() {
        let me = Incarnation { node: NodeId(5), start: Start(3) };
        let most = Report::new(Lsn(300), (0..5000).map(|node| NodeId(u64::MAX - node)));
        assert_eq!(read(frame(me, NodeId(9), &most)), Ok((me, most)));
        let report = Report::new(Lsn(300), [NodeId(4)].into_iter());
        let bytes = frame(me, NodeId(9), &report);
        assert!(is_of_link(&bytes));
        assert_eq!(read(bytes.clone()), Ok((me, report.clone())));
        let body = Body::encode(&report, &mut BytesMut::new()).expect("it fits");
        let other = Frame { lane: LaneId::OVERLAY, source: me, target: me, body };
        assert!(!is_of_link(&other.to_bytes()) && !is_of_link(&bytes[..7]));
        assert!(!is_of_keyspace(&other.to_bytes()) && !is_of_keyspace(&bytes));
        assert!(read(bytes.slice(..bytes.len() - 1)).is_err());
    }
}
