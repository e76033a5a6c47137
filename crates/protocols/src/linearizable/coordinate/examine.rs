//! Who holds a group, and what keeps a host that leaves: asked of every member, and of that host.
//!
//! A quorum is not enough here. A host that has left a group is a source of what was complete in
//! its views (`views/former`), and one of the members that did not answer may be the newcomer that
//! needs it. So the host itself is asked: it keeps what it held until every member holds everything
//! (`views/maintain`), and its word covers all groups of the lane.
//!
//! That it holds nothing now is not enough either: it must not be taken in again. Three things see
//! to that.
//! - It has heard that it leaves, and so copies nothing ahead any more
//!   ([`Linearizable::on_learn`]). Nobody proposes a newcomer of whom nothing was heard.
//! - No member has accepted, or proposes, that it becomes a member of what follows the present
//!   view: what a majority of them has not accepted was not decided, and what none of them has
//!   accepted is not found by the next who proposes.
//! - No member owes it an invitation to a view that was decided.
//! - No member that has heard of the host recently, as of one that has copied the data, still
//!   believes that it takes part.
//!
//! A member that does not answer may have accepted such a proposal, so it is waited for. A quorum
//! is enough to tell who the members are: an answer ends with the silent ones named.

use super::coordinator::{Intent, Operation, Phase};
use crate::linearizable::group::Standing;
use crate::linearizable::message::{Message, Said, Stamp};
use crate::linearizable::views::conditions::recent;
use crate::linearizable::views::install::is_split;
use crate::linearizable::{Context, ENGINE, Linearizable};
use crate::quorum::{CrashVector, Replies};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::operation::Outcome;
use quorate_kernel::part::{Await, Awaited, Examination, Holds, Part};
use quorate_kernel::ring::Standing as RingStanding;
use quorate_kernel::time::{Span, Time};
use quorate_kernel::view::{Change, View, ViewId};

/// How long an answer waits for hosts that are not suspected, once a quorum has answered: they may
/// be far away.
const PATIENCE: Span = Span::secs(1);

/// What was said so far.
#[derive(Debug, Default)]
pub(crate) struct Examining {
    /// By the members.
    pub replies: Replies<Said>,
    /// By the host that leaves, if it is no member.
    leaver: Option<Said>,
}

impl Operation {
    /// The host that leaves, if it is to be asked and has not answered yet.
    pub fn silent_leaver(&self) -> Option<NodeId> {
        let (Intent::Examine { leaver, .. }, Phase::Examine(examining)) = (&self.ask, &self.phase)
        else {
            return None;
        };
        let is_asked = |node: &NodeId| self.view.index_of(*node).is_none();
        leaver.filter(is_asked).filter(|_| examining.leaver.is_none())
    }
}

impl Examining {
    /// The members that say of themselves that they have everything a read may rest on.
    fn complete(&self, view: &View, crashes: &CrashVector) -> Vec<NodeId> {
        let has_all = |said: &Said| matches!(said.standing, Standing::Ready | Standing::Gathering);
        let counted = self.replies.counted(view, crashes);
        counted.filter(|(_, said)| has_all(said)).map(|(from, _)| from.node).collect()
    }

    /// Whom the host that leaves must wait for.
    fn awaited(&self, view: &View, crashes: &CrashVector, leaver: Option<NodeId>) -> Vec<Awaited> {
        let Some(leaver) = leaver else { return Vec::new() };
        let is_member = view.index_of(leaver).is_some();
        let mut all = Vec::new();
        let own = match self.leaver {
            _ if is_member => None,
            None => Some(Await::Answer),
            Some(said) if said.stays => Some(Await::Hear),
            Some(said) if said.keeps => Some(Await::Release),
            Some(_) => None,
        };
        all.extend(own.map(|what| Awaited { node: leaver, what }));
        let is_kept = is_member || own.is_some();
        for &node in view.members() {
            let what = match self.replies.of(view, crashes, node) {
                None => Some(Await::Answer),
                Some(said) if said.brings => Some(Await::Refrain),
                // What the host keeps it keeps for them.
                Some(said) if is_kept && said.standing != Standing::Ready => Some(Await::Data),
                Some(_) => None,
            };
            all.extend(what.map(|what| Awaited { node, what }));
        }
        all
    }
}

impl Linearizable {
    /// An operator wants to know how this node stands in a group, and what keeps a host.
    pub(crate) fn on_examine(
        &mut self,
        asker: Incarnation,
        (op, view): (u64, ViewId),
        token: u64,
        leaver: Option<NodeId>,
        cx: &mut Context<'_>,
    ) {
        let stamp = self.stamp(view, token);
        let standing = self.group(view).map_or(Standing::Outside, |group| group.beat().standing);
        let said = Said {
            standing,
            brings: leaver.is_some_and(|node| self.may_bring(view, node, cx.now)),
            keeps: self.keeps_something(),
            stays: !self.is_leaving(cx.me.node),
        };
        let says_so = stamp.standing == Standing::Ready;
        let is_serving = self.group(view).is_some_and(|group| group.is_serving());
        invariant!(says_so == is_serving, "who says that it has all may show it");
        invariant!(said.keeps || !is_serving, "who is a member holds something");
        cx.fx.send(asker, Message::ExamineB { op, stamp, said });
    }

    /// Whether this node, a member, may yet bring about that another becomes one: it has accepted
    /// that, or drives it, or owes it an invitation, or has heard of the other recently and takes
    /// it for one that takes part.
    fn may_bring(&self, view: ViewId, node: NodeId, now: Time) -> bool {
        let Some(group) = self.group(view).filter(|it| it.view.index_of(node).is_none()) else {
            return false;
        };
        let brings = |change: &Change| change.newcomer() == Some(node);
        let has_accepted = group.record.acceptor.accepted().is_some_and(|(_, it)| brings(it));
        let running = group.running.as_ref();
        let is_known_to_leave = || self.is_leaving(node);
        has_accepted
            || group.record.owed.iter().any(|owed| owed.newcomer == node)
            || running.is_some_and(|running| running.proposer.possible().any(brings))
            || recent(group, node, now).is_some() && !is_known_to_leave()
    }

    /// Whether this node holds something of any group, or copies ahead. What a split has left is
    /// none of it: all members were complete when it happened, and the parts have the data.
    fn keeps_something(&self) -> bool {
        let mut groups = self.durable.groups.values();
        let has_kept = |group| self.kept_slots(group).next().is_some();
        groups.any(|group| !is_split(group) || has_kept(group.view.id.group))
    }

    /// Whether a node is known to leave, or to have left.
    pub(crate) fn is_leaving(&self, node: NodeId) -> bool {
        let host = self.volatile.ring.as_ref().and_then(|ring| ring.host(node));
        host.is_some_and(|host| host.standing != RingStanding::Up)
    }

    /// A member says how it stands, or the host that leaves does.
    pub(crate) fn on_examined(
        &mut self,
        from: Incarnation,
        op: u64,
        stamp: &Stamp,
        said: Said,
        cx: &mut Context<'_>,
    ) {
        let Some(operation) = self.volatile.operations.get_mut(op) else { return };
        let is_leaver = operation.silent_leaver() == Some(from.node);
        if !is_leaver && !self.accept(op, from, stamp, cx) {
            return;
        }
        let Some(operation) = self.volatile.operations.get_mut(op) else { return };
        let Phase::Examine(examining) = &mut operation.phase else { return };
        invariant!(matches!(operation.ask, Intent::Examine { .. }), "only an operator examines");
        if is_leaver {
            examining.leaver = Some(said);
        } else {
            let is_kept = examining.replies.keep(&operation.view, from, said);
            invariant!(is_kept, "a reply counts only if it is a member's");
        }
        self.advance_examination(op, false, cx);
    }

    /// Ends an examination for which a quorum has answered, though others have long not, or are
    /// suspected. Returns whether it was one.
    pub(crate) fn end_examination(&mut self, op: u64, cx: &mut Context<'_>) -> bool {
        let Some(operation) = self.volatile.operations.get_mut(op) else { return false };
        let Phase::Examine(examining) = &operation.phase else { return false };
        let ring = self.volatile.ring.as_ref();
        let has_answer = |node| {
            let crashes = &self.volatile.crashes;
            examining.replies.of(&operation.view, crashes, node).is_some()
        };
        let silent = operation.view.members().iter().copied().filter(|node| !has_answer(*node));
        let is_hopeless = silent
            .chain(operation.silent_leaver())
            .all(|node| ring.is_some_and(|ring| ring.is_suspected(node)));
        let is_late = cx.now >= operation.since + PATIENCE || is_hopeless;
        is_late && self.advance_examination(op, true, cx)
    }

    /// Ends an examination if its replies allow it; returns whether they do.
    fn advance_examination(&mut self, op: u64, is_late: bool, cx: &mut Context<'_>) -> bool {
        let Some(operation) = self.volatile.operations.get_mut(op) else { return false };
        let (Phase::Examine(examining), Intent::Examine { token, leaver }) =
            (&operation.phase, &operation.ask)
        else {
            return false;
        };
        let (view, crashes) = (&operation.view, &self.volatile.crashes);
        let complete = examining.complete(view, crashes);
        if complete.len() < view.majority() {
            return false;
        }
        let have_all_said = examining.replies.counted(view, crashes).count()
            == view.members().len()
            && operation.silent_leaver().is_none();
        let is_hasty = mutant!("drained_while_needed");
        if !have_all_said && !is_late && !is_hasty {
            return false;
        }
        let holds = |node| match complete.contains(&node) {
            true => Holds::Confirmed,
            false => Holds::Some,
        };
        let awaited = match is_hasty {
            true => Vec::new(),
            false => examining.awaited(view, crashes, *leaver),
        };
        let quorum = (ENGINE.quorum)(view.members().len());
        let part = Part { awaited, ..Part::of_group(view, quorum, holds) };
        let (parts, next) = (vec![part], view.range.after(*token));
        self.finish(op, Outcome::Examined(Box::new(Examination { parts, next })), cx);
        true
    }
}
