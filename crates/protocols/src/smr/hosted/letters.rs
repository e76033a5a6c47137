//! What replicas of partitions say to each other in a turn, put together.

use super::action::Context;
use super::frames::frames;
use super::message::Message;
use crate::smr::partitioned::{self, Layout, Machine, PartitionId, ReplicaId};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::effects::Recipients;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::mutant;

/// About how many bytes of objects go with one signal, if it is not one object that has more: what
/// a command reads may be more than a frame holds.
const SIGNAL_BYTES_MAX: usize = if cfg!(test) { 64 } else { 1024 * 1024 };
/// How many messages one frame has, and about how many bytes, if it is not one message alone.
const FRAME_MAX: (usize, usize) = (256, 2 * 1024 * 1024);

/// For whom something is: a partition, one host of it or all, and whether it rests on the disk.
type To = (PartitionId, Option<Incarnation>, bool);

/// What waits for the end of the turn.
#[derive(Debug)]
pub(super) struct Letters<M: Machine>(BTreeMap<To, Vec<partitioned::Message<M>>>);

impl<M: Machine> Letters<M> {
    pub fn new() -> Letters<M> {
        Letters(BTreeMap::new())
    }

    /// To all replicas of a partition.
    pub fn send(&mut self, to: PartitionId, message: partitioned::Message<M>) {
        self.add((to, None), message);
    }

    /// To one replica.
    pub fn tell(&mut self, to: ReplicaId, message: partitioned::Message<M>) {
        self.add((to.partition, Some(to.incarnation)), message);
    }

    fn add(
        &mut self,
        (to, one): (PartitionId, Option<Incarnation>),
        message: partitioned::Message<M>,
    ) {
        // That something is released rests on all that was written before. What else is said
        // follows from what rings have decided, whatever becomes of this host.
        let is_released = matches!(message, partitioned::Message::Released { .. });
        let rests = is_released && !mutant!("partitions_release_before_sync");
        let letters = self.0.entry((to, one, rests)).or_default();
        match message {
            partitioned::Message::Signal(signal) => {
                let pieces = signal.pieces(SIGNAL_BYTES_MAX);
                letters.extend(pieces.map(partitioned::Message::Signal));
            }
            message => letters.push(message),
        }
    }

    /// Sends everything.
    pub fn flush(&mut self, layout: &Layout, cx: &mut Context<'_, M>) {
        for ((to, one, rests), messages) in core::mem::take(&mut self.0) {
            let members: Vec<NodeId> = layout.members(to).collect();
            let recipients: Recipients = match (one, &members[..]) {
                (Some(one), _) => one.into(),
                (None, _) => Recipients::from(&Arc::<[NodeId]>::from(members)),
            };
            for messages in frames(messages, FRAME_MAX) {
                let message = Message::Peers { to, messages };
                if rests {
                    cx.send(recipients.clone(), message);
                } else {
                    cx.send_early(recipients.clone(), message);
                }
            }
        }
    }
}
