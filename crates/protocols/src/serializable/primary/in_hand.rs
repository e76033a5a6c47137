//! What a primary has in hand. All of it is lost with its view, by design: clients ask again, and
//! groups send again what they are not answered.

use super::ahead::Ahead;
use super::round::Round;
use super::tail::Tail;
use crate::serializable::commit::optimizations::Optimizations;
use crate::serializable::commit::read::Reading;
use crate::serializable::engine::Context;
use crate::serializable::execute::act::WallMs;
use crate::serializable::execute::apply::{Executed, What};
use crate::serializable::execute::entry::Entry;
use crate::serializable::execute::items::Stored;
use crate::serializable::execute::locks::Mode;
use crate::serializable::message::{Cause, Commit, Message, Outcome, Refused, Reply, Request};
use crate::serializable::moves::moving::Moving;
use crate::serializable::number::{Client, Rank, Token, TxId};
use crate::serializable::raw::Raw;
use crate::serializable::timer::{Again, clock};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::{GroupId, Ticket};
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::time::Time;

/// A transaction that a client has asked to commit, and that has not ended here.
#[derive(Debug)]
pub struct Received {
    /// What was asked.
    pub commit: Arc<Commit>,
    /// How each of its keys is to be held.
    pub modes: Arc<BTreeMap<Raw, Mode>>,
    /// About how many bytes it takes.
    pub bytes: usize,
    /// When it was asked first, or its vote was taken back last.
    pub since: Time,
    /// When it is tried again; none unless it waits in queues.
    pub queued: Option<Again>,
}

/// Groups that are told a decision until they have applied it.
#[derive(Debug)]
pub struct Telling {
    /// The groups.
    pub groups: BTreeSet<GroupId>,
    /// When they are told again.
    pub again: Again,
}

/// A primary.
#[derive(Debug)]
pub struct Primary {
    /// How it locks, and when it aborts.
    pub optimizations: Optimizations,
    /// What is in the log and not executed.
    pub tail: Tail,
    /// How many of those entries were handed to the log; the others wait for room.
    pub handed: usize,
    /// How many bytes those are.
    pub handed_bytes: usize,
    /// Whether the log has refused the last of them.
    pub is_refused: bool,
    /// About how many bytes requests and votes in hand take.
    pub held_bytes: usize,
    /// How many bytes the keys of reads in hand are.
    pub read_bytes: usize,
    /// The wall clock, but that it does not run backwards, nor behind that of the primary before,
    /// unless that was wrong: see [`clock`].
    pub clock: WallMs,
    /// The highest horizon that was proposed.
    pub horizon: u64,
    /// Clients that were proposed to be gone.
    pub gone: BTreeSet<Client>,
    /// What is remembered that is ahead of time.
    pub ahead: Ahead,
    /// While it is in flight that groups need not be told some decisions any more: about how many
    /// bytes are remembered for clients alone then.
    pub forgetting: Option<usize>,
    /// Transactions by name.
    pub received: BTreeMap<TxId, Received>,
    /// Who waits for a key; the lowest rank goes first.
    pub queue: BTreeMap<Raw, BTreeSet<Rank>>,
    /// Keys that may be free, or have changed, since somebody looked.
    pub woken: BTreeSet<Raw>,
    /// Keys of those that wait because there is too much in the tail.
    pub crowded: BTreeSet<Raw>,
    /// Votes on transactions that this group decides.
    pub rounds: BTreeMap<TxId, Round>,
    /// About how many bytes of a head they take if all of them end for lack of votes, which asks
    /// for no room.
    pub undone_bytes: usize,
    /// Whether there was no room to decide on some of them.
    pub is_undecided: bool,
    /// Who waits to hear how a transaction ends.
    pub tickets: BTreeMap<TxId, BTreeSet<Ticket>>,
    /// Votes that are sent again until there is a decision.
    pub asks: BTreeMap<TxId, Again>,
    /// Votes that were taken back, of transactions that nobody has asked this primary for; since
    /// when.
    pub unasked: BTreeMap<TxId, Time>,
    /// Votes of others' transactions that this group has asked to take back.
    pub revokes: BTreeMap<TxId, Again>,
    /// Decisions that are told again until all groups have applied them.
    pub tells: BTreeMap<TxId, Telling>,
    /// Who is told that a decision was applied.
    pub owed: BTreeMap<TxId, GroupId>,
    /// Decisions that all groups have applied.
    pub applied: BTreeSet<TxId>,
    /// Reads in hand.
    pub reads: BTreeMap<Ticket, Reading>,
    /// Reads that wait for a key.
    pub blocked: BTreeMap<Raw, BTreeSet<Ticket>>,
    /// Buckets that move.
    pub moving: Moving,
}

impl Primary {
    /// One that has nothing in hand.
    pub fn new(optimizations: Optimizations, cx: &Context<'_>) -> Primary {
        Primary {
            optimizations,
            tail: Tail::default(),
            handed: 0,
            handed_bytes: 0,
            is_refused: false,
            held_bytes: 0,
            read_bytes: 0,
            clock: clock(cx.state.head.clock, cx.wall),
            horizon: 0,
            gone: BTreeSet::new(),
            ahead: Ahead::counted(0, cx.now),
            forgetting: None,
            received: BTreeMap::new(),
            queue: BTreeMap::new(),
            woken: BTreeSet::new(),
            crowded: BTreeSet::new(),
            rounds: BTreeMap::new(),
            undone_bytes: 0,
            is_undecided: false,
            tickets: BTreeMap::new(),
            asks: BTreeMap::new(),
            unasked: BTreeMap::new(),
            revokes: BTreeMap::new(),
            tells: BTreeMap::new(),
            owed: BTreeMap::new(),
            applied: BTreeSet::new(),
            reads: BTreeMap::new(),
            blocked: BTreeMap::new(),
            moving: Moving::default(),
        }
    }

    /// The view begins, and the whole log was executed: votes and decisions of earlier primaries
    /// may not have arrived, so they are sent again.
    pub fn begin(&mut self, cx: &mut Context<'_>) {
        self.count_ahead(cx);
        let state = cx.state;
        for (tx, prepared) in &state.head.pending {
            if prepared.groups.first() == Some(&state.group) {
                self.hear_of(*tx, &prepared.groups, cx.now);
            } else {
                self.send_vote(*tx, cx);
            }
        }
        for (tx, taken) in &state.head.taken_back {
            if taken.groups.first() == Some(&state.group) {
                self.hear_of(*tx, &taken.groups, cx.now);
            }
        }
        for (tx, revoked) in &state.head.revoked {
            self.hear_of(*tx, &revoked.groups, cx.now);
        }
        for ((client, counter), recorded) in &state.head.outcomes {
            if !recorded.groups.is_empty() {
                self.tell(TxId { counter: *counter, client: *client }, cx);
            }
        }
        self.begin_moves(cx);
    }

    /// Takes the clock that is passed in, if it has gone on. What is executed while this one leads
    /// has its own clocks of before.
    pub fn saw_clock(&mut self, cx: &Context<'_>) {
        if mutant!("txn_clock_runs_back") {
            self.clock = cx.wall;
            return;
        }
        self.clock = clock(self.clock, cx.wall);
    }

    /// How many transactions it has in hand.
    pub fn in_hand(&self) -> usize {
        self.received.len() + self.rounds.len() + self.tail.len()
    }

    /// What a key will have when the tail is executed.
    pub fn item(&self, key: &Raw, cx: &Context<'_>) -> Stored {
        if let Some(item) = self.tail.item(key) {
            return item.clone();
        }
        let mut item = cx.state.item(key, cx.table);
        if item.content.is_none() && item.op == 0 {
            item.version = item.version.max(self.tail.floor());
        }
        item
    }

    /// Entries were executed: those that were put into the log first.
    pub fn on_executed(&mut self, executed: Vec<Executed>, cx: &mut Context<'_>) {
        let mut steps = Vec::new();
        for Executed { what, .. } in &executed {
            invariant!(self.handed > 0, "what was not put into the log is not executed");
            let (entry, bytes) = self.tail.pop();
            let of = match what {
                What::Ended(tx) | What::Prepared(tx) | What::Reverted(tx) => Some(*tx),
                What::Revoked { tx, .. } => Some(*tx),
                What::Other => None,
            };
            invariant!(of == entry.tx(), "a view's log is its primary's");
            match entry {
                Entry::ClientGone { client } => _ = self.gone.remove(&client),
                Entry::Forget { .. } => self.forgetting = None,
                Entry::Move(step) => steps.push(step),
                _ => {}
            }
            self.handed -= 1;
            self.handed_bytes -= bytes;
        }
        self.hand_on(cx);
        if self.may_propose() && !mutant!("txn_room_wakes_nobody") {
            self.woken.append(&mut self.crowded);
        }
        for Executed { what, touched, .. } in executed {
            self.woken.extend(touched);
            match what {
                What::Ended(tx) => self.ended(tx, cx),
                What::Prepared(tx) => self.voted(tx, cx),
                What::Reverted(tx) => self.reverted(tx, cx),
                What::Revoked { tx, group: to, seq } => {
                    cx.send(to, Message::RevokeGranted { tx, group: cx.state.group, seq });
                }
                What::Other => {}
            }
        }
        steps.iter().for_each(|step| self.has_stepped(step, cx));
    }

    /// A transaction has ended here: whoever waits for that is told.
    fn ended(&mut self, tx: TxId, cx: &mut Context<'_>) {
        self.drop_received(tx);
        if let Some(round) = self.rounds.remove(&tx) {
            self.held_bytes -= round.bytes();
            self.undone_bytes -= round.undone_bytes();
        }
        self.asks.remove(&tx);
        self.revokes.remove(&tx);
        let outcome = cx.state.outcome(tx).unwrap_or_else(|| cx.state.forgotten(tx));
        self.answer(tx, &outcome, cx);
        if let Some(coordinator) = self.owed.remove(&tx) {
            cx.send(coordinator, Message::Applied { tx, group: cx.state.group });
        }
        self.tell(tx, cx);
    }

    /// How a transaction has ended, as its client is told: one thing, however often it asks. A mark
    /// may have passed what is under way, which is logged to end in one way or the other.
    pub(crate) fn outcome(&self, tx: TxId, cx: &Context<'_>) -> Option<Outcome> {
        let outcome = cx.state.outcome(tx)?;
        let is_open = cx.state.recorded(tx).is_none() && self.is_under_way(tx, cx);
        let is_running = is_open && !mutant!("txn_forgotten_under_way");
        Some(if is_running { Outcome::Running } else { outcome })
    }

    /// Answers whoever waits to hear how a transaction ends.
    pub(crate) fn answer(&mut self, tx: TxId, outcome: &Outcome, cx: &mut Context<'_>) {
        for ticket in self.tickets.remove(&tx).unwrap_or_default() {
            cx.reply(ticket, Reply::Outcome { tx, outcome: outcome.clone() });
        }
    }

    /// Messages of other groups.
    pub fn on_message(&mut self, message: Message, cx: &mut Context<'_>) {
        if !message.is_of(cx.state.group) {
            return;
        }
        match message {
            Message::Vote { tx, group, groups, seq, vote } => {
                self.on_vote(tx, (group, &groups), (seq, vote), cx);
            }
            Message::Decision { tx, group, outcome } => self.on_decision(tx, group, outcome, cx),
            Message::Applied { tx, group } => self.on_applied(tx, group),
            Message::RevokeVote { tx, group, groups, seq } => {
                self.on_revoke_vote(tx, (group, groups), seq, cx);
            }
            Message::RevokeGranted { tx, group, seq } => {
                self.on_revoke_granted(tx, group, seq, cx);
            }
            Message::Move { group, bucket, said } => self.on_said(bucket, (group, said), cx),
        }
    }

    /// Requests of clients.
    pub fn on_request(&mut self, ticket: Ticket, request: Request, cx: &mut Context<'_>) {
        match request {
            Request::Commit(commit) => self.on_commit(ticket, commit, cx),
            Request::Read { keys } => self.on_read(ticket, keys, cx),
            Request::ReadAny { keys } => {
                crate::serializable::commit::read::read_any(ticket, &keys, cx)
            }
            Request::Check { reads } => self.on_check(ticket, reads, cx),
            Request::Outcome { token } => self.on_outcome(ticket, token, cx),
        }
    }

    /// Time has passed.
    pub fn tick(&mut self, cx: &mut Context<'_>) {
        self.hand_on(cx);
        self.tick_remembered(cx);
        self.tick_votes(cx);
        self.tick_decisions(cx);
        self.tick_queue(cx);
        self.tick_taken_back(cx);
        self.tick_reads(cx);
        self.tick_moves(cx);
    }

    /// Whoever waits for a key that was touched looks again, the oldest first.
    pub fn settle(&mut self, cx: &mut Context<'_>) {
        while let Some(key) = self.woken.pop_first() {
            for ticket in self.blocked.remove(&key).unwrap_or_default() {
                self.try_read(ticket, cx);
            }
            let ranks: Vec<Rank> = self.queue.get(&key).into_iter().flatten().copied().collect();
            for rank in ranks {
                self.try_prepare(rank.tx, cx);
            }
        }
    }

    /// A client asks for the outcome of a transaction. If nobody has decided, the answer is logged
    /// first: a late request would commit it otherwise, after the client was told that it failed.
    ///
    /// What has ended, or was forgotten, is said at once, also by who may be deposed: it was
    /// executed, so it is committed, and no later entry takes it back.
    fn on_outcome(&mut self, ticket: Ticket, token: Token, cx: &mut Context<'_>) {
        let (state, tx) = (cx.state, token.tx);
        if token.coordinator != state.group {
            return cx.refuse(ticket, Refused::Groups);
        }
        if tx.counter == 0 {
            return cx.refuse(ticket, Refused::Empty);
        }
        if mutant!("txn_counter_before_outcome")
            && let Err(refused) = self.may_begin(tx, cx)
        {
            return cx.refuse(ticket, refused);
        }
        let pending = state.head.pending.get(&tx).map(|prepared| &prepared.groups);
        let taken = state.head.taken_back.get(&tx).map(|taken| &taken.groups);
        let received = self.received.get(&tx).map(|received| &received.commit.groups);
        let groups = pending.or(taken).or(received);
        let is_other = groups.is_some_and(|groups| groups.first() != Some(&state.group));
        if is_other && !mutant!("txn_tells_for_others") {
            return cx.refuse(ticket, Refused::Groups);
        }
        if let Some(outcome) = self.outcome(tx, cx) {
            return cx.reply(ticket, Reply::Outcome { tx, outcome });
        }
        if self.is_under_way(tx, cx) {
            return cx.reply(ticket, Reply::Outcome { tx, outcome: Outcome::Running });
        }
        if mutant!("txn_outcome_presumed") {
            let outcome = Outcome::Aborted(Cause::Asked);
            return cx.reply(ticket, Reply::Outcome { tx, outcome });
        }
        if let Err(refused) = self.may_begin(tx, cx) {
            return cx.refuse(ticket, refused);
        }
        self.tickets.entry(tx).or_default().insert(ticket);
        let (groups, outcome) = (Vec::new(), Err(Cause::Asked));
        self.propose(Entry::Decided { tx, groups, outcome }, cx);
    }
}
