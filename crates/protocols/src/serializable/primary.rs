//! What a primary has in hand. All of it is lost with its view, by design: clients ask again, and
//! groups send again what they are not answered.

use super::act::{Results, WallMs};
use super::apply::{Executed, What};
use super::engine::Context;
use super::entry::Entry;
use super::head::{self, Oldest};
use super::items::Stored;
use super::locks::Mode;
use super::message::{Cause, Commit, Message, Outcome, Refused, Reply, Request};
use super::number::{Client, Rank, Token, TxId, VoteSeq};
use super::raw::Raw;
use super::read::Reading;
use super::rules;
use super::tail::Tail;
use super::timer::{Again, clock};
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
    /// When it was asked first.
    pub since: Time,
    /// When it is tried again; none unless it waits in queues.
    pub queued: Option<Again>,
}

/// The votes on a transaction that this group decides.
#[derive(Debug)]
pub struct Round {
    /// All its groups.
    pub groups: Vec<GroupId>,
    /// What the others have said last.
    pub votes: BTreeMap<GroupId, (VoteSeq, Result<Results, Cause>)>,
    /// How many votes have come; the paper counts them (Algorithm 2, line 10), this does not.
    pub came: usize,
    /// When it was heard of first.
    pub since: Time,
}

impl Round {
    /// About how many bytes its votes take.
    pub fn bytes(&self) -> usize {
        let of = |vote: &Result<Results, Cause>| vote.as_ref().map_or(0, head::of_results) + 64;
        self.votes.values().map(|(_, vote)| of(vote)).sum()
    }
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
    horizon: u64,
    /// A client that was proposed to be gone because it has counted too far.
    gone: Option<Client>,
    /// Transactions by name.
    pub received: BTreeMap<TxId, Received>,
    /// Who waits for a key; the lowest rank goes first.
    pub queue: BTreeMap<Raw, BTreeSet<Rank>>,
    /// Keys that may be free, or have changed, since somebody looked.
    pub woken: BTreeSet<Raw>,
    /// Votes on transactions that this group decides.
    pub rounds: BTreeMap<TxId, Round>,
    /// Whether there was no room to decide on some of them.
    pub is_undecided: bool,
    /// Who waits to hear how a transaction ends.
    pub tickets: BTreeMap<TxId, BTreeSet<Ticket>>,
    /// Votes that are sent again until there is a decision.
    pub asks: BTreeMap<TxId, Again>,
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
}

impl Primary {
    /// One that has nothing in hand.
    pub fn new(cx: &Context<'_>) -> Primary {
        Primary {
            tail: Tail::default(),
            handed: 0,
            handed_bytes: 0,
            is_refused: false,
            held_bytes: 0,
            read_bytes: 0,
            clock: clock(cx.state.head.clock, cx.wall),
            horizon: 0,
            gone: None,
            received: BTreeMap::new(),
            queue: BTreeMap::new(),
            woken: BTreeSet::new(),
            rounds: BTreeMap::new(),
            is_undecided: false,
            tickets: BTreeMap::new(),
            asks: BTreeMap::new(),
            revokes: BTreeMap::new(),
            tells: BTreeMap::new(),
            owed: BTreeMap::new(),
            applied: BTreeSet::new(),
            reads: BTreeMap::new(),
            blocked: BTreeMap::new(),
        }
    }

    /// The view begins, and the whole log was executed: votes and decisions of earlier primaries
    /// may not have arrived, so they are sent again.
    pub fn begin(&mut self, cx: &mut Context<'_>) {
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

    /// Whether no client may ask for more.
    pub fn is_full(&self) -> bool {
        let count = self.received.len().max(self.rounds.len()).max(self.tail.len());
        let of_reads = if mutant!("txn_reads_fill_hands") { self.read_bytes } else { 0 };
        let bytes = self.held_bytes + self.tail.bytes() + of_reads;
        let is_large = bytes >= rules::IN_HAND_BYTES_MAX && !mutant!("txn_in_hand_without_bytes");
        count >= rules::IN_HAND_MAX || is_large
    }

    /// Whether anything of a transaction that has not ended is known here.
    pub fn is_under_way(&self, tx: TxId, cx: &Context<'_>) -> bool {
        let head = &cx.state.head;
        let is_logged = head.pending.contains_key(&tx)
            || head.taken_back.contains_key(&tx)
            || head.revoked.contains_key(&tx);
        let is_in_hand = self.received.contains_key(&tx) || self.rounds.contains_key(&tx);
        is_logged || is_in_hand || self.tail.moves(tx)
    }

    /// Whether a transaction of which nothing is known here may begin. Of one that has ended, or is
    /// under way, nobody may be told that it was not taken, whatever the clock says by now: it was
    /// taken under another one.
    ///
    /// # Errors
    /// It may not; nothing was done.
    pub fn may_begin(&self, tx: TxId, cx: &Context<'_>) -> Result<(), Refused> {
        // A horizon lets nobody in below it, so whoever counts on from there is let in, though the
        // clock that has moved it was ahead.
        let horizon_ms = cx.state.head.horizon / rules::COUNTERS_PER_MS;
        rules::check_counter(tx, self.clock.max(horizon_ms))?;
        // What is ahead of time no horizon drops. While too much is remembered there is no more
        // room for such.
        let is_over = cx.state.head.sizes.remembered > rules::REMEMBERED_BYTES_MAX;
        let (counter, horizon) = (tx.counter, cx.state.head.horizon);
        let counter_max = rules::counter_of(self.clock).max(horizon);
        if is_over && counter > counter_max && !mutant!("txn_remembers_ahead") {
            return Err(Refused::Counter { counter, counter_max });
        }
        let is_full = self.is_full() || !self.may_remember(cx);
        if is_full { Err(Refused::Busy) } else { Ok(()) }
    }

    /// Whether there is room for what is remembered of one more, in what is copied in one turn, when
    /// the tail is executed.
    pub fn may_remember(&self, cx: &Context<'_>) -> bool {
        let bytes = cx.state.head.sizes.remembered + self.tail.ended_bytes();
        let bytes_max = rules::REMEMBERED_BYTES_MAX + rules::REMEMBERED_ROOM_BYTES;
        bytes < bytes_max || mutant!("txn_remembers_at_once")
    }

    /// Whether there is room for votes in what is copied in one turn, when the tail is executed.
    pub fn may_vote(&self, cx: &Context<'_>) -> bool {
        let bytes = cx.state.head.sizes.unended + self.tail.votes_bytes();
        bytes < rules::UNENDED_BYTES_MAX || mutant!("txn_head_grows")
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
        for Executed { what, .. } in &executed {
            invariant!(self.handed > 0, "what was not put into the log is not executed");
            let (entry, bytes) = self.tail.pop();
            let of = match what {
                What::Ended(tx) | What::Prepared(tx) | What::Reverted(tx) => Some(*tx),
                What::Revoked { tx, .. } => Some(*tx),
                What::Other => None,
            };
            invariant!(of == entry.tx(), "a view's log is its primary's");
            if matches!(entry, Entry::ClientGone { client } if self.gone == Some(client)) {
                self.gone = None;
            }
            self.handed -= 1;
            self.handed_bytes -= bytes;
        }
        self.hand_on(cx);
        for Executed { what, touched, .. } in executed {
            self.woken.extend(touched);
            match what {
                What::Ended(tx) => self.ended(tx, cx),
                What::Prepared(tx) => self.voted(tx, cx),
                What::Reverted(tx) => self.reverted(tx, cx),
                What::Revoked { tx, group, seq } => {
                    cx.send(group, Message::RevokeGranted { tx, seq });
                }
                What::Other => {}
            }
        }
    }

    /// A transaction has ended here: whoever waits for that is told.
    fn ended(&mut self, tx: TxId, cx: &mut Context<'_>) {
        self.drop_received(tx);
        if let Some(round) = self.rounds.remove(&tx) {
            self.held_bytes -= round.bytes();
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

    /// Answers whoever waits to hear how a transaction ends.
    pub(super) fn answer(&mut self, tx: TxId, outcome: &Outcome, cx: &mut Context<'_>) {
        for ticket in self.tickets.remove(&tx).unwrap_or_default() {
            cx.reply(ticket, Reply::Outcome { tx, outcome: outcome.clone() });
        }
    }

    /// Messages of other groups.
    pub fn on_message(&mut self, message: Message, cx: &mut Context<'_>) {
        match message {
            Message::Vote { tx, group, groups, seq, vote } => {
                self.on_vote(tx, (group, &groups), (seq, vote), cx);
            }
            Message::Decision { tx, group, outcome } => self.on_decision(tx, group, outcome, cx),
            Message::Applied { tx, group } => self.on_applied(tx, group),
            Message::RevokeVote { tx, group, groups, seq } => {
                self.on_revoke_vote(tx, (group, groups), seq, cx);
            }
            Message::RevokeGranted { tx, seq } => self.on_revoke_granted(tx, seq, cx),
        }
    }

    /// Requests of clients.
    pub fn on_request(&mut self, ticket: Ticket, request: Request, cx: &mut Context<'_>) {
        match request {
            Request::Commit(commit) => self.on_commit(ticket, commit, cx),
            Request::Read { keys } => self.on_read(ticket, keys, cx),
            Request::ReadAny { keys } => super::read::read_any(ticket, &keys, cx),
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
        self.tick_reads(cx);
    }

    /// Drops the oldest of what is remembered for clients if that is too much.
    fn tick_remembered(&mut self, cx: &mut Context<'_>) {
        let head = &cx.state.head;
        let is_proposed = self.horizon > head.horizon;
        let is_small = head.sizes.remembered <= rules::REMEMBERED_BYTES_MAX;
        if is_small || is_proposed || mutant!("txn_remembers_all") {
            return;
        }
        match head.oldest(rules::counter_of(self.clock)) {
            Some(Oldest::Below(counter)) => {
                self.horizon = counter;
                self.propose(Entry::Horizon { counter }, cx);
            }
            Some(Oldest::Of(client)) if self.gone.is_none() => {
                self.gone = Some(client);
                self.propose(Entry::ClientGone { client }, cx);
            }
            _ => {}
        }
    }

    /// Nothing more was heard of a client.
    pub fn client_gone(&mut self, client: Client, cx: &mut Context<'_>) {
        let has_any = cx.state.head.outcomes.range((client, 0)..=(client, u64::MAX)).next();
        if has_any.is_some() {
            self.propose(Entry::ClientGone { client }, cx);
        }
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
        if let Some(outcome) = state.outcome(tx) {
            return cx.reply(ticket, Reply::Outcome { tx, outcome });
        }
        let pending = state.head.pending.get(&tx).map(|prepared| &prepared.groups);
        let taken = state.head.taken_back.get(&tx).map(|taken| &taken.groups);
        let received = self.received.get(&tx).map(|received| &received.commit.groups);
        let groups = pending.or(taken).or(received);
        if groups.is_some_and(|groups| groups.first() != Some(&state.group)) {
            return cx.refuse(ticket, Refused::Groups);
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
