//! How far this host's log has synced, said to the other end of a connection.
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

/// The sender's log is synced up to this batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Progress(Lsn);

impl Wire for Progress {
    fn encode(&self, out: &mut Encoder<'_>) {
        out.head(&self.0);
    }

    fn decode(input: &Decoder) -> Result<Progress, WireError> {
        input.head().map(Progress)
    }
}

/// The frame that tells a node how far this one has synced.
pub(crate) fn frame(me: Incarnation, to: NodeId, synced: Lsn) -> Bytes {
    let body = Body::encode(&Progress(synced), &mut BytesMut::new()).expect("it fits");
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

/// Who says so, and how far it has synced.
pub(crate) fn read(frame: Bytes) -> Result<(Incarnation, Lsn), WireError> {
    let received = Received::decode(frame)?;
    let Progress(synced) = Progress::decode(&received.message)?;
    Ok((received.source, synced))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_back_and_told_from_a_lanes_frames() {
        let me = Incarnation { node: NodeId(5), start: Start(3) };
        let bytes = frame(me, NodeId(9), Lsn(300));
        assert!(is_of_link(&bytes));
        assert_eq!(read(bytes.clone()), Ok((me, Lsn(300))));
        let body = Body::encode(&Progress(Lsn(1)), &mut BytesMut::new()).expect("it fits");
        let other = Frame { lane: LaneId::OVERLAY, source: me, target: me, body };
        assert!(!is_of_link(&other.to_bytes()) && !is_of_link(&bytes[..7]));
        assert!(!is_of_keyspace(&other.to_bytes()) && !is_of_keyspace(&bytes));
        assert!(read(bytes.slice(..bytes.len() - 1)).is_err());
    }
}
