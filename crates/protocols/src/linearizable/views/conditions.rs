//! When a group may change: who must be there, and who must hold all data.

use crate::linearizable::group::{Group, Heard, Standing};
use quorate_kernel::ids::NodeId;
use quorate_kernel::mutant;
use quorate_kernel::ring::Ring;
use quorate_kernel::time::{Span, Time};
use quorate_kernel::view::View;

/// How recent a peer's word must be.
const HEARD_WITHIN: Span = Span::secs(5);

/// How many members of a view are suspected, or have left the cluster.
pub(crate) fn suspected(view: &View, ring: &Ring) -> usize {
    view.members().iter().filter(|node| ring.is_suspected(**node)).count()
}

/// Whether a majority of a view is not suspected. Without one nothing is decided, unless the
/// suspicion is wrong: what is proposed waits for those that are away.
pub(crate) fn is_within_reach(view: &View, ring: &Ring) -> bool {
    let rest = view.members().len() - suspected(view, ring);
    rest >= view.majority() || mutant!("moves_out_of_reach")
}

/// Whether every other member has said, however long ago, that it holds all data of the view.
pub(crate) fn all_are_complete(group: &Group, view: &View, me: NodeId) -> bool {
    let mut others = view.members().iter().filter(|node| **node != me);
    others.all(|node| has_been_complete(group, view, *node))
}

/// Whether a member has said, however long ago, that it holds all data of the view.
fn has_been_complete(group: &Group, view: &View, node: NodeId) -> bool {
    let heard = group.heard.get(&node).filter(|heard| heard.version == view.id.version);
    heard.is_some_and(|heard| heard.standing == Standing::Ready)
}

/// Whether every other member that is not suspected holds all data of the present view, and a
/// majority of all members does.
pub(crate) fn may_change(group: &Group, view: &View, ring: &Ring, me: NodeId, now: Time) -> bool {
    let is_member = |node: NodeId| view.index_of(node).is_some();
    let mut owed = group.record.owed.iter().filter(|owed| is_member(owed.newcomer));
    if !owed.all(|owed| ring.is_suspected(owed.newcomer)) {
        return false;
    }
    // A newcomer waits for as many sources that hold all data, or half of them where the view is
    // even ([`gather`]); in a group of two the member that left may be the only other one, and
    // would begin anew if it were chosen again.
    let is_complete = |node: &&NodeId| match **node == me {
        true => group.is_whole() || mutant!("changes_before_gathered"),
        false => has_been_complete(group, view, **node),
    };
    if view.members().iter().filter(is_complete).count() < view.majority() {
        return false;
    }
    let mut others =
        view.members().iter().filter(|node| **node != me && !ring.is_suspected(**node));
    others.all(|node| {
        recent(group, *node, now).is_some_and(|heard| {
            heard.version == view.id.version && heard.standing == Standing::Ready
        })
    })
}

/// Whether a node has copied the data ahead, or says that it cannot. Where a member is missing, its
/// place is taken before, but by nobody who does not answer: who has just started does not know who
/// is dead.
pub(crate) fn may_come(group: &Group, newcomer: NodeId, is_forced: bool, now: Time) -> bool {
    let heard = recent(group, newcomer, now);
    let is_done = |heard: &Heard| matches!(heard.standing, Standing::Learned | Standing::Outside);
    heard.is_some_and(|heard| is_forced || is_done(heard))
}

/// What a peer said of itself, if that is not long ago.
pub(crate) fn recent(group: &Group, node: NodeId, now: Time) -> Option<&Heard> {
    group.heard.get(&node).filter(|heard| now < heard.at + HEARD_WITHIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linearizable::Linearizable;
    use crate::linearizable::group::Status;
    use crate::linearizable::keys::Slot;
    use crate::linearizable::message::Known;
    use alloc::vec;
    use alloc::vec::Vec;
    use quorate_kernel::ids::Start;
    use quorate_kernel::view::{Range, ViewId};

    /// A newcomer of an even view may hear half of its members, which is enough only where a
    /// majority has gathered, whoever proposes the change.
    #[test]
    fn nobody_changes_an_even_view_before_a_majority_has_gathered() {
        let view = View::new(ViewId::default(), Range::ALL, vec![NodeId(1), NodeId(2)]);
        let ring = Ring::new(1, Vec::new());
        let may_change = |status, standing| {
            let record = Linearizable::newborn(view.clone(), status, Slot::default());
            let mut group = Group::new(record);
            let (start, version) = (Start(1), view.id.version);
            let heard = Heard { start, version, standing, known: Known::default(), at: Time(0) };
            group.heard.insert(NodeId(2), heard);
            may_change(&group, &view, &ring, NodeId(1), Time(0))
        };
        assert!(may_change(Status::Ready, Standing::Ready));
        assert!(!may_change(Status::Ready, Standing::Gathering));
        assert!(!may_change(Status::Gathering, Standing::Ready), "the proposer itself");
    }
}
