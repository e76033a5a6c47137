//! The state machine: what a node holds of a roll, and the one match on messages.

use super::action::{Action, Context};
use super::agree::{Acceptor, Instance};
use super::change::Change;
use super::configuration::{Configuration, Member};
use super::join::Joining;
use super::keys::{self, Head, Standing};
use super::message::{Body, Message};
use super::number::RollId;
use super::observe::{Cut, Edges, Outbox, Rings};
use super::timer::WAITING_SHOWN;
use alloc::collections::{BTreeSet, VecDeque};
use alloc::sync::Arc;
use quorate_kernel::effects::Release;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::limits::{
    ROLL_ANSWERS_MAX, ROLL_DECISIONS_MAX, ROLL_EARLY_MAX, ROLL_JOINERS_MAX, ROLL_KICKS_MAX,
};
use quorate_kernel::time::Time;
use quorate_kernel::{invariant, mutant};

/// How a node stands, for those who ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It is no member, and does not try to become one.
    Idle,
    /// It tries to become a member.
    Joining {
        /// How often it has asked for its observers.
        tries: u64,
    },
    /// It is a member.
    Member,
    /// It is a member, and a change waits for members that do not answer.
    Waiting {
        /// How many take part, as far as was heard, this one included.
        heard: usize,
        /// How many are needed: a majority. Below that nobody is let in or removed, whatever is
        /// found; those who are gone must come back.
        needed: usize,
        /// How many members there are.
        members: usize,
    },
    /// It was a member, and has left.
    Left,
    /// It was a member, and the others have removed it.
    Kicked,
}

/// Somebody is in a later configuration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ahead {
    pub peer: NodeId,
    pub roll: RollId,
    pub since: Time,
}

/// One node's part in a roll.
#[derive(Debug)]
pub struct Roll {
    pub(super) me: NodeId,
    own: Arc<Member>,
    pub(super) head: Head,
    pub(super) rings: Rings,
    everyone: Arc<[NodeId]>,
    // Of this configuration alone:
    pub(super) acceptor: Acceptor,
    pub(super) instance: Instance,
    pub(super) cut: Cut,
    pub(super) outbox: Outbox,
    /// Who wants to join, and has this member among its observers.
    pub(super) guests: BTreeSet<NodeId>,
    // Over configurations:
    pub(super) edges: Edges,
    pub(super) joining: Option<Joining>,
    pub(super) is_leaving: bool,
    pub(super) kicks: BTreeSet<NodeId>,
    pub(super) orders_at: Time,
    pub(super) ahead: Option<Ahead>,
    pub(super) asked_at: Option<Time>,
    /// Changes and what they changed, the newest last.
    pub(super) decisions: VecDeque<(RollId, Arc<Change>)>,
    /// Messages of the next configuration.
    pub(super) early: VecDeque<(Incarnation, Message)>,
    pub(super) early_count: usize,
    pub(super) answers: usize,
    pub(super) ticked_at: Option<Time>,
}

impl Roll {
    /// The node before its start.
    ///
    /// # Panics
    /// What it says of itself is over a limit.
    #[must_use]
    pub fn new(own: Member) -> Roll {
        assert!(own.is_well_formed(), "an address or metadata over the limit");
        Roll {
            me: own.id,
            own: Arc::new(own),
            head: Head::default(),
            rings: Rings::default(),
            everyone: Arc::from([]),
            acceptor: Acceptor::default(),
            instance: Instance::default(),
            cut: Cut::default(),
            outbox: Outbox::default(),
            guests: BTreeSet::new(),
            edges: Edges::default(),
            joining: None,
            is_leaving: false,
            kicks: BTreeSet::new(),
            orders_at: Time(0),
            ahead: None,
            asked_at: None,
            decisions: VecDeque::new(),
            early: VecDeque::new(),
            early_count: 0,
            answers: 0,
            ticked_at: None,
        }
    }

    /// Runs once, before anything else. A node that has a configuration goes on in it, with its
    /// votes: a restart is neither a leave nor a join. One that has none founds the roll with the
    /// others, if it is a founder.
    pub fn start(&mut self, founding: Option<Configuration>, cx: &mut Context<'_>) {
        invariant!(self.head.standing == Standing::New, "a node starts once");
        if let Some(head) = Head::load(cx.table) {
            self.head = head;
            if !mutant!("roll_acceptor_forgets") {
                self.acceptor = keys::load_acceptor(self.roll(), cx.table);
            }
        } else if let Some(founding) = founding.filter(|it| it.contains(self.me)) {
            self.head = Head { standing: Standing::Member, configuration: Arc::new(founding) };
            self.save(cx);
        }
        if self.is_member() {
            self.set_out(cx);
        }
        self.check();
    }

    /// Takes up a configuration: who observes whom, and where all are. The lane is told.
    pub(super) fn set_out(&mut self, cx: &mut Context<'_>) {
        self.rings = Rings::of(&self.head.configuration);
        self.everyone = self.head.configuration.ids().collect();
        self.edges.observe(&self.rings.subjects_of(self.me));
        let configuration = Arc::clone(&self.head.configuration);
        cx.tell(super::action::Event::Configuration(configuration));
    }

    /// The newest configuration that this node knows. One that was removed may know none without
    /// it.
    #[must_use]
    pub fn configuration(&self) -> &Configuration {
        &self.head.configuration
    }

    /// Which one that is.
    #[must_use]
    pub fn roll(&self) -> RollId {
        self.head.configuration.id
    }

    /// How this node stands.
    #[must_use]
    pub fn status(&self, now: Time) -> Status {
        match self.head.standing {
            Standing::New => match &self.joining {
                Some(joining) => Status::Joining { tries: joining.tries },
                None => Status::Idle,
            },
            Standing::Left => Status::Left,
            Standing::Kicked => Status::Kicked,
            Standing::Member => {
                let is_long = |since: Time| now - since >= WAITING_SHOWN;
                if !self.instance.since.is_some_and(is_long) {
                    return Status::Member;
                }
                let heard = self.instance.heard.len().max(self.instance.heard_before.len());
                let configuration = self.configuration();
                let (needed, members) = (configuration.majority(), configuration.members.len());
                Status::Waiting { heard, needed, members }
            }
        }
    }

    /// Whether this node is a member, as far as it knows.
    #[must_use]
    pub fn is_member(&self) -> bool {
        self.head.standing == Standing::Member
    }

    /// Whether this node was a member and is none any more. Its id never comes back.
    #[must_use]
    pub fn is_out(&self) -> bool {
        matches!(self.head.standing, Standing::Left | Standing::Kicked)
    }

    /// What this node says of itself when it joins.
    #[must_use]
    pub fn own(&self) -> &Arc<Member> {
        &self.own
    }

    /// All members.
    pub(super) fn everyone(&self) -> &Arc<[NodeId]> {
        &self.everyone
    }

    /// Time passes; a lane calls it every [`super::TICK`].
    pub fn tick(&mut self, cx: &mut Context<'_>) {
        self.answers = 0;
        let late = self.ticked_at.map(|at| cx.now - at);
        self.ticked_at = Some(cx.now);
        if self.is_member() {
            self.tick_edges(late, cx);
            self.tick_orders(cx);
            self.tick_alerts(cx);
            self.tick_rounds(cx);
        }
        if self.joining.is_some() {
            self.tick_joining(cx);
        }
        self.tick_ahead(cx);
        self.check();
    }

    /// A message of another node, or of itself.
    pub fn on_message(&mut self, from: Incarnation, message: Message, cx: &mut Context<'_>) {
        let Message { roll, body } = message;
        if self.is_out() {
            return self.tell_who_is_behind(from, roll, &body, cx);
        }
        self.hear_of(from.node, roll, &body, cx);
        match body {
            Body::Probe { nonce } => self.on_probe(from, roll, nonce, cx),
            Body::ProbeAck { nonce } => self.on_probe_ack(from, nonce),
            Body::Ask { digest } => self.on_ask(from, roll, digest, cx),
            Body::Decisions { since, changes } => self.on_decisions(from, since, &changes, cx),
            Body::Whole { configuration } => self.on_whole(from, configuration, cx),
            Body::Kicked => self.on_kicked(from, roll, cx),
            Body::PreJoin => self.on_pre_join(from, cx),
            Body::Join { member, rings } => self.on_join(from, roll, (member, rings), cx),
            Body::Observers { observers } => self.on_observers(from, roll, &observers, cx),
            Body::Outside => self.on_outside(from, roll, cx),
            Body::Refused(why) => self.on_refused(from, why, cx),
            // What it says is in its stamp: one that joins asks at once.
            Body::Here if self.joining.is_some() => self.tick_ahead(cx),
            Body::Here => {}
            body if self.is_of_now(from, roll, &body, cx) => self.dispatch(from, body, cx),
            _ => {}
        }
        self.check();
    }

    /// Whether a message of one configuration is to be handled now: it is of this one. One of the
    /// next waits until that is installed.
    fn is_of_now(
        &mut self,
        from: Incarnation,
        roll: RollId,
        body: &Body,
        cx: &mut Context<'_>,
    ) -> bool {
        if !self.is_member() {
            return false;
        }
        let own = self.roll();
        if roll.number > own.number {
            if roll.number == own.number.next() {
                self.keep(from, Message { roll, body: body.clone() });
            }
            return false;
        }
        if roll.number < own.number {
            if matches!(body, Body::Phase1a { .. }) {
                // It is behind, and may hear it from nobody else.
                self.tell(from.node, Body::Here, Release::State, cx);
            }
            return mutant!("roll_old_alerts_count") && matches!(body, Body::Alerts { .. });
        }
        let is_of_chain = roll == own || mutant!("roll_any_chain_counts");
        let is_of_now = is_of_chain && self.configuration().contains(from.node);
        if !is_of_now {
            cx.refuse("a message of another chain of configurations");
        }
        is_of_now
    }

    fn dispatch(&mut self, from: Incarnation, body: Body, cx: &mut Context<'_>) {
        match body {
            Body::Alerts { alerts } => self.on_alerts(from, &alerts, cx),
            Body::FastVote { digest } => self.on_fast_vote(from, digest, cx),
            Body::Phase1a { round } => self.on_phase1a(from, round, cx),
            Body::Phase1b { round, voted, value } => {
                self.on_phase1b(from, round, value.map(|value| (voted, value)), cx);
            }
            Body::Phase2a { round, value } => self.on_phase2a(from, round, &value, cx),
            Body::Phase2b { round, digest } => self.on_phase2b(from, round, digest, cx),
            Body::Outbid { round } => self.on_outbid(from, round, cx),
            Body::Value { value } => self.on_value(from, &value, cx),
            Body::Depart { node } => self.on_depart(from, node, cx),
            _ => {}
        }
    }

    /// Keeps a message of the next configuration: others have installed it already.
    fn keep(&mut self, from: Incarnation, message: Message) {
        let count = match &message.body {
            Body::Alerts { alerts } => alerts.len(),
            // The others are told again.
            Body::FastVote { .. } | Body::Phase1a { .. } | Body::Phase2b { .. } => 1,
            _ => return,
        };
        if self.early_count + count <= ROLL_EARLY_MAX {
            self.early_count += count;
            self.early.push_back((from, message));
        }
    }

    pub(super) fn tell(&self, to: NodeId, body: Body, release: Release, cx: &mut Context<'_>) {
        cx.send(to, Message { roll: self.roll(), body }, release);
    }

    pub(super) fn tell_all(&self, body: Body, release: Release, cx: &mut Context<'_>) {
        cx.send(&self.everyone, Message { roll: self.roll(), body }, release);
    }

    /// Writes the configuration, and an acceptor that belongs to it.
    pub(super) fn save(&self, cx: &mut Context<'_>) {
        cx.out.push(Action::Write { key: Head::key(), value: self.head.stored() });
        self.save_acceptor(cx);
    }

    pub(super) fn save_acceptor(&self, cx: &mut Context<'_>) {
        let value = keys::store_acceptor(self.roll(), &self.acceptor);
        cx.out.push(Action::Write { key: keys::acceptor_key(), value });
    }

    /// Whether one more question may be answered before the next tick.
    pub(super) fn may_answer(&mut self) -> bool {
        self.answers += 1;
        self.answers <= ROLL_ANSWERS_MAX
    }

    /// Asserts what must hold between two inputs.
    pub fn check(&self) {
        let configuration = self.configuration();
        let is_in = configuration.contains(self.me);
        invariant!(is_in || !self.is_member(), "a member is in its configuration");
        invariant!(self.joining.is_none() || self.head.standing == Standing::New, "joined once");
        invariant!(self.decisions.len() <= ROLL_DECISIONS_MAX, "few decisions are kept");
        invariant!(self.guests.len() <= ROLL_JOINERS_MAX, "few wait to be let in");
        invariant!(self.kicks.len() <= ROLL_KICKS_MAX, "few are to be removed");
        invariant!(self.early_count <= ROLL_EARLY_MAX, "few messages wait");
        if self.is_member() {
            let subjects = usize::from(configuration.shape.rings).min(configuration.members.len());
            invariant!(self.edges.len() <= subjects, "a subject for each ring");
            let voted = self.acceptor.voted.as_ref();
            let is_promised = voted.is_none_or(|(round, _)| *round <= self.acceptor.promised);
            invariant!(is_promised, "a vote is a promise");
            let may = voted.is_none_or(|(_, value)| configuration.may_follow(value));
            invariant!(may, "what it voted for can follow");
            let most = configuration.members.len() + ROLL_JOINERS_MAX;
            invariant!(self.cut.len() <= most, "one report of each");
        }
    }
}
