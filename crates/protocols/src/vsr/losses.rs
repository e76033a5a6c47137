//! Losses: what becomes of a group whose members have lost data together.
//!
//! A member that forgets gets the log back from its view's primary ([`super::recover`]). If that
//! has forgotten too, the others choose one; where they are too few for that but meet every
//! majority (two of four), those who have forgotten vote with them, and nothing is lost. If they
//! are fewer, what only those who forgot had acknowledged may be gone:
//! - `memory`: the group waits while a whole member is left, because that would be lost unseen.
//!   When all have forgotten, they begin empty; but for what the epoch began with, as long as who
//!   was removed by that must have it.
//! - `periodic`: each still has what it had synced. When all have been heard, they go on with the
//!   most that is left anywhere. What is gone was acknowledged by none but members that all lost
//!   it.
//!
//! Going on is a view change in which every member has a vote, and none may be missing. It ends the
//! epoch: the first entry of the new log makes the same nodes the members of the next one. So
//! whoever copies the log learns who they are, though the entry that once said so may be lost. The
//! entry says that something may be lost, and the configuration keeps which epoch began with that
//! last: whoever rests on what was acknowledged before knows that it may not be so any more.
//!
//! A member that has left the cluster, and is not heard any more, gives nothing back: it counts as
//! one that has lost all, and nobody waits for its vote. What only such members had is gone with
//! them. The view that starts needs a majority of all members to commit, whoever has left.
//!
//! Nobody outside has a vote, so a learner, or a server that was removed, may hold what is lost,
//! and places are counted anew. It is in an earlier epoch then. No two entries have the same place
//! and view; so where what it has committed differs from the log of a later epoch, or that log is
//! shorter, its own is of what was lost, and it begins anew as one that has nothing.

use super::action::{Context, Event};
use super::configuration::Configuration;
use super::keys::Head;
use super::log::entry::Entry;
use super::number::{Op, Position, ViewNumber};
use super::state::{Election, Install, Recovery, Replica, Standing, Status, Vote};
use super::views::pulse::Pulse;
use alloc::collections::{BTreeMap, BTreeSet};
use bytes::Bytes;
use quorate_kernel::effects::Release;
use quorate_kernel::ids::NodeId;
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::probe;
use quorate_kernel::storage::Durability;

/// The log that a view starts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// The member that has it.
    pub node: NodeId,
    /// Whether it is of an earlier view than some member's: an end of the epoch that is not known
    /// to be committed is left out, with all behind it.
    pub is_earlier: bool,
    /// Whether something that was acknowledged may be in no log.
    pub loses: bool,
}

/// The log that a view starts with: none while too few have voted. `me` comes first among equals;
/// of members that are gone for good no vote is waited for.
pub(super) fn choose(
    votes: &BTreeMap<NodeId, Vote>,
    (me, gone): (NodeId, &BTreeSet<NodeId>),
    (configuration, durability): (&Configuration, Durability),
) -> Option<Choice> {
    let by = |(node, vote): &(NodeId, Vote)| {
        let normal = if mutant!("dvc_by_op_only") { ViewNumber::default() } else { vote.normal };
        (normal, vote.end, *node == me)
    };
    let all = || votes.iter().map(|(node, vote)| (*node, *vote));
    let whole = || all().filter(|(_, vote)| vote.lost.is_none() || mutant!("lost_vote_counts"));
    let newest = whole().map(|(_, vote)| vote.normal).max();
    // Who has lost data takes part in no earlier view either. What it may have acknowledged is of
    // views before its loss: if one that started after that is known, nothing hangs on it.
    let counts = |vote: Vote| vote.lost.is_none_or(|since| newest.is_some_and(|it| since <= it));
    let count = all().filter(|(_, vote)| counts(*vote)).count().max(whole().count());
    let is_majority = votes.len() >= configuration.majority();
    if is_majority && count >= configuration.meeting() {
        let best = whole().max_by_key(by);
        return best.map(|(node, _)| Choice { node, is_earlier: false, loses: false });
    }
    let has_voted = |node: &NodeId| votes.contains_key(node) || gone.contains(node);
    let have_voted = configuration.members.iter().all(has_voted);
    // Without a majority nothing would be committed, and the log that was chosen may be too short.
    let may_start = is_majority && have_voted;
    if may_start && votes.values().any(|vote| vote.lacks_end) {
        // The members of the next epoch may have gone on already, and be whole.
        probe!("vsr/votes_without_an_end");
        return None;
    }
    if !may_start || (durability == Durability::Memory && newest.is_some()) {
        return None;
    }
    // Of the latest view nobody may have the whole log any more. What somebody knows to be
    // committed beyond what is left of that log is right all the same.
    let (longest, vote) = all().max_by_key(by)?;
    let (knows, known) = all().max_by_key(|one| (one.1.commit, by(one)))?;
    if known.commit <= vote.end {
        return Some(Choice { node: longest, is_earlier: false, loses: true });
    }
    // The rest of that log is of an earlier view. It stays: its members may have acknowledged it,
    // and a later view has gone on with it, and lost it. But an end of the epoch that is in it is
    // not the end of what was lost: the log would end with that, and nobody would know of a loss.
    let is_earlier = !mutant!("knows_more_than_is_committed");
    Some(Choice { node: knows, is_earlier, loses: true })
}

impl Replica {
    /// Whether the view that has begun can start only when every member votes.
    pub(super) fn is_voting_on_losses(&self) -> bool {
        let lost = self.election.votes.values().any(|vote| vote.lost.is_some());
        lost || self.head.lost.is_some()
    }

    /// Goes on with what is left once all have answered, if the others cannot go on without.
    pub(super) fn consider_losses(&mut self, cx: &mut Context<'_>) {
        let configuration = &self.head.configuration;
        let answers = &self.recovery.answers;
        let gone = self.gone(cx.now);
        let still = answers.iter().filter(|(node, _)| !gone.contains(*node));
        let whole = still.filter(|(_, (_, standing))| standing.is_whole()).count();
        let can_go_on = whole >= configuration.majority();
        let has_answered = |node: &NodeId| answers.contains_key(node) || gone.contains(node);
        if !self.others().iter().all(has_answered) || can_go_on {
            return;
        }
        let there = configuration.members.len() - gone.len();
        if there < configuration.majority() {
            return;
        }
        let loses = whole < configuration.meeting();
        if loses && whole > 0 && self.settings.durability == Durability::Memory {
            probe!("vsr/waits_for_a_whole_copy");
            return;
        }
        if loses && self.lacks_end() {
            // The members of the next epoch may have gone on already, and be whole.
            probe!("vsr/lost_a_change");
            return;
        }
        if loses && whole == 0 && self.is_held_by_the_removed() {
            probe!("vsr/waits_for_the_removed");
            return;
        }
        let others = configuration.members.len() - 1;
        let is_copying = self.install.as_ref().is_some_and(|install| install.may_come(others));
        if is_copying && !mutant!("goes_on_amid_a_copy") {
            // What is copied is left too.
            probe!("vsr/waits_for_a_copy");
            return;
        }
        self.go_on_with_what_is_left(loses, cx);
    }

    /// Whether an entry that ends this epoch, with other members, was in the log of this member,
    /// which has lost data, and is there no more.
    pub(super) fn lacks_end(&self) -> bool {
        self.head.is_closing && self.closing().is_none()
    }

    /// Whether what this epoch began with is not here, and who was removed must still have it: no
    /// majority of the members has told them that it is in the epoch. They go on telling the
    /// members of it, and are asked then.
    fn is_held_by_the_removed(&self) -> bool {
        let configuration = &self.head.configuration;
        let lacks = self.log.end() < configuration.since || self.install.is_some();
        let standings = self.recovery.answers.values().map(|(_, standing)| *standing);
        let held = standings.filter(|standing| *standing == Standing::Held).count();
        // Who is gone may have told nobody.
        let unheard = self.left.iter().filter(|node| !self.recovery.answers.contains_key(*node));
        let untold = held + unheard.count() + usize::from(self.head.is_held);
        let has_told = configuration.members.len() - untold >= configuration.majority();
        lacks && !has_told && !mutant!("begins_empty_beside_the_removed")
    }

    fn go_on_with_what_is_left(&mut self, loses: bool, cx: &mut Context<'_>) {
        probe!("vsr/goes_on_with_what_is_left");
        self.recovery = Recovery::default();
        if self.head.is_installing && !mutant!("goes_on_amid_a_copy") {
            // Nobody has the state that the log here follows.
            self.drop_all(cx);
            self.commit = Op(0);
            self.applied = Op(0);
        }
        if !mutant!("goes_on_amid_a_copy") {
            self.install = None;
        }
        self.asked = None;
        self.stage = None;
        self.head.has_forgotten = false;
        let view = self.head.view.next();
        self.head.lost.get_or_insert(view);
        if loses {
            cx.tell(Event::Lost);
        }
        self.status = Status::ViewChange;
        self.begin_view(view, cx);
    }

    /// The primary of a view that starts with what is left ends the epoch. A log that ends it
    /// already is that of the latest view, and lacks nothing: nothing follows the end of an epoch,
    /// and two logs that have it are equal up to it.
    pub(super) fn end_epoch_of_losses(&mut self, cx: &mut Context<'_>) {
        if !self.election.loses || self.closing().is_some() {
            return;
        }
        invariant!(self.known_primary() == Some(self.me), "its primary chooses a view's log");
        let members = self.head.configuration.members.clone();
        self.log.append(Entry::left(self.head.view, &members), cx.out);
        invariant!(self.closing().is_some(), "what is left ends its epoch");
    }

    /// Up to where the log may be told to anybody. What ends the epoch is told outside of the
    /// members by those alone who have begun the next one: the end that a loss makes can be lost
    /// too, and decided anew, where that epoch has begun in none of them. A learner would keep
    /// another epoch of the same number.
    pub(super) fn tellable(&self) -> Op {
        let is_early = mutant!("tells_an_end_that_may_be_lost") || !self.settings.may_forget();
        self.closing()
            .filter(|end| *end <= self.commit && !is_early)
            .map_or(self.commit, Op::before)
    }

    /// What something rests on that tells of this epoch: a loss can undo one that a loss has made,
    /// as long as it is durable nowhere.
    pub(super) fn as_durable_as_its_epoch(&self) -> Release {
        let configuration = &self.head.configuration;
        let may_be_undone = configuration.life == configuration.epoch;
        let is_early = !may_be_undone || mutant!("tells_an_end_that_may_be_lost");
        if is_early { Release::Early } else { Release::State }
    }

    /// Whether what is committed here was lost, as somebody says who is in this view and has
    /// executed so much: in a later epoch that is all of this one, and of those before.
    pub(super) fn holds_what_was_lost(&self, view: ViewNumber, commit: Op) -> bool {
        view.epoch > self.epoch() && commit < self.commit && !mutant!("lost_log_stays")
    }

    /// Drops the log and the state, for who is no member and owes nothing. Which epoch has begun
    /// stays known: who has forgotten it would found the group anew, or follow a member of an
    /// earlier epoch that has missed its end, and with others like it decide there.
    pub fn let_go(&mut self, cx: &mut Context<'_>) {
        invariant!(!self.is_member(), "a member keeps what it has");
        invariant!(!self.head.owes, "nobody needs what is dropped");
        if mutant!("lets_go_of_the_epoch") {
            return self.start_over(cx);
        }
        self.drop_all(cx);
        self.commit = Op(0);
        self.applied = Op(0);
        self.save(cx);
        invariant!(self.status == Status::Learner, "only members take part");
    }

    /// Whether nothing is here but which epoch has begun.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.status == Status::Learner && self.log.end() == Op(0) && self.install.is_none()
    }

    /// What is here was lost by those who go on: this node begins anew, as one that has nothing.
    pub(super) fn start_over(&mut self, cx: &mut Context<'_>) {
        probe!("vsr/starts_over");
        let owed = self.head.owes;
        self.step_down(cx);
        self.drop_all(cx);
        self.head = Head::none();
        self.status = Status::Learner;
        self.commit = Op(0);
        self.applied = Op(0);
        self.election = Election::default();
        self.recovery = Recovery::default();
        self.stage = None;
        self.asked = None;
        self.install = None;
        self.owes_ack = false;
        self.has_started = false;
        self.started.clear();
        self.copies.clear();
        self.pulse = Pulse::new(cx.now);
        self.save(cx);
        if owed {
            cx.tell(Event::Released);
        }
    }

    /// A copy has brought something of entries that would stand at the epoch's end or behind it.
    /// All of its pages were read in this epoch, so those entries are lost, and the state is worth
    /// nothing.
    pub(super) fn copy_anew(&mut self, cx: &mut Context<'_>) {
        probe!("vsr/copies_anew");
        self.head.is_installing = true;
        self.head.settled = Op(0);
        let nonce = self.next_nonce(cx);
        self.install = Some(Install::new(nonce));
    }

    /// Drops the log and the state, and what was to be copied into it.
    pub(super) fn drop_all(&mut self, cx: &mut Context<'_>) {
        self.install = None;
        self.asked = None;
        self.stage = None;
        self.head.is_installing = false;
        self.head.settled = Op(0);
        self.head.end = Op(0);
        self.log.reset(Position::default(), cx.out);
        let (machine, mut store) = cx.machine();
        let is_read = machine.begin_install(Op(0), &Bytes::new(), &mut store);
        invariant!(is_read, "every machine can be empty");
        machine.end_install(Op(0), &mut store);
    }
}
