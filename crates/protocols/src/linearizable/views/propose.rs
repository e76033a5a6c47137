//! Reconfiguration: the node that is closest to a range proposes what the ring asks for, and every
//! member votes (CATS §4.1).
//!
//! One change of a group at a time: the next is not proposed before every member that is not
//! suspected holds all data of the present view. Otherwise two replacements in a row could leave a
//! group in which nobody does, although no majority was ever lost.

use crate::linearizable::group::{Group, Heard, Standing};
use crate::linearizable::message::Message;
use crate::linearizable::refill::gather;
use crate::linearizable::timer::Timer;
use crate::linearizable::{Context, Linearizable};
use crate::placement;
use crate::reconfigure::{self, Proposer, Rounds, Step, backoff};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::invariant;
use quorate_kernel::limits::RECONFIGURES_MAX;
use quorate_kernel::mutant;
use quorate_kernel::probe;
use quorate_kernel::ring::{Closing, Ring};
use quorate_kernel::time::{Span, Time};
use quorate_kernel::view::{Change, View, ViewId};

/// How many groups one node moves at once.
const MOVES_MAX: usize = 8;
/// How recent a peer's word must be.
const HEARD_WITHIN: Span = Span::secs(5);

/// A proposal under way.
#[derive(Debug)]
pub(crate) struct Running {
    pub proposer: Proposer,
    alarm: Time,
    attempts: u32,
}

impl Group {
    /// Whether what this node proposes, if anything, follows the view that it has installed.
    fn proposes_next(&self) -> bool {
        let running = self.running.as_ref();
        running.is_none_or(|running| running.proposer.view().id == self.view.id)
    }
}

/// Messages of several groups, one frame for each node.
#[derive(Default)]
pub(crate) struct Outbox(BTreeMap<NodeId, Vec<reconfigure::Message>>);

impl Outbox {
    fn push(&mut self, to: &[NodeId], message: reconfigure::Message) {
        for node in to {
            self.0.entry(*node).or_default().push(message);
        }
    }

    /// A proposer's messages promise nothing of this node: what is decided rests on what a majority
    /// holds.
    fn send(self, cx: &mut Context<'_>) {
        for (node, messages) in self.0 {
            for part in messages.chunks(RECONFIGURES_MAX) {
                cx.fx.send_early(node, Message::Reconfigure(part.to_vec()));
            }
        }
    }
}

impl Linearizable {
    /// Proposes what the ring asks for in every group that is this node's to change.
    pub(crate) fn propose_all(&mut self, cx: &mut Context<'_>) {
        let Some(ring) = self.volatile.ring.clone() else { return };
        if ring.closing != Closing::No {
            // Hosts that end now are no reason to change a group: they come back.
            return;
        }
        let mut outbox = Outbox::default();
        let moving = |group: &&Group| group.running.is_some();
        let mut moves = self.durable.groups.values().filter(moving).count();
        let mut last = None;
        while let Some(view) = self.group_after(last).filter(|_| moves < MOVES_MAX) {
            last = Some(view.group);
            moves += usize::from(self.propose(view, &ring, &mut outbox, cx));
        }
        outbox.send(cx);
        self.arm_proposals(cx);
    }

    /// Proposes the next change of a group, if there is one and its time has come.
    fn propose(
        &mut self,
        id: ViewId,
        ring: &Ring,
        outbox: &mut Outbox,
        cx: &mut Context<'_>,
    ) -> bool {
        let (me, replicas) = (cx.me.node, self.settings.replicas);
        let (settle, maintain) = (self.settings.pace.settle, self.settings.pace.maintain);
        let ring_at = self.volatile.ring_at;
        let Some(group) = self.group_mut(id) else { return false };
        if !group.is_serving() || group.running.is_some() {
            return false;
        }
        let view = Arc::clone(&group.view);
        let is_mine = placement::proposer(&view, ring) == Some(me);
        let change = is_mine.then(|| placement::next_change(&view, ring, replicas)).flatten();
        let change = match change {
            // A member without its data would look for it in vain: once the group is split, those
            // who have left let go of theirs. If it stays away, it is replaced first.
            Some(Change::Split { .. }) if !all_are_complete(group, &view, me) => {
                placement::next_member(&view, ring, replicas)
            }
            change => change,
        };
        let Some(change) = change else {
            group.wished = None;
            return false;
        };
        let since = match group.wished {
            Some((wished, since)) if wished == change => since,
            _ => cx.now,
        };
        group.wished = Some((change, since));
        if since == cx.now {
            group.taught = None;
        }
        let is_forced = change.leaver().is_some_and(|node| ring.is_suspected(node));
        // A suspicion may be wrong; moving data for a hiccup is dear. What was planned waits until
        // the ring has come to rest, and not again for each step on the way.
        let due = match is_forced {
            true => since + settle,
            false => since.min(ring_at) + Span(settle.0 / 10),
        };
        let is_safe = gather::may_follow(group, &view, &change, me, cx.now);
        if !is_safe || !may_change(group, &view, ring, me, cx.now) {
            return false;
        }
        if cx.now < due {
            self.maintain_at(due, cx);
            return false;
        }
        if let Some(newcomer) = change.newcomer()
            && !may_come(group, newcomer, is_forced, cx.now)
        {
            if group.taught.is_none_or(|taught| cx.now >= taught + maintain) {
                group.taught = Some(cx.now);
                let (view, known) = (View::clone(&view), group.record.known());
                // A wish promises nothing.
                cx.fx.send_early(newcomer, Message::Learn { view, known });
            }
            return false;
        }
        self.begin_proposal(id, change, outbox, cx)
    }

    fn begin_proposal(
        &mut self,
        id: ViewId,
        change: Change,
        outbox: &mut Outbox,
        cx: &mut Context<'_>,
    ) -> bool {
        let me = cx.me;
        let rounds = self.volatile.rounds.get_or_insert_with(|| Rounds::new(me));
        let Some(group) = self.durable.groups.get_mut(&id.group) else { return false };
        let Some((proposer, message)) = Proposer::begin(rounds, Arc::clone(&group.view), change)
        else {
            return false;
        };
        probe!("linearizable/proposed");
        outbox.push(group.view.members(), message);
        let alarm = cx.now + backoff(0, cx.rng);
        group.running = Some(Running { proposer, alarm, attempts: 0 });
        true
    }

    /// Repeats the questions of proposals whose wait is over.
    pub(crate) fn on_propose_timer(&mut self, cx: &mut Context<'_>) {
        if self.volatile.is_closing() {
            return;
        }
        let mut outbox = Outbox::default();
        let me = cx.me;
        let rounds = self.volatile.rounds.get_or_insert_with(|| Rounds::new(me));
        for group in self.durable.groups.values_mut() {
            let Some(running) = &mut group.running else { continue };
            if running.alarm <= cx.now {
                running.attempts += 1;
                running.alarm = cx.now + backoff(running.attempts, cx.rng);
                let message = running.proposer.retry(rounds);
                outbox.push(running.proposer.view().members(), message);
            }
        }
        outbox.send(cx);
        self.arm_proposals(cx);
    }

    fn arm_proposals(&self, cx: &mut Context<'_>) {
        let running = self.durable.groups.values().filter_map(|group| group.running.as_ref());
        if let Some(first) = running.map(|running| running.alarm).min() {
            cx.fx.arm(Timer::Propose, first);
        }
    }

    /// Reconfiguration messages of a peer; the answers to all of them leave together, when all
    /// promises among them are durable.
    pub(crate) fn on_reconfigure(
        &mut self,
        from: Incarnation,
        messages: Vec<reconfigure::Message>,
        cx: &mut Context<'_>,
    ) {
        let (mut replies, mut outbox) = (Vec::new(), Outbox::default());
        let asked = messages.len();
        for message in messages {
            use reconfigure::Message as M;
            match message {
                M::P1A { .. } | M::P2A { .. } => replies.extend(self.vote(&message, cx)),
                M::P3A { view, change } => {
                    self.on_decided(from, view, change, cx);
                    if let Some(group) = self.group(view) {
                        let installed = group.installed().id;
                        replies.push(M::P3B { view, installed });
                    }
                }
                M::P1B(reply) => self.step(from, reply.view, &mut outbox, cx, |proposer| {
                    proposer.on_promise(from, &reply)
                }),
                M::P2B(reply) => self.step(from, reply.view, &mut outbox, cx, |proposer| {
                    proposer.on_accepted(from, &reply)
                }),
                M::P3B { view, installed } => self.step(from, view, &mut outbox, cx, |proposer| {
                    proposer.on_installed(from, view, installed)
                }),
            }
        }
        invariant!(replies.len() <= asked, "a question is answered once");
        let mut groups = self.durable.groups.values();
        invariant!(groups.all(Group::proposes_next), "what is proposed follows the installed view");
        for part in replies.chunks(RECONFIGURES_MAX) {
            // Votes rest on protocol state alone.
            cx.fx.send_after_state(from, Message::Reconfigure(part.to_vec()));
        }
        outbox.send(cx);
        self.arm_proposals(cx);
    }

    /// A member votes, whether its data is complete or not.
    fn vote(
        &mut self,
        message: &reconfigure::Message,
        cx: &mut Context<'_>,
    ) -> Option<reconfigure::Message> {
        use reconfigure::Message as M;
        let group = self.group_mut(message.view())?;
        let installed = group.installed().clone();
        installed.index_of(cx.me.node)?;
        let acceptor = &mut group.record.acceptor;
        let before = acceptor.promised();
        let (reply, has_changed) = match *message {
            M::P1A { view, ballot } => {
                let (reply, has_changed) = acceptor.on_prepare(&installed, view, ballot);
                (M::P1B(reply), has_changed)
            }
            M::P2A { view, ballot, change } => {
                let (reply, has_changed) = acceptor.on_accept(&installed, view, ballot, change);
                (M::P2B(reply), has_changed)
            }
            _ => return None,
        };
        invariant!(acceptor.promised() >= before, "a promise never falls");
        if has_changed {
            Self::persist(group, cx);
        }
        Some(reply)
    }

    /// The proposer of a group takes a reply.
    fn step(
        &mut self,
        from: Incarnation,
        view: ViewId,
        outbox: &mut Outbox,
        cx: &mut Context<'_>,
        take: impl FnOnce(&mut Proposer) -> Step,
    ) {
        let Some(group) = self.group_mut(view) else { return };
        let Some(running) = &mut group.running else { return };
        let members: Vec<NodeId> = running.proposer.view().members().into();
        match take(&mut running.proposer) {
            Step::Nothing => {}
            Step::Send(message) => {
                running.alarm = cx.now + backoff(0, cx.rng);
                outbox.push(&members, message);
            }
            Step::Decided(change) => {
                running.alarm = cx.now + backoff(0, cx.rng);
                outbox.push(&members, reconfigure::Message::P3A { view, change });
            }
            Step::Installed => group.running = None,
            Step::Outpaced { .. } => {
                group.running = None;
                let view = group.view.id;
                // A question promises nothing.
                cx.fx.send_early(from, Message::DecisionsA { view });
            }
            Step::Refused { .. } => {
                running.attempts += 1;
                running.alarm = cx.now + backoff(running.attempts, cx.rng);
            }
        }
    }
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
fn may_change(group: &Group, view: &View, ring: &Ring, me: NodeId, now: Time) -> bool {
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
fn may_come(group: &Group, newcomer: NodeId, is_forced: bool, now: Time) -> bool {
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
    use quorate_kernel::ids::Start;
    use quorate_kernel::view::Range;

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
