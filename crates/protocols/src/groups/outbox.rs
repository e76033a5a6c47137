//! What the replicas of a turn send, put together: one frame to each recipient for all groups.
//!
//! What a group sends to its members stays one message for all of them, so that entries are written
//! once. Beats go to each host by itself, and share a frame with those of other groups.

use super::frames::{PARTS_MAX, tail_bytes, weight};
use crate::vsr;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::effects::{Effects, Recipients, Release};
use quorate_kernel::ids::{GroupId, Incarnation, NodeId, Start};
use quorate_kernel::limits::{FRAME_BYTES_MAX, HEADER_BYTES_USUAL, VSR_ENTRIES_BYTES_MAX};
use quorate_kernel::mutant;
use quorate_kernel::process::Process;

/// The most bytes that travel beside the heads of messages that go together. A message with more
/// goes alone: it fits a frame, but two of them need not.
const TAILS_BYTES_MAX: usize = 4 * VSR_ENTRIES_BYTES_MAX;

const _: () = assert!(TAILS_BYTES_MAX + HEADER_BYTES_USUAL < FRAME_BYTES_MAX);

/// When a frame may leave, the soonest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum When {
    Early,
    State,
    Lane,
}

type To = (When, Start, Arc<[NodeId]>);

/// Messages that go together.
#[derive(Debug, Default)]
struct Bundle {
    parts: Vec<(GroupId, vsr::Message)>,
    weight: usize,
    tail_bytes: usize,
}

/// What waits for the end of the turn.
#[derive(Debug, Default)]
pub struct Outbox {
    open: BTreeMap<To, Bundle>,
    full: Vec<(To, Bundle)>,
}

impl Outbox {
    /// Adds what a replica of a group sends.
    pub fn push(
        &mut self,
        group: GroupId,
        to: Recipients,
        message: vsr::Message,
        release: &Release,
    ) {
        let when = match release {
            // The replica says at each message why it promises nothing.
            Release::Early => When::Early,
            _ if mutant!("lane_acks_before_sync") => When::Early,
            // The log is protocol state; the machine's data may come later.
            Release::State => When::State,
            _ => When::Lane,
        };
        match to {
            Recipients::One(one) => {
                self.add((when, one.start, Arc::from([one.node])), group, message);
            }
            Recipients::Group(nodes) if message.is_beat() => {
                for node in nodes.iter() {
                    self.add((when, Start(0), Arc::from([*node])), group, message.clone());
                }
            }
            Recipients::Group(nodes) => self.add((when, Start(0), nodes), group, message),
        }
    }

    fn add(&mut self, to: To, group: GroupId, message: vsr::Message) {
        let (weight, tail_bytes) = (weight(&message), tail_bytes(&message));
        let bundle = self.open.entry(to.clone()).or_default();
        let is_long = bundle.tail_bytes + tail_bytes > TAILS_BYTES_MAX;
        let is_full = bundle.weight + weight > HEADER_BYTES_USUAL - 1
            || bundle.parts.len() == PARTS_MAX
            || (is_long && !mutant!("lane_bundles_without_bytes"));
        if is_full && !bundle.parts.is_empty() {
            self.full.push((to, core::mem::take(bundle)));
        }
        bundle.weight += weight;
        bundle.tail_bytes += tail_bytes;
        bundle.parts.push((group, message));
    }

    /// Takes everything: what goes together, to whom, and when it may leave.
    pub fn take(
        &mut self,
    ) -> impl Iterator<Item = (Recipients, Release, Vec<(GroupId, vsr::Message)>)> {
        let open = core::mem::take(&mut self.open);
        self.full.drain(..).chain(open).map(|((when, start, nodes), bundle)| {
            let to = match &nodes[..] {
                [node] => Recipients::One(Incarnation { node: *node, start }),
                _ => Recipients::Group(nodes),
            };
            let release = match when {
                // Each part promises nothing.
                When::Early => Release::Early,
                // Each part rests on protocol state alone.
                When::State => Release::State,
                When::Lane => Release::Lane,
            };
            (to, release, bundle.parts)
        })
    }

    /// Sends everything; what goes together is wrapped into a message of the lane.
    pub fn flush<P: Process>(
        &mut self,
        fx: &mut Effects<P>,
        wrap: impl Fn(Vec<(GroupId, vsr::Message)>) -> P::Message,
    ) {
        for (to, release, parts) in self.take() {
            match release {
                // Each part promises nothing.
                Release::Early => fx.send_early(to, wrap(parts)),
                Release::State => fx.send_after_state(to, wrap(parts)),
                _ => fx.send(to, wrap(parts)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serializable::lane::{Message, Serializable};
    use crate::vsr::{Entry, Epoch, Op, ViewNumber};
    use bytes::Bytes;
    use quorate_kernel::effects::Effect;
    use std::vec;

    /// What leaves, where so many groups prepare entries of so many bytes in one turn.
    fn sent(bytes: &[usize]) -> Vec<usize> {
        let (mut outbox, mut fx) = (Outbox::default(), Effects::<Serializable>::default());
        let to: Arc<[NodeId]> = [1, 2].map(NodeId).into();
        let view = ViewNumber::first(Epoch(1));
        for (group, bytes) in (1..).zip(bytes) {
            let entries = Vec::from([Entry::command(view, Bytes::from(vec![0; *bytes]))]);
            let message = vsr::Message::Prepare { view, from: Op(1), entries, commit: Op(0) };
            outbox.push(GroupId(group), (&to).into(), message, &Release::Early);
        }
        outbox.flush(&mut fx, Message::Log);
        let parts = |effect: Effect<Message, _>| match effect {
            Effect::Send { message: Message::Log(parts), .. } => parts.len(),
            _ => panic!("nothing else is sent"),
        };
        fx.drain().map(parts).collect()
    }

    #[test]
    fn large_entries_of_several_groups_share_no_frame() {
        assert_eq!(sent(&[100, 100, 100]), [3]);
        let half = TAILS_BYTES_MAX / 2;
        assert_eq!(sent(&[half, half, half]), [2, 1]);
        let large = 2 * TAILS_BYTES_MAX;
        assert_eq!(sent(&[100, large, 100, large]), [1, 1, 1, 1], "each goes alone");
    }
}
