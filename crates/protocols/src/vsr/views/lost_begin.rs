//! An epoch that a loss has made, and whose begin is lost: its members have begun it, and lost
//! everything again. Others have not heard of it, and have nothing of the one before either.
//!
//! Nobody can tell them how it began, and in their own epoch they would wait for those for ever. But
//! what was lost makes the same nodes the members, so the number is all that they lack: with that
//! each is as one that was there, and has lost it. Then all meet in one epoch, and go on from there
//! ([`crate::vsr::losses`]).
//!
//! Who follows so has no vote there, though it may be the one that others need: who has the log of
//! that epoch could give it to this member, and who has the log of this one could go on with it
//! here. So a member asks all others first, and follows only when each has told it that it has
//! neither, as nothing new begins in any epoch before all have said so. Where one is not heard it
//! waits, as it would there.

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
use quorate_kernel::time::Span;

/// For so long it counts what a member has told: it may get the log back.
const TOLD_KEPT: Span = Span(5 * ASK_AGAIN.0);

impl Replica {
    /// A member of an earlier epoch asks how this one began, and that is lost here. It is told so at
    /// once: it asks somebody else then.
    pub(crate) fn tell_lost_begin(&self, to: NodeId, nonce: u64, cx: &mut Context<'_>) {
        let configuration = self.head.configuration.clone();
        let may_tell = configuration.contains(to) && !mutant!("lost_begin_is_silent");
        // Who fetches the log, or a copy of the state, will be able to tell it.
        let has_none = self.recovery.source.is_none() && self.install.is_none();
        if self.head.has_forgotten && has_none && may_tell {
            cx.send(to, Message::EpochWithoutLog { nonce, configuration }, Release::State);
        }
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
        if self.asked.take_if(|asked| is_asked(asked)).is_none() {
            return;
        }
        invariant!(from.node != self.me, "no node asks itself");
        self.recovery.without_log.insert(from.node, (configuration, cx.now));
        let (epoch, members) = (self.epoch(), &self.head.configuration.members);
        // Others may have gone on without one that has left.
        let is_other = |node: &NodeId| members.contains(node) && !self.left.contains(node);
        self.recovery.without_log.retain(|node, (configuration, at)| {
            is_other(node) && configuration.epoch > epoch && cx.now - *at < TOLD_KEPT
        });
        invariant!(self.recovery.without_log.len() <= self.others().len(), "one of each member");
        match self.unheard_of_log(cx) {
            // Another one may have what this one lacks.
            Some(node) => self.ask(node, cx),
            None => self.consider_following(cx),
        }
    }

    /// A member that has not said that it has nothing of this epoch, nor of the one that has begun.
    fn unheard_of_log(&self, cx: &Context<'_>) -> Option<NodeId> {
        let gone = self.gone(cx.now);
        let without_log = |node: &NodeId| self.recovery.without_log.contains_key(node);
        let has_forgotten = |node: &NodeId| {
            let answer = self.recovery.answers.get(node);
            answer.is_some_and(|(_, standing)| !standing.is_whole())
        };
        let has_none =
            |node: &NodeId| without_log(node) || has_forgotten(node) || gone.contains(node);
        let others = self.others();
        others.iter().copied().find(|node| !has_none(node) && !mutant!("follows_the_first"))
    }

    /// Nobody has the log of this epoch, nor of the latest that has begun.
    fn consider_following(&mut self, cx: &mut Context<'_>) {
        let told = self.recovery.without_log.values().map(|(configuration, _)| configuration);
        let Some(latest) = told.max_by_key(|configuration| configuration.epoch) else { return };
        let is_of_loss = latest.life == latest.epoch;
        let is_same = latest.members == self.head.configuration.members;
        if is_of_loss && is_same && self.has_nothing() {
            self.follow_without_log(latest.clone(), cx);
        }
    }

    /// Whether nothing is left here of what the members of this epoch had, nor is on its way: the
    /// replica has not voted with anything else, and acknowledged nothing since.
    fn has_nothing(&self) -> bool {
        let is_lost = self.status == Status::Recovering
            || (self.status == Status::ViewChange && self.head.lost.is_some());
        let is_empty = self.log.end() == Op(0) && self.install.is_none() && self.stage.is_none();
        is_lost && is_empty && self.recovery.source.is_none()
    }

    /// Takes its place in a later epoch as one that has lost its log. Nobody has it, nor that of
    /// this one: this is over, as a majority has executed its end.
    fn follow_without_log(&mut self, configuration: Configuration, cx: &mut Context<'_>) {
        probe!("vsr/follows_without_log");
        invariant!(self.commit == Op(0), "nothing is left of this epoch");
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
