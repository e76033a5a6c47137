//! Room: what a primary takes on, and what is dropped when too much is remembered.

use super::ahead::Ahead;
use super::in_hand::Primary;
use crate::serializable::commit::load::keys_of;
use crate::serializable::engine::Context;
use crate::serializable::execute::entry::Entry;
use crate::serializable::execute::head;
use crate::serializable::message::{Commit, Refused};
use crate::serializable::number::{Client, TxId};
use crate::serializable::rules::{self, FORGET_MAX};
use alloc::collections::BTreeSet;
use quorate_kernel::mutant;

impl Primary {
    /// Whether no client may ask for more.
    pub fn is_full(&self) -> bool {
        self.has_in_hand(rules::IN_HAND_MAX, rules::IN_HAND_BYTES_MAX)
    }

    /// Whether nothing more is heard of that other groups tell.
    fn is_full_told(&self) -> bool {
        if mutant!("txn_told_needs_a_free_hand") {
            return self.is_full();
        }
        let count_max = rules::IN_HAND_MAX + rules::IN_HAND_TOLD_MAX;
        self.has_in_hand(count_max, rules::IN_HAND_TOLD_BYTES_MAX)
    }

    fn has_in_hand(&self, count_max: usize, bytes_max: usize) -> bool {
        let count = self.received.len().max(self.rounds.len()).max(self.tail.len());
        let of_reads = if mutant!("txn_reads_fill_hands") { self.read_bytes } else { 0 };
        let bytes = self.held_bytes + self.tail.bytes() + of_reads;
        let is_large = bytes >= bytes_max && !mutant!("txn_in_hand_without_bytes");
        count >= count_max || is_large
    }

    /// Whether one that waits may be put into the log: what it leaves may be as large as what is
    /// there, however little was asked, and as many may wait for one key as there are in hand.
    pub fn may_propose(&self) -> bool {
        self.tail.bytes() < rules::IN_HAND_BYTES_MAX || mutant!("txn_waiters_without_bytes")
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
        // While there is too much that is ahead of time, it waits until time has come there.
        if self.is_ahead(tx, cx)
            && self.ahead.bytes() >= rules::AHEAD_BYTES_MAX
            && !mutant!("txn_remembers_ahead")
        {
            return Err(Refused::Busy);
        }
        let is_full = self.is_full() || !self.may_remember(tx, cx);
        if is_full { Err(Refused::Busy) } else { Ok(()) }
    }

    /// Whether a share of which nothing is known here may begin.
    ///
    /// # Errors
    /// It may not; nothing was done.
    pub fn may_take(&self, commit: &Commit, cx: &Context<'_>) -> Result<(), Refused> {
        if self.misplaced(keys_of(commit), cx) == Some(Refused::Moving) {
            return Err(Refused::Moving);
        }
        let tx = commit.rank.tx;
        self.may_begin(tx, cx)?;
        // It would end for lack of votes without a look at room.
        let decides = commit.groups[0] == cx.state.group && commit.groups.len() > 1;
        let has_room = self.may_decide(tx, cx) || mutant!("txn_begins_without_room");
        if decides && !has_room { Err(Refused::Busy) } else { Ok(()) }
    }

    /// Whether a transaction may be decided here that another group tells of, and of which nothing
    /// is known. It is told again: a group asks until it is answered. Meanwhile it holds keys, and
    /// its time does not run before it is heard: so clients cannot fill this room.
    pub fn may_hear(&self, tx: TxId, cx: &Context<'_>) -> bool {
        let room = if mutant!("txn_told_shares_unended") { 0 } else { rules::TOLD_ROOM_BYTES };
        let may_end = self.has_room_until_ended(tx, room, cx)
            && (self.may_vote(cx) || !mutant!("txn_hears_if_it_may_vote"));
        let has_room = !self.is_full_told() && self.may_remember_told(tx, cx) && may_end;
        has_room || mutant!("txn_hears_all")
    }

    /// Whether one may end here that another group has decided, and of which nothing is known. It
    /// is told again too. What has been voted on ends in any case.
    pub fn may_end(&self, tx: TxId, cx: &Context<'_>) -> bool {
        let has_room = !self.is_full_told() && self.may_remember_told(tx, cx);
        has_room || mutant!("txn_ends_all")
    }

    /// The highest counter that is not ahead of time.
    fn counter_max(&self, cx: &Context<'_>) -> u64 {
        rules::counter_of(self.clock).max(cx.state.head.horizon)
    }

    /// Whether a transaction's counter is ahead of time, so that no horizon drops it soon.
    fn is_ahead(&self, tx: TxId, cx: &Context<'_>) -> bool {
        tx.counter > self.counter_max(cx) && !mutant!("txn_horizon_ahead")
    }

    /// Notes what will be remembered of a transaction, if that is ahead of time.
    pub fn note_ahead(&mut self, tx: TxId, bytes: usize, cx: &Context<'_>) {
        if self.is_ahead(tx, cx) {
            self.ahead.note(bytes);
        }
    }

    /// Counts anew what is remembered that is ahead of time: since it was noted, time has gone on,
    /// and some was dropped.
    pub fn count_ahead(&mut self, cx: &Context<'_>) {
        let counter_max = self.counter_max(cx);
        if mutant!("txn_horizon_ahead") {
            return;
        }
        let of_tail = self.tail.remembered_bytes_ahead(counter_max);
        let bytes = cx.state.head.bytes_ahead(counter_max) + of_tail;
        self.ahead = Ahead::counted(bytes, cx.now);
    }

    /// Whether there is room for what is remembered of one more, in what is copied in one turn,
    /// when the tail is executed.
    pub fn may_remember(&self, tx: TxId, cx: &Context<'_>) -> bool {
        self.has_room_for(tx, 0, cx)
    }

    /// The same of what other groups have told of.
    pub fn may_remember_told(&self, tx: TxId, cx: &Context<'_>) -> bool {
        let room = if mutant!("txn_told_is_last") { 0 } else { rules::TOLD_ROOM_BYTES };
        self.has_room_for(tx, room, cx)
    }

    fn has_room_for(&self, tx: TxId, room: usize, cx: &Context<'_>) -> bool {
        let is_apart = !mutant!("txn_ahead_with_others");
        let is_ahead = is_apart && self.is_ahead(tx, cx);
        let is_of_all = mutant!("txn_decided_takes_room_of_clients");
        let tail = &self.tail;
        let of_tail = if is_of_all { tail.ended_bytes() } else { tail.remembered_bytes() };
        let in_flight = of_tail + self.forgetting.unwrap_or_default();
        let ahead = if is_apart { self.ahead.bytes() } else { 0 };
        let others = (cx.state.head.sizes.remembered + in_flight).saturating_sub(ahead);
        let others_max = rules::REMEMBERED_BYTES_MAX + rules::REMEMBERED_ROOM_BYTES + room;
        // Time catches up with what is ahead, and what was is of the others then: so who is ahead
        // needs room among both, or all together would have no bound.
        let is_apart_for_good = is_ahead && mutant!("txn_ahead_beside_others");
        let has_room = others < others_max || is_apart_for_good;
        let ahead_max = rules::AHEAD_BYTES_MAX + rules::AHEAD_ROOM_BYTES;
        let has_room_ahead = !is_ahead || ahead < ahead_max;
        (has_room && has_room_ahead) || mutant!("txn_remembers_at_once")
    }

    /// Whether there is room for votes in what is copied in one turn, when the tail is executed.
    pub fn may_vote(&self, cx: &Context<'_>) -> bool {
        let bytes = cx.state.head.sizes.unended + self.tail.votes_bytes();
        bytes < rules::UNENDED_BYTES_MAX || mutant!("txn_head_grows")
    }

    /// Whether there is room for a decision in what is copied in one turn, when the tail is
    /// executed: it takes the place of this group's vote.
    pub fn may_decide(&self, tx: TxId, cx: &Context<'_>) -> bool {
        self.has_room_until_ended(tx, 0, cx) || mutant!("txn_decides_at_once")
    }

    fn has_room_until_ended(&self, tx: TxId, room: usize, cx: &Context<'_>) -> bool {
        let state = cx.state;
        let of_tail = self.tail.votes_bytes() + self.tail.ended_bytes();
        let own = state.head.pending.get(&tx).map_or(0, head::of_vote);
        // What lacks votes for too long ends without a look at room.
        let is_free = mutant!("txn_open_rounds_take_no_room");
        let open = if is_free { 0 } else { self.undone_bytes };
        let bytes = state.head.sizes.unended + of_tail + open - own;
        bytes < rules::UNENDED_ROOM_BYTES + room
    }

    /// Drops some of what is remembered for clients if that is too much.
    pub fn tick_remembered(&mut self, cx: &mut Context<'_>) {
        if mutant!("txn_remembers_all") {
            return;
        }
        let is_much = cx.state.head.sizes.remembered > rules::REMEMBERED_BYTES_MAX;
        // What is about to be forgotten by groups is noted, and not remembered yet.
        let is_counted = self.forgetting.is_none() && self.ahead.is_due(is_much, cx.now);
        if is_counted {
            self.count_ahead(cx);
        }
        let may_drop = is_counted || mutant!("txn_drops_by_an_old_count");
        if may_drop && self.ahead.bytes() >= rules::AHEAD_BYTES_MAX {
            self.drop_ahead(cx);
        }
        self.drop_oldest(cx);
    }

    /// Drops what is remembered of clients that have counted furthest, as many as there have to be:
    /// a horizon there would pass all others.
    fn drop_ahead(&mut self, cx: &mut Context<'_>) {
        let (ahead, enough) = (self.ahead.bytes(), rules::AHEAD_BYTES_MAX / 4 * 3);
        let (mut dropped, mut clients) = (0, BTreeSet::new());
        let most = if mutant!("txn_drops_one_client") { 1 } else { FORGET_MAX };
        for (client, bytes) in cx.state.head.ahead(self.counter_max(cx)) {
            if ahead - dropped.min(ahead) <= enough || clients.len() >= most {
                break;
            }
            dropped += bytes;
            // Of some it is in the log already.
            if self.gone.insert(client) {
                clients.insert(client);
            }
        }
        if !clients.is_empty() {
            self.ahead.note_dropped();
        }
        for client in clients {
            self.propose(Entry::ClientGone { client }, cx);
        }
    }

    /// Drops the oldest of what is remembered, but for what is ahead of time, and what may be under
    /// way: if there is much of that, others wait until it is older.
    fn drop_oldest(&mut self, cx: &mut Context<'_>) {
        let head = &cx.state.head;
        let is_proposed = self.horizon > head.horizon;
        let others = head.sizes.remembered.saturating_sub(self.ahead.bytes());
        if others <= rules::REMEMBERED_BYTES_MAX || is_proposed {
            return;
        }
        let lag = if mutant!("txn_horizon_at_once") { 0 } else { rules::HORIZON_LAG_MS };
        let highest = rules::counter_of(self.clock.saturating_sub(lag));
        let highest = if mutant!("txn_horizon_ahead") { u64::MAX } else { highest };
        // Somebody must be able to count on from there, whatever this clock says.
        let is_last = mutant!("txn_horizon_at_the_end");
        let highest = if is_last { highest } else { highest.min(u64::MAX - 1) };
        if let Some(counter) = head.oldest(highest) {
            self.horizon = counter;
            self.propose(Entry::Horizon { counter }, cx);
        }
    }

    /// Nothing more was heard of a client. If there is no room now, or some of its transactions
    /// are to be told to other groups first, that is said again.
    pub fn client_gone(&mut self, client: Client, cx: &mut Context<'_>) {
        let is_endless = mutant!("txn_gone_again_and_again");
        let head = &cx.state.head;
        let lowest = if is_endless { 0 } else { head.lowest(client) };
        let has_any = head.outcomes.range((client, lowest)..=(client, u64::MAX)).next().is_some();
        let has_room = self.gone.len() < FORGET_MAX && !self.is_full();
        if has_any && (has_room || is_endless) && (self.gone.insert(client) || is_endless) {
            self.propose(Entry::ClientGone { client }, cx);
        }
    }
}
