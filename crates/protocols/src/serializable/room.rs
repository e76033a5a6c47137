//! Room: what a primary takes on, and what is dropped when too much is remembered.

use super::engine::Context;
use super::entry::Entry;
use super::head::{self, Oldest};
use super::message::Refused;
use super::number::{Client, TxId};
use super::primary::Primary;
use super::rules;
use quorate_kernel::mutant;

impl Primary {
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

    /// Whether there is room for what is remembered of one more, in what is copied in one turn,
    /// when the tail is executed.
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

    /// Whether there is room for a decision in what is copied in one turn, when the tail is
    /// executed: it takes the place of this group's vote.
    pub fn may_decide(&self, tx: TxId, cx: &Context<'_>) -> bool {
        let state = cx.state;
        let of_tail = self.tail.votes_bytes() + self.tail.ended_bytes();
        let own = state.head.pending.get(&tx).map_or(0, head::of_vote);
        let bytes = state.head.sizes.unended + of_tail - own;
        bytes < rules::UNENDED_ROOM_BYTES || mutant!("txn_decides_at_once")
    }

    /// Drops the oldest of what is remembered for clients if that is too much.
    pub fn tick_remembered(&mut self, cx: &mut Context<'_>) {
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
}
