//! A decision becomes the next configuration; and how those who missed it get it.

use super::action::{Context, Event};
use super::agree::{Acceptor, Instance};
use super::change::Change;
use super::configuration::Configuration;
use super::keys::Standing;
use super::message::Body;
use super::number::{Digest, Number, RollId};
use super::observe::{Cut, Outbox};
use super::roll::{Ahead, Roll};
use super::timer::{ASK_AFTER, ASK_AGAIN};
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::effects::Release;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::limits::{ROLL_DECISIONS_BYTES_MAX, ROLL_DECISIONS_MAX};
use quorate_kernel::{invariant, mutant, probe};

impl Roll {
    /// A change was decided: it makes the next configuration.
    pub(super) fn install(&mut self, change: &Arc<Change>, cx: &mut Context<'_>) {
        if !self.configuration().may_follow(change) {
            return cx.refuse("a decision that cannot follow");
        }
        let next = self.configuration().after(change);
        invariant!(next.id.number == self.roll().number.next(), "numbers rise by one");
        self.decisions.push_back((self.roll(), Arc::clone(change)));
        if self.decisions.len() > ROLL_DECISIONS_MAX {
            self.decisions.pop_front();
        }
        self.adopt(Arc::new(next), cx);
    }

    /// Goes on in a later configuration, with nothing of the one before but what this member finds
    /// itself: its edges, whom it was told to remove, whether it leaves.
    fn adopt(&mut self, configuration: Arc<Configuration>, cx: &mut Context<'_>) {
        invariant!(configuration.id.number > self.roll().number, "configurations only rise");
        self.head.configuration = configuration;
        self.acceptor = Acceptor::default();
        self.instance = Instance::default();
        self.cut = Cut::default();
        self.outbox = Outbox::default();
        self.asked_at = None;
        if self.ahead.is_some_and(|ahead| ahead.roll.number <= self.roll().number) {
            self.ahead = None;
        }
        let early = core::mem::take(&mut self.early);
        self.early_count = 0;
        if !self.configuration().contains(self.me) {
            return self.go_out(cx);
        }
        self.joining = None;
        self.head.standing = Standing::Member;
        self.save(cx);
        self.set_out(cx);
        let head = &self.head.configuration;
        self.kicks.retain(|node| head.contains(*node));
        for guest in core::mem::take(&mut self.guests) {
            let is_in = self.configuration().contains(guest);
            let body = if is_in { Body::Here } else { Body::Outside };
            self.tell(guest, body, Release::State, cx);
        }
        let roll = self.roll();
        for (from, message) in early {
            if message.roll == roll && self.roll() == roll {
                self.on_message(from, message, cx);
            }
        }
    }

    /// The others go on without this node. It keeps what it holds.
    fn go_out(&mut self, cx: &mut Context<'_>) {
        invariant!(self.head.standing == Standing::Member, "only members are removed");
        let left = self.is_leaving;
        self.head.standing = if left { Standing::Left } else { Standing::Kicked };
        self.save(cx);
        self.edges.observe(&BTreeSet::new());
        self.guests.clear();
        self.kicks.clear();
        self.ahead = None;
        self.is_leaving = false;
        let configuration = Arc::clone(&self.head.configuration);
        cx.tell(if left { Event::Left } else { Event::Kicked(configuration) });
    }

    /// A peer's stamp tells which configuration it is in.
    pub(super) fn hear_of(&mut self, peer: NodeId, roll: RollId, body: &Body, cx: &Context<'_>) {
        // What one that joins is answered is of configurations that it is not in.
        let is_answer = matches!(body, Body::Observers { .. } | Body::Outside | Body::Refused(_));
        let may_follow = self.is_member() || (self.joining.is_some() && !is_answer);
        let known = self.ahead.map_or(self.roll().number, |ahead| ahead.roll.number);
        if may_follow && roll.number > known {
            self.ahead = Some(Ahead { peer, roll, since: cx.now });
        }
    }

    /// Asks for what is missing: decisions of a peer that is ahead, or the change that was decided.
    pub(super) fn tick_ahead(&mut self, cx: &mut Context<'_>) {
        if self.asked_at.is_some_and(|at| cx.now - at < ASK_AGAIN) {
            return;
        }
        if let Some(ahead) = self.ahead {
            if self.is_member() && cx.now - ahead.since < ASK_AFTER {
                return;
            }
            // If it does not answer, the next one that is heard of is asked.
            self.ahead = None;
            self.asked_at = Some(cx.now);
            // Early, as below: a question.
            return self.tell(ahead.peer, Body::Ask { digest: None }, Release::Early, cx);
        }
        let Some(digest) = self.instance.decided else { return };
        let (at, count) = self.instance.asked.unwrap_or((cx.now, 0));
        if count > 0 && cx.now - at < ASK_AGAIN {
            return;
        }
        self.instance.asked = Some((cx.now, count + 1));
        let voters = || {
            let classic = self.instance.classic.voters(digest);
            classic.chain(self.instance.fast.voters(digest)).filter(|node| *node != self.me)
        };
        let Some(voter) = voters().nth(count % voters().count().max(1)) else { return };
        self.tell(voter, Body::Ask { digest: Some(digest) }, Release::Early, cx);
    }

    /// Somebody lacks decisions, or a change that was decided.
    pub(super) fn on_ask(
        &mut self,
        from: Incarnation,
        roll: RollId,
        digest: Option<Digest>,
        cx: &mut Context<'_>,
    ) {
        if !(self.is_member() || self.is_out()) || !self.may_answer() {
            return;
        }
        let own = self.roll();
        let is_member = self.configuration().contains(from.node);
        let body = if roll == own {
            digest.and_then(|digest| self.value_of(digest)).map(|value| Body::Value { value })
        } else if roll.number >= own.number {
            None
        } else if is_member {
            Some(self.decisions_since(roll))
        } else if roll.number > Number(0) {
            // It was a member: nobody who was removed comes back.
            Some(Body::Kicked)
        } else {
            Some(Body::Outside)
        };
        invariant!(own.number > Number(0), "who is or was a member knows");
        invariant!(self.roll() == own, "a question changes nothing");
        if let Some(body) = body {
            self.tell(from.node, body, Release::State, cx);
        }
    }

    /// A node that is out takes part in nothing. But those that it knew may be behind it, and hear
    /// from nobody else: it tells them.
    pub(super) fn tell_who_is_behind(
        &mut self,
        from: Incarnation,
        roll: RollId,
        body: &Body,
        cx: &mut Context<'_>,
    ) {
        let is_behind = roll.number > Number(0) && roll.number < self.roll().number;
        if !is_behind || mutant!("roll_out_is_silent") {
            return;
        }
        match body {
            Body::Ask { digest } => self.on_ask(from, roll, *digest, cx),
            Body::Probe { .. } | Body::Phase1a { .. } => {
                self.tell(from.node, Body::Here, Release::State, cx);
            }
            _ => {}
        }
    }

    /// The decisions behind a configuration, or all that they amount to if some are not here.
    fn decisions_since(&self, since: RollId) -> Body {
        let place = self.decisions.iter().position(|(before, _)| *before == since);
        let whole = || Body::Whole { configuration: Arc::clone(&self.head.configuration) };
        let Some(place) = place else { return whole() };
        let changes: Vec<Arc<Change>> =
            self.decisions.range(place..).map(|(_, change)| Arc::clone(change)).collect();
        let bytes: usize = changes.iter().map(|change| change.encode().len()).sum();
        let fits = bytes <= ROLL_DECISIONS_BYTES_MAX || changes.len() == 1;
        if fits { Body::Decisions { since, changes } } else { whole() }
    }

    /// Decisions that this member has missed.
    pub(super) fn on_decisions(
        &mut self,
        from: Incarnation,
        since: RollId,
        changes: &[Arc<Change>],
        cx: &mut Context<'_>,
    ) {
        if !self.is_member() || since != self.roll() || from.node == self.me {
            return;
        }
        probe!("roll/caught_up");
        let before = self.roll().number;
        for change in changes {
            let number = self.roll().number;
            self.install(change, cx);
            // What waited for the next configuration may have brought it further already.
            if !self.is_member() || self.roll().number != number.next() {
                break;
            }
        }
        invariant!(self.roll().number >= before, "configurations only rise");
        invariant!(self.early_count == 0 || self.is_member(), "nothing waits for who is out");
    }

    /// The configuration of a peer that is ahead of all that it can tell one by one.
    pub(super) fn on_whole(
        &mut self,
        from: Incarnation,
        configuration: Arc<Configuration>,
        cx: &mut Context<'_>,
    ) {
        let before = self.roll();
        let may_follow = self.is_member() || self.joining.is_some();
        if !may_follow || configuration.id.number <= before.number || from.node == self.me {
            return;
        }
        if !self.is_member() && !configuration.contains(self.me) {
            return;
        }
        probe!("roll/took_a_whole_configuration");
        // What is between is not here: it can be told to nobody.
        self.decisions.clear();
        self.adopt(configuration, cx);
        invariant!(self.roll().number > before.number, "configurations only rise");
        invariant!(self.joining.is_none(), "it is a member, or was one");
    }

    /// A member says that this node is none any more.
    pub(super) fn on_kicked(&mut self, from: Incarnation, roll: RollId, cx: &mut Context<'_>) {
        if !self.is_member() || roll.number <= self.roll().number || from.node == self.me {
            return;
        }
        let number = self.roll().number;
        self.early.clear();
        self.early_count = 0;
        self.instance = Instance::default();
        self.go_out(cx);
        invariant!(self.roll().number == number, "the last one that it was in stays");
        invariant!(!self.is_member(), "it is out");
    }

    /// A change that was decided, and was known here by its digest.
    pub(super) fn on_value(
        &mut self,
        from: Incarnation,
        value: &Arc<Change>,
        cx: &mut Context<'_>,
    ) {
        invariant!(self.is_member(), "who is out lacks nothing");
        let before = self.roll().number;
        let known = self.instance.decided.filter(|_| from.node != self.me);
        let is_it = |digest| digest == value.digest() || mutant!("roll_takes_any_value");
        if known.is_some_and(is_it) {
            self.install(value, cx);
        }
        invariant!(self.roll().number >= before, "configurations only rise");
    }
}
