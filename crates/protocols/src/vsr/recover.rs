//! How a replica comes back: from its disk, or, if that has forgotten, from the others.

use super::action::{Action, Context, Event};
use super::configuration::are_members;
use super::keys::{self, Head};
use super::log::entry::Entry;
use super::log::stored::Log;
use super::machine::Stored;
use super::message::Message;
use super::normal::read_index::Reads;
use super::number::{Epoch, Op, ViewNumber};
use super::state::{Election, Install, Recovery, Replica, Settings, Standing, Status};
use super::timer::ASK_AGAIN;
use super::views::pulse::Pulse;
use alloc::collections::BTreeMap;
use quorate_kernel::effects::Release;
use quorate_kernel::ids::{GroupId, Incarnation, NodeId};
use quorate_kernel::invariant;
use quorate_kernel::limits::VSR_IN_FLIGHT_BYTES_MAX;
use quorate_kernel::mutant;
use quorate_kernel::probe;
use quorate_kernel::process;
use quorate_kernel::storage::Durability;

impl Replica {
    /// A replica before its start.
    #[must_use]
    pub fn new(group: GroupId, me: NodeId, settings: Settings) -> Replica {
        invariant!(settings.in_flight_bytes > 0, "one command always fits");
        invariant!(settings.in_flight_bytes <= VSR_IN_FLIGHT_BYTES_MAX, "memory is bounded");
        Replica {
            group,
            me,
            settings,
            head: Head::none(),
            log: Log::new(group, settings.kept.bytes),
            status: Status::Learner,
            commit: Op(0),
            applied: Op(0),
            primary: None,
            reads: Reads::default(),
            election: Election::default(),
            stage: None,
            asked: None,
            install: None,
            recovery: Recovery::default(),
            nonces: 0,
            pulse: Pulse::new(quorate_kernel::time::Time(0)),
            left: Default::default(),
            removed: Default::default(),
            held: Op(0),
            owes_ack: false,
            has_started: false,
            started: Default::default(),
            copies: Default::default(),
        }
    }

    /// Starts from what is stored. Of what is not there, `founders` are the first members; without
    /// them this node knows nothing of the group, and learns.
    ///
    /// # Panics
    /// The founders are not ascending, or too many, or none.
    pub fn start(
        &mut self,
        founders: Option<&[NodeId]>,
        recovery: process::Recovery,
        cx: &mut Context<'_>,
    ) {
        invariant!(self.log.end() == Op(0), "a replica is started once");
        // Another replica of this group may have been here in the same start of this node, and what
        // it asked for may be answered yet. It has asked less often than each microsecond.
        if !mutant!("vsr_nonces_count_anew") {
            self.nonces = (cx.now.0 / 1_000) & u64::from(u32::MAX >> 1);
        }
        self.pulse = Pulse::new(cx.now);
        self.log.open(cx.table);
        let Some(head) = keys::load(self.group, cx.table) else {
            return founders.into_iter().for_each(|members| self.found(members, cx));
        };
        self.log.load(&head, cx.table, cx.out);
        self.head = head;
        let (machine, mut store) = cx.machine();
        let stored = machine.load(&mut store);
        let forgets = recovery == process::Recovery::Forgot && self.settings.may_forget();
        let stored = if forgets { self.forget_data(stored, cx) } else { stored };
        // The log has let go of what a copy was to bring.
        self.head.is_installing |= stored.whole < self.log.base().op;
        let nonce = self.next_nonce(cx);
        self.install = self.head.is_installing.then(|| Install::new(nonce));
        // What was executed, or has begun an epoch, was committed. What a copy has brought so far
        // says nothing of this log.
        let base = self.log.base().op;
        let (whole, newest) =
            if self.head.is_installing { (base, base) } else { (stored.whole, stored.newest) };
        invariant!(whole <= self.log.end(), "what was executed is in the log");
        self.applied = whole;
        self.head.settled = self.head.settled.max(newest);
        let committed = newest.max(whole).max(self.head.configuration.since);
        self.commit = committed.min(self.log.end());
        self.save(cx);
        self.take_place(cx);
        self.execute(cx);
        self.check();
    }

    /// The first members begin with one entry, which is committed: it says who they are.
    fn found(&mut self, members: &[NodeId], cx: &mut Context<'_>) {
        assert!(are_members(members), "members ascend, within the limit");
        self.log.append(Entry::members(ViewNumber::default(), members), cx.out);
        self.commit = self.log.end();
        self.execute(cx);
        invariant!(self.epoch() == Epoch(1), "the founders are of the first epoch");
        self.check();
    }

    /// Data may be lost. What the state may hold of entries that the log has not is of no use, nor
    /// is a log without the state before it.
    fn forget_data(&mut self, stored: Stored, cx: &mut Context<'_>) -> Stored {
        let newest = self.head.settled.max(stored.newest).max(stored.whole);
        // Without its state a log is of use where it outlives that: another may have the state, and
        // a copy of it was under way.
        let is_memory = self.settings.durability == Durability::Memory;
        let copies = self.head.is_installing && !is_memory && !mutant!("copy_drops_the_log");
        let lacks_state = stored.whole < self.log.base().op || self.head.is_installing;
        let is_torn = newest > self.log.end() || (lacks_state && !copies);
        if self.head.owes && (is_torn || self.log.end() < self.head.configuration.since) {
            // It has nothing more to tell.
            self.head.owes = false;
            cx.tell(Event::Released);
        }
        self.head.has_forgotten = self.is_member() && !mutant!("forgotten_votes");
        if is_torn {
            self.drop_all(cx);
            return Stored::default();
        }
        stored
    }

    /// Takes up what it was part of when it stopped.
    fn take_place(&mut self, cx: &mut Context<'_>) {
        let has_log = self.head.normal == self.head.view;
        if !self.is_member() {
            self.status = Status::Learner;
        } else if self.head.has_forgotten {
            self.status = Status::Recovering;
            self.tick_recovering(cx);
        } else if self.known_primary() != Some(self.me) {
            self.status = if has_log { Status::Normal } else { Status::ViewChange };
            self.pulse.took_over = self.log.end();
        } else if has_log && mutant!("restart_keeps_view") {
            self.status = Status::Normal;
            self.lead(cx);
        } else {
            // What it has proposed in this view and lost, others may have: it could propose
            // something else in its place. So it never goes on with its view.
            self.status = Status::ViewChange;
            self.begin_view(self.head.view.next(), cx);
        }
    }

    /// Asks the others for the log, as long as it is not here.
    pub(super) fn tick_recovering(&mut self, cx: &mut Context<'_>) {
        let others = self.others();
        let gone = self.gone(cx.now);
        if others.iter().all(|node| gone.contains(node)) {
            return self.consider_losses(cx);
        }
        if self.recovery.source.is_some_and(|source| gone.contains(&source)) {
            probe!("vsr/source_has_left");
            self.recovery = Recovery::default();
            self.stage = None;
            self.asked = None;
        }
        if let Some(source) = self.recovery.source {
            self.ask(source, cx);
        }
        let waits = self.recovery.asked_at.map(|at| cx.now - at);
        if waits.is_some_and(|wait| wait < ASK_AGAIN) {
            return;
        }
        if self.recovery.nonce == 0 {
            self.recovery.nonce = self.next_nonce(cx);
        }
        self.recovery.asked_at = Some(cx.now);
        let message = Message::Recovery { nonce: self.recovery.nonce, view: self.head.view };
        cx.send(&others, message, Release::Lane);
    }

    /// A member has forgotten, and was in this view.
    pub(super) fn on_recovery(
        &mut self,
        from: Incarnation,
        nonce: u64,
        view: ViewNumber,
        cx: &mut Context<'_>,
    ) {
        if view.epoch > self.epoch() {
            return self.ask(from.node, cx);
        }
        if view.epoch < self.epoch() {
            return self.tell_epoch(from.node, cx);
        }
        if !self.head.configuration.contains(from.node) {
            return cx.out.push(Action::Refuse("only a member has been in a view of its epoch"));
        }
        invariant!(self.head.view.epoch == view.epoch, "views of one epoch are compared");
        let takes_part = matches!(self.status, Status::Normal | Status::ViewChange);
        if view > self.head.view && takes_part {
            // It has begun that view, so a majority would have; it waits for nothing earlier.
            self.begin_view(view, cx);
        }
        invariant!(self.head.view >= view || !takes_part, "no member stays behind");
        if !self.is_member() {
            return;
        }
        let standing = match self.status {
            Status::Normal => Standing::Normal,
            _ if self.head.has_forgotten && self.head.is_held => Standing::Held,
            _ if self.head.has_forgotten || self.head.lost.is_some() => Standing::Forgot,
            _ => Standing::Whole,
        };
        let message = Message::RecoveryResponse { nonce, view: self.head.view, standing };
        cx.send(from.node, message, Release::Lane);
    }

    /// Names a question as none of this node was named before: no start is repeated.
    pub(super) fn next_nonce(&mut self, cx: &Context<'_>) -> u64 {
        self.nonces += 1;
        (u64::from(cx.me.start.0) << 32) + self.nonces
    }

    /// Another member has answered.
    pub(super) fn on_recovery_response(
        &mut self,
        from: Incarnation,
        nonce: u64,
        view: ViewNumber,
        standing: Standing,
        cx: &mut Context<'_>,
    ) {
        let is_open = self.status == Status::Recovering;
        let is_of_epoch = view.epoch == self.epoch();
        let is_other = self.head.configuration.contains(from.node) && from.node != self.me;
        if !is_open || nonce != self.recovery.nonce || !is_of_epoch || !is_other {
            return;
        }
        invariant!(self.head.has_forgotten, "only who has forgotten asks");
        self.recovery.answers.insert(from.node, (view, standing));
        invariant!(self.recovery.answers.len() <= self.others().len(), "one of each");
        if self.recovery.source.is_some() {
            return self.doubt_source(from.node, view, standing);
        }
        self.choose_source(cx);
        if self.recovery.source.is_none() {
            self.consider_losses(cx);
        }
    }

    /// The source may have forgotten meanwhile, or its view may be over: then all are asked anew.
    fn doubt_source(&mut self, from: NodeId, view: ViewNumber, standing: Standing) {
        let is_normal = standing == Standing::Normal;
        let is_source = self.recovery.source == Some(from);
        let still_leads = is_normal && view == self.head.view;
        let is_over = is_normal && view > self.head.view;
        if (is_over || (is_source && !still_leads)) && !mutant!("clings_to_its_source") {
            probe!("vsr/drops_a_source");
            self.recovery = Recovery::default();
            self.stage = None;
            self.asked = None;
        }
    }

    /// The primary of a view no earlier than this member's has whatever this member has
    /// acknowledged. The paper hears a majority too; it has no view that is durable.
    fn choose_source(&mut self, cx: &mut Context<'_>) {
        let answers = self.recovery.answers.iter();
        let normal: BTreeMap<NodeId, ViewNumber> = answers
            .filter(|(_, (_, standing))| *standing == Standing::Normal)
            .map(|(node, (view, _))| (*node, *view))
            .collect();
        let Some(latest) = normal.values().max().copied() else { return };
        let primary =
            self.primary_of(latest).filter(|primary| normal.get(primary) == Some(&latest));
        let Some(primary) = primary else { return };
        if latest < self.head.view {
            return;
        }
        probe!("vsr/recovers");
        if latest > self.head.view {
            self.raise(latest, cx);
        }
        self.recovery.source = Some(primary);
        self.stage = None;
        self.asked = None;
        self.ask(primary, cx);
    }

    /// A primary is heard: the log of its view is what is wanted, or another answer is.
    pub(super) fn hears_while_recovering(
        &mut self,
        source: NodeId,
        view: ViewNumber,
        cx: &mut Context<'_>,
    ) -> bool {
        if self.recovery.source.is_none() {
            return false;
        }
        if view > self.head.view {
            // The view whose log was on its way is over.
            self.recovery = Recovery::default();
            self.stage = None;
        } else if self.recovery.source == Some(source) {
            self.ask(source, cx);
        }
        false
    }
}
