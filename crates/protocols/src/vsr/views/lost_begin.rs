//! An epoch that a loss has made, and whose begin is lost: its members have begun it, and lost
//! everything again. Others have not heard of it, and have nothing of the one before either.
//!
//! Nobody can tell them how it began, and in their own epoch they would wait for those for ever.
//! But what was lost makes the same nodes the members, so the number is all that they lack: with
//! that each is as one that was there, and has lost it. Then all meet in one epoch, and go on from
//! there ([`crate::vsr::losses`]).
//!
//! Who follows so has no vote there, though it may be the one that others need: who has the log of
//! that epoch could give it to this member, and who has the log of this one could go on with it
//! here. So a member asks all others, and follows only when each has said that it has neither, to a
//! question of the last second and nothing else since: who is in that epoch, and who is in this one
//! and was told of that, as itself. Where one is not heard it waits, as it would there.

use crate::vsr::action::{Context, Event};
use crate::vsr::configuration::Configuration;
use crate::vsr::message::Message;
use crate::vsr::number::{Op, ViewNumber};
use crate::vsr::state::{Election, EntriesRequest, Recovery, Replica, Status};
use crate::vsr::timer::ASK_AGAIN;
use crate::vsr::views::pulse::Pulse;
use quorate_kernel::effects::Release;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::probe;
use quorate_kernel::time::{Span, Time};

/// For so long it counts what a member has told: it may get the log back.
const TOLD_KEPT: Span = Span(10 * ASK_AGAIN.0);

impl Replica {
    /// A member asks for entries, and lacks how an epoch began that has begun. If nothing of that
    /// is here, nor of this epoch, it is told so at once, and asks somebody else then. Whether no
    /// entries are to be told.
    pub(crate) fn tells_lost_begin(
        &self,
        to: NodeId,
        (nonce, view): (u64, ViewNumber),
        cx: &mut Context<'_>,
    ) -> bool {
        let is_later = view.epoch < self.epoch();
        let lacks_begin = self.commit < self.head.configuration.since;
        let known = if is_later {
            Some(&self.head.configuration).filter(|_| lacks_begin)
        } else {
            let is_same = view.epoch == self.epoch() && !mutant!("asks_within_its_epoch_in_vain");
            self.told_latest(cx.now).filter(|_| is_same)
        };
        let Some(configuration) = known else { return false };
        // Somebody may be about to give it the log.
        let has_asked = cx.now - self.pulse.begun > ASK_AGAIN;
        let may_tell = configuration.contains(to) && !mutant!("lost_begin_is_silent");
        if self.has_nothing_to_tell() && has_asked && may_tell {
            let configuration = configuration.clone();
            cx.send(to, Message::EpochWithoutLog { nonce, configuration }, Release::State);
            return true;
        }
        is_later
    }

    /// A later epoch has begun, and who says so has lost what it began with.
    pub(crate) fn on_epoch_without_log(
        &mut self,
        from: Incarnation,
        nonce: u64,
        configuration: Configuration,
        cx: &mut Context<'_>,
    ) {
        let is_asked = |asked: &EntriesRequest| asked.nonce == nonce && asked.source == from.node;
        let Some(asked) = self.asked.take_if(|asked| is_asked(asked)) else { return };
        invariant!(from.node != self.me, "no node asks itself");
        // It may have been on its way for long: it is no newer than its question.
        let told = if mutant!("old_tellings_are_new") { cx.now } else { asked.at };
        self.recovery.without_log.insert(from.node, (configuration, told));
        let (epoch, members) = (self.epoch(), &self.head.configuration.members);
        // Others may have gone on without one that has left.
        let is_other = |node: &NodeId| members.contains(node) && !self.left.contains(node);
        self.recovery.without_log.retain(|node, (configuration, at)| {
            is_other(node) && configuration.epoch > epoch && cx.now - *at < TOLD_KEPT
        });
        invariant!(self.recovery.without_log.len() <= self.others().len(), "one of each member");
        let gone = self.gone(cx.now);
        let has_none =
            |node: &NodeId| self.recovery.without_log.contains_key(node) || gone.contains(node);
        let others = self.others();
        let mut unheard = others.iter().copied().filter(|node| !has_none(node)).peekable();
        if unheard.peek().is_none() || mutant!("follows_the_first") {
            return self.consider_following(cx);
        }
        // Another one may have what this one lacks.
        if let Some(node) = unheard.find(|node| *node != from.node && !self.left.contains(node)) {
            self.ask(node, cx);
        }
    }

    /// The latest epoch of those that were told of lately.
    fn told_latest(&self, now: Time) -> Option<&Configuration> {
        let told = self.recovery.without_log.values().filter(|(_, at)| now - *at < TOLD_KEPT);
        told.map(|(configuration, _)| configuration).max_by_key(|it| it.epoch)
    }

    /// Nobody has the log of this epoch, nor of the latest that has begun.
    fn consider_following(&mut self, cx: &mut Context<'_>) {
        let Some(latest) = self.told_latest(cx.now) else { return };
        let is_of_loss = latest.life == latest.epoch;
        let is_same = latest.members == self.head.configuration.members;
        if is_of_loss && is_same && self.has_nothing_to_tell() {
            self.follow_without_log(latest.clone(), cx);
        }
    }

    /// Whether nothing is left here of what its members had, nor is on its way: the replica has not
    /// voted with anything else, and acknowledged nothing since.
    fn has_nothing_to_tell(&self) -> bool {
        let is_lost = self.status == Status::Recovering
            || (self.status == Status::ViewChange && self.head.lost.is_some());
        let others = self.others().len();
        let is_copying = self.install.as_ref().is_some_and(|install| install.may_come(others));
        let is_fetching = self.stage.is_some() || self.recovery.source.is_some();
        is_lost && self.log.end() == Op(0) && !is_copying && !is_fetching
    }

    /// Takes its place in a later epoch as one that has lost its log. Nobody has it, nor that of
    /// this one: this is over, as a majority has executed its end.
    fn follow_without_log(&mut self, configuration: Configuration, cx: &mut Context<'_>) {
        probe!("vsr/follows_without_log");
        invariant!(self.commit == Op(0), "nothing is left of this epoch");
        // Nobody has answered who could give a copy.
        self.drop_all(cx);
        self.head.view = ViewNumber::first(configuration.epoch);
        self.head.configuration = configuration;
        self.head.has_forgotten = true;
        // How this epoch has ended is known.
        self.head.is_closing = false;
        self.head.is_held = false;
        self.status = Status::Recovering;
        self.election = Election::default();
        self.recovery = Recovery::default();
        self.has_started = false;
        self.started.clear();
        self.pulse = Pulse::new(cx.now);
        cx.tell(Event::Members(self.head.configuration.clone()));
        self.save(cx);
        self.tick_recovering(cx);
        invariant!(self.is_member(), "the same nodes are its members");
    }
}
