//! The views of a world's groups, and what lies between two of them.

use quorate_kernel::ids::{GroupId, NodeId};
use quorate_kernel::view::{Change, Range, View, ViewId};

/// A view of the one group of a world.
pub fn view(version: u64, members: &[u64]) -> View {
    view_of(Range::ALL, version, members)
}

/// A view of the group that scripts know.
pub fn view_of(range: Range, version: u64, members: &[u64]) -> View {
    let id = ViewId { group: GroupId(1), version };
    View::new(id, range, members.iter().copied().map(NodeId).collect())
}

/// The change that makes one view of another.
pub fn change(old: &View, new: &View) -> Change {
    let lacking = |members: &[NodeId], other: &View| {
        members.iter().copied().find(|node| other.index_of(*node).is_none())
    };
    match (lacking(old.members(), new), lacking(new.members(), old)) {
        (Some(out), Some(into)) => Change::Replace { out, into },
        (Some(out), None) => Change::Shrink { out },
        (None, Some(into)) => Change::Grow { into },
        (None, None) => panic!("the members stay the same"),
    }
}
