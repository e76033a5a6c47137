//! What the replicas of a turn send, put together: one frame to each recipient for all groups.
//!
//! What a group sends to its members stays one message for all of them, so that entries are written
//! once. Beats go to each host by itself, and share a frame with those of other groups.

use super::Serializable;
use super::message::{Message, PARTS_MAX, weight};
use crate::vsr;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::effects::{Effects, Recipients, Release};
use quorate_kernel::ids::{GroupId, Incarnation, NodeId, Start};
use quorate_kernel::limits::HEADER_BYTES_USUAL;
use quorate_kernel::mutant;

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
        let weight = weight(&message);
        let bundle = self.open.entry(to.clone()).or_default();
        let is_full =
            bundle.weight + weight > HEADER_BYTES_USUAL - 1 || bundle.parts.len() == PARTS_MAX;
        if is_full && !bundle.parts.is_empty() {
            self.full.push((to, core::mem::take(bundle)));
        }
        bundle.weight += weight;
        bundle.parts.push((group, message));
    }

    /// Sends everything.
    pub fn flush(&mut self, fx: &mut Effects<Serializable>) {
        let open = core::mem::take(&mut self.open);
        for ((when, start, nodes), bundle) in self.full.drain(..).chain(open) {
            let to = match &nodes[..] {
                [node] => Recipients::One(Incarnation { node: *node, start }),
                _ => Recipients::Group(nodes),
            };
            let message = Message::Log(bundle.parts);
            match when {
                // Each part promises nothing.
                When::Early => fx.send_early(to, message),
                // Each part rests on protocol state alone.
                When::State => fx.send_after_state(to, message),
                When::Lane => fx.send(to, message),
            }
        }
    }
}
