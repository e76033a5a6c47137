//! What clients of this host have in hand: the paper's client library, at each host (§4.2).

use super::ended::{Ends, Recalled};
use super::items::Sheet;
use super::names::Names;
use crate::serializable::lane::message::Message;
use crate::serializable::lane::places::reach::GRACE;
use crate::serializable::lane::{Context, Serializable};
use crate::serializable::{Commit, Raw, Request, Token, TxId, Version};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::{GroupId, NodeId, Ticket};
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::operation::Refusal;
use quorate_kernel::ring::{Ring, Standing};
use quorate_kernel::time::{Span, Time};

/// How long a question waits for its answer before it is asked again; twice as long each time, up
/// to [`WAIT_MAX`].
const WAIT: Span = Span::millis(200);
/// See [`WAIT`].
const WAIT_MAX: Span = Span::secs(1);
/// How long somebody waits after it was told that another leads.
const WAIT_OTHER: Span = Span::millis(20);
/// The most transactions whose end is asked for though nobody waits for it any more: a group that
/// is gone for long must not fill this host.
pub const ASKING_MAX: usize = 4096;
/// So many of these are asked for in [`WAIT_MAX`], at most, once they wait so long.
const ASKING_AT_ONCE: u64 = 1024;

/// An operation in hand.
#[derive(Debug)]
pub struct Doing {
    /// Who waits for it; nobody once it was answered that the outcome is unknown.
    pub ticket: Option<Ticket>,
    /// When it must have been answered.
    pub deadline: Time,
    /// What it is.
    pub sheet: Sheet,
    /// The counter of its first attempt to commit: who is tried again does not begin at the end.
    pub priority: Option<u64>,
    /// How often it was tried again after a conflict.
    pub conflicts: u32,
    /// Whether it is committed like what writes, though it only reads: what was read has changed
    /// too often.
    pub commits_reads: bool,
    /// Whether what it reads first may be of any replica. If one is not to be had, or what it has
    /// was old, primaries are asked.
    pub reads_any: bool,
    /// Of how many groups it has read in this attempt.
    pub read_from: usize,
    /// Whether a group has said that it has done its share of this attempt.
    pub is_partly_done: bool,
    /// Where it stands.
    pub phase: Phase,
    /// When what is not answered is asked again.
    pub again: Time,
    /// How long it waits after that.
    pub wait: Span,
    /// Whether nobody was asked yet: a group seems to be out of reach.
    pub is_held: bool,
    /// Who was asked this question, of each group; whoever was asked last comes last.
    pub asked: BTreeMap<GroupId, Vec<NodeId>>,
}

/// Where an operation stands.
#[derive(Debug)]
pub enum Phase {
    /// It reads; what it waits for, by group.
    Reading(BTreeMap<GroupId, Vec<Raw>>),
    /// It has only read, in several groups, and asks whether all of that is current.
    Checking(BTreeMap<GroupId, BTreeMap<Raw, Version>>),
    /// It commits.
    Committing {
        /// Its name.
        tx: TxId,
        /// The shares; the first is the coordinator's.
        shares: Vec<(GroupId, Commit)>,
    },
    /// The time is over: it asks how it ended.
    Asking(Token),
    /// A client asks how a transaction ended, which may be of another host.
    Recalling(Recalled),
    /// It lists keys of a group.
    Listing {
        /// The group.
        group: GroupId,
        /// From which key on.
        from: Raw,
        /// How many.
        limit: u32,
    },
}

impl Phase {
    /// The transaction whose end is not known.
    pub fn open(&self) -> Option<TxId> {
        match self {
            Phase::Committing { tx, .. } => Some(*tx),
            Phase::Asking(token) => Some(token.tx),
            _ => None,
        }
    }

    /// The groups that are asked and have not answered.
    pub fn groups(&self) -> Vec<GroupId> {
        match self {
            Phase::Reading(waits) => waits.keys().copied().collect(),
            Phase::Checking(waits) => waits.keys().copied().collect(),
            Phase::Committing { shares, .. } => shares.iter().map(|(group, _)| *group).collect(),
            Phase::Asking(token) => Vec::from([token.coordinator]),
            Phase::Recalling(it) if it.group_forgot => Vec::new(),
            Phase::Recalling(it) => Vec::from([it.token.coordinator]),
            Phase::Listing { group, .. } => Vec::from([*group]),
        }
    }

    /// What is asked of a group, of any replica or of the primary; nothing if it has answered, or
    /// is not asked.
    fn message(&self, question: u64, group: GroupId, of_any: bool) -> Option<Message> {
        let request = match self {
            Phase::Reading(waits) => {
                let keys = waits.get(&group)?.clone();
                if of_any { Request::ReadAny { keys } } else { Request::Read { keys } }
            }
            Phase::Checking(waits) => Request::Check { reads: waits.get(&group)?.clone() },
            Phase::Committing { shares, .. } => {
                let place = shares.binary_search_by_key(&group, |(of, _)| *of).ok()?;
                Request::Commit(shares[place].1.clone())
            }
            Phase::Asking(token) | Phase::Recalling(Recalled { token, .. })
                if token.coordinator == group =>
            {
                Request::Outcome { token: *token }
            }
            Phase::Listing { group: of, from, limit } if *of == group => {
                let (from, limit) = (from.clone(), *limit);
                return Some(Message::List { question, group, from, limit });
            }
            Phase::Asking(_) | Phase::Recalling(_) | Phase::Listing { .. } => return None,
        };
        Some(Message::Ask { question, group, request })
    }
}

/// All operations of this host's clients.
#[derive(Debug, Default)]
pub struct Clients {
    /// What transactions are called.
    pub names: Names,
    /// How those ended of which nobody waited for the end.
    pub ended: Ends,
    /// How many questions were asked.
    questions: u64,
    doing: BTreeMap<u64, Doing>,
    /// Those of them that only ask how they ended, the oldest first.
    asking: BTreeSet<u64>,
    hosts: Vec<NodeId>,
}

impl Clients {
    /// How many operations are in hand.
    pub fn len(&self) -> usize {
        self.doing.len()
    }

    /// The ring has changed.
    pub fn see(&mut self, ring: &Arc<Ring>) {
        let there = ring.hosts().iter().filter(|host| host.standing != Standing::Left);
        self.hosts = there.map(|host| host.who.node).collect();
    }

    /// The hosts of the cluster, as far as is known.
    pub fn hosts(&self) -> impl Iterator<Item = NodeId> {
        self.hosts.iter().copied()
    }

    /// Takes an operation in; the name of its question.
    pub fn add(&mut self, doing: Doing) -> u64 {
        self.questions += 1;
        if matches!(doing.phase, Phase::Asking(_)) {
            self.asking.insert(self.questions);
        }
        self.doing.insert(self.questions, doing);
        self.questions
    }

    /// Takes an operation out, to answer it or to go on with another question.
    pub fn remove(&mut self, question: u64) -> Option<Doing> {
        self.asking.remove(&question);
        self.doing.remove(&question)
    }

    /// Asks no more for the oldest of those that nobody waits for, if there are too many. Their
    /// clients were told that either may be, and groups may forget it.
    fn drop_oldest(&mut self) {
        while self.asking.len() >= ASKING_MAX && !mutant!("lane_asks_without_bound") {
            let Some(question) = self.asking.first().copied() else { return };
            let tx = self.remove(question).and_then(|doing| doing.phase.open());
            tx.into_iter().for_each(|tx| self.names.close(tx));
        }
    }

    /// An operation in hand, to be looked at.
    pub fn get(&self, question: u64) -> Option<&Doing> {
        self.doing.get(&question)
    }

    /// An operation in hand.
    pub fn get_mut(&mut self, question: u64) -> Option<&mut Doing> {
        self.doing.get_mut(&question)
    }

    /// The questions that are open.
    pub fn questions(&self) -> impl Iterator<Item = u64> {
        self.doing.keys().copied()
    }

    /// A transaction that commits, and its question.
    #[cfg(test)]
    pub fn committing(&self) -> Option<(u64, TxId)> {
        self.doing.iter().find_map(|(question, it)| Some((*question, it.phase.open()?)))
    }

    /// Asserts what must hold.
    pub fn check(&self) {
        let open = self.doing.values().filter_map(|it| it.phase.open());
        let open: BTreeSet<_> = open.map(|tx| (tx.client, tx.counter)).collect();
        invariant!(open == self.names.open, "what is not known is asked for");
        let is_answered = |doing: &Doing| doing.ticket.is_none();
        let asks = |doing: &Doing| matches!(doing.phase, Phase::Asking(_));
        let fits = |doing: &Doing| is_answered(doing) == asks(doing);
        invariant!(self.doing.values().all(fits), "who was answered only asks");
        let is_noted = |(question, doing): (&u64, &Doing)| {
            self.asking.contains(question) == asks(doing)
                && (!asks(doing) || doing.sheet.items().is_empty())
        };
        invariant!(self.doing.iter().all(is_noted), "who only asks needs nothing else");
        let is_bounded = self.asking.len() <= ASKING_MAX || mutant!("lane_asks_without_bound");
        invariant!(is_bounded, "what nobody waits for is bounded");
        self.ended.check();
    }
}

impl Serializable {
    /// Goes on with an operation: a new question is asked.
    pub(super) fn go_on(&mut self, mut doing: Doing, cx: &mut Context<'_>) {
        doing.again = cx.now + WAIT;
        doing.wait = WAIT;
        doing.asked.clear();
        // Who was answered asks until it knows.
        doing.is_held = doing.ticket.is_some() && self.out_of_reach(&doing.phase).is_some();
        let is_held = doing.is_held;
        if is_held {
            doing.again = cx.now + GRACE;
        }
        let question = self.clients.add(doing);
        if !is_held {
            self.ask(question, None, cx);
        }
    }

    /// Asks who has not answered; of one group alone if it is named.
    pub(crate) fn ask(&mut self, question: u64, of: Option<GroupId>, cx: &mut Context<'_>) {
        if self.recall(question, cx) {
            return;
        }
        let Some(doing) = self.clients.get_mut(question) else { return };
        if doing.is_held && of.is_some() {
            // All of it is asked for, or nothing.
            return;
        }
        doing.is_held = false;
        let groups = of.map_or_else(|| doing.phase.groups(), |group| Vec::from([group]));
        let of_any = doing.asks_any();
        for group in groups {
            // Of its own replica, if there is one.
            let is_here = of_any && self.groups.contains_key(&group);
            let node = if is_here { Some(cx.me.node) } else { self.routes.primary(group) };
            let Some(node) = node else { continue };
            if let Some(message) = doing.phase.message(question, group, of_any) {
                doing.note_asked(group, node);
                // A question, and what a client asks for: both promise nothing.
                cx.fx.send_early(node, message);
            }
        }
    }

    /// Another node leads a group: what waits for that group is asked of it.
    pub(crate) fn ask_again(&mut self, group: GroupId, cx: &mut Context<'_>) {
        let questions: Vec<u64> = self.clients.doing.keys().copied().collect();
        for question in questions {
            self.ask(question, Some(group), cx);
        }
    }

    /// Time has passed: questions are asked again, or given up.
    pub(crate) fn tick_clients(&mut self, cx: &mut Context<'_>) {
        let now = cx.now;
        let is_over = |doing: &Doing| doing.ticket.is_some() && doing.deadline <= now;
        let of = |doing: &BTreeMap<u64, Doing>, is_it: &dyn Fn(&Doing) -> bool| -> Vec<u64> {
            doing.iter().filter(|(_, it)| is_it(it)).map(|(question, _)| *question).collect()
        };
        for question in of(&self.clients.doing, &is_over) {
            self.give_up(question, cx);
        }
        let asking = self.clients.asking.len() as u64;
        for question in of(&self.clients.doing, &|doing| doing.again <= now) {
            if self.refuse_out_of_reach(question, cx) {
                continue;
            }
            let Some(doing) = self.clients.get_mut(question) else { continue };
            if let (true, &Phase::Committing { tx, .. }) =
                (mutant!("lane_repeat_is_new"), &doing.phase)
            {
                self.clients.names.close(tx);
                if let Some(doing) = self.clients.remove(question) {
                    self.commit(doing, cx);
                }
                continue;
            }
            let asked = Time(doing.again.0.saturating_sub(doing.wait.0));
            let is_asking = matches!(doing.phase, Phase::Asking(_));
            let turns = if is_asking { 1 + asking / ASKING_AT_ONCE } else { 1 };
            let most = WAIT_MAX.0 * turns;
            doing.wait = Span((doing.wait.0 * 2).min(most));
            doing.again = now + doing.wait;
            self.counters.retries += 1;
            if doing.asks_any() {
                if !mutant!("lane_late_reads_count") {
                    self.read_strictly(question, cx);
                    continue;
                }
                doing.reads_any = false;
            }
            for group in doing.phase.groups() {
                if let Some(node) = doing.asked.get(&group).and_then(|asked| asked.last()) {
                    self.routes.is_late(group, *node, (asked, now));
                }
            }
            self.ask(question, None, cx);
        }
    }

    /// Whoever was asked says that another leads: the next one is asked soon.
    pub(super) fn ask_other(&mut self, question: u64, cx: &Context<'_>) {
        if let Some(doing) = self.clients.get_mut(question) {
            doing.again = doing.again.min(cx.now + WAIT_OTHER);
        }
    }

    /// The deadline has passed.
    fn give_up(&mut self, question: u64, cx: &mut Context<'_>) {
        if self.refuse_out_of_reach(question, cx) {
            return;
        }
        let Some(mut doing) = self.clients.remove(question) else { return };
        self.counters.expired += 1;
        let changes = doing.changes();
        let refusal = match &doing.phase {
            // It only reads: whatever becomes of it changes nothing, and nobody has to know.
            Phase::Committing { tx, shares } if !changes => {
                self.clients.names.close(*tx);
                no_quorum(self.routes.majority(shares[0].0))
            }
            Phase::Committing { shares, .. } => {
                let token = shares[0].1.token();
                doing.phase = Phase::Asking(token);
                if !mutant!("lane_asking_keeps_all") {
                    doing.sheet = Sheet::default();
                }
                if mutant!("lane_given_up_is_refused") {
                    Refusal::NoRoute
                } else {
                    self.outcome_open(token, cx)
                }
            }
            // It is as before: who asks may ask again.
            Phase::Recalling(recalled) => {
                Refusal::OutcomeOpen { token: recalled.seal(&self.settings.sealer, cx.lane) }
            }
            phase => {
                let group = phase.groups().first().copied();
                no_quorum(group.map_or(1, |group| self.routes.majority(group)))
            }
        };
        doing.refuse(refusal, cx);
        if matches!(doing.phase, Phase::Asking(_)) {
            self.clients.drop_oldest();
            self.go_on(doing, cx);
        }
    }
}

/// Too few were reached for a majority of a group, and nothing was changed.
fn no_quorum(needed: usize) -> Refusal {
    Refusal::NoQuorum { reached: 0, needed: u8::try_from(needed).unwrap_or(u8::MAX) }
}
