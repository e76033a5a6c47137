//! Tests of the parts together: traps of the protocol, and random schedules.

mod model;
mod random;
mod traps;

use super::Ballot;
use quorate_kernel::ids::{GroupId, Incarnation, NodeId, Start};
use quorate_kernel::view::{Change, Range, View, ViewId};
use std::sync::Arc;

pub(super) fn incarnation(node: u64) -> Incarnation {
    Incarnation { node: NodeId(node), start: Start(1) }
}

pub(super) fn ballot(round: u64, node: u64) -> Ballot {
    Ballot { round, proposer: incarnation(node) }
}

pub(super) fn view(version: u64, members: &[u64]) -> Arc<View> {
    let id = ViewId { group: GroupId(7), version };
    Arc::new(View::new(id, Range::ALL, members.iter().copied().map(NodeId).collect()))
}

pub(super) fn replace(out: u64, into: u64) -> Change {
    Change::Replace { out: NodeId(out), into: NodeId(into) }
}
