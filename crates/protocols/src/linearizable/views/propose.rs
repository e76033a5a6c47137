//! Reconfiguration: the node that is closest to a range proposes what the ring asks for, and every
//! member votes (CATS §4.1).
//!
//! One change of a group at a time: the next is not proposed before every member that is not
//! suspected holds all data of the present view. Otherwise two replacements in a row could leave a
//! group in which nobody does, although no majority was ever lost.

use super::conditions::{all_are_complete, is_within_reach, may_change, may_come};
use crate::linearizable::group::Group;
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
use quorate_kernel::probe;
use quorate_kernel::ring::{Closing, Ring};
use quorate_kernel::time::{Span, Time};
use quorate_kernel::view::{Change, View, ViewId};

/// How many groups one node moves at once; of those whose majority is suspected as many again.
/// These may wait for ever, and the others need not wait with them.
const MOVES_MAX: usize = 8;

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

/// How many groups this node moves.
#[derive(Default)]
struct Moves {
    /// Those whose majority is there.
    within_reach: usize,
    /// Those whose majority is suspected.
    out_of_reach: usize,
}

impl Moves {
    /// How many are like a group of this view.
    fn like(&mut self, view: &View, ring: &Ring) -> &mut usize {
        match is_within_reach(view, ring) {
            true => &mut self.within_reach,
            false => &mut self.out_of_reach,
        }
    }

    fn have_room(&self) -> bool {
        self.within_reach.min(self.out_of_reach) < MOVES_MAX
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
        let mut moves = Moves::default();
        for running in self.durable.groups.values().filter_map(|group| group.running.as_ref()) {
            *moves.like(running.proposer.view(), &ring) += 1;
        }
        let mut last = None;
        while let Some(view) = self.group_after(last).filter(|_| moves.have_room()) {
            last = Some(view.group);
            let Some(group) = self.group(view) else { continue };
            let count = moves.like(&group.view, &ring);
            if *count < MOVES_MAX {
                *count += usize::from(self.propose(view, &ring, &mut outbox, cx));
            }
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
