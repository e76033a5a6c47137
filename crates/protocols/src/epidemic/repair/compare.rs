//! Repair: members of a slice compare what they have, one with one other each period.
//!
//! ```text
//! a ── Compare(sums of parts) ─▶ b     Equal: nothing follows
//! a ◀── Leaves(sums) ─────────── b     of parts that differ; requests that a may not know
//! a ── Listed(versions) ───────▶ b     of leaves that differ
//! a ◀── Records, wanted ──────── b     what is newer at b, and what is newer at a
//! a ── Records ────────────────▶ b
//! ```
//! The larger version wins, so whatever was missed, and wherever, all become equal.

use crate::epidemic::message::{LISTED_MAX, Message, PAGE_BYTES, Page, RECORDS_MAX, SUMS_MAX};
use crate::epidemic::replica::range::{Leaf, PARTS_MAX, Range, position};
use crate::epidemic::replica::seen::Done;
use crate::epidemic::replica::store::{Entry, Put, Record, Store};
use crate::epidemic::replica::version::{RequestId, Version};
use crate::epidemic::state::State;
use crate::epidemic::{Context, Epidemic, Level};
use crate::epto::{EventKey, LogicalTime};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::rng::Rng;
use quorate_kernel::{invariant, mutant, probe};

/// The most leaves that are listed at a time.
const LEAVES_MAX: usize = 8;

/// Leaves from the first to the last.
type Piece = (Leaf, Leaf);

/// The sums of leaves of these parts, as many as a message takes, and which leaves they are about.
/// What has no room is compared another time, so it is another part each time, and another piece of
/// a part that is too long.
fn some_of(store: &Store, mut left: Vec<Piece>, rng: &mut Rng) -> (Vec<Piece>, Vec<(Leaf, u64)>) {
    let (mut parts, mut told) = (Vec::new(), Vec::new());
    let any = |count: usize, rng: &mut Rng| match count {
        1 => 0,
        _ if mutant!("epidemic_compares_the_first_alone") => 0,
        _ => rng.below(count as u64) as usize,
    };
    while !left.is_empty() {
        let (first, last) = left.swap_remove(any(left.len(), rng));
        let (room, count) = (SUMS_MAX - told.len(), store.sums(first, last).count());
        let may_cut = count > room && parts.len() + 1 < PARTS_MAX;
        let skipped = if may_cut { any(count, rng) } else { 0 };
        // Behind the last leaf of a part come its first ones.
        for (skipped, room) in [(skipped, room), (0, room.saturating_sub(count - skipped))] {
            if room == 0 || parts.len() == PARTS_MAX {
                return (parts, told);
            }
            let mut sums = store.sums(first, last).skip(skipped);
            let piece: Vec<(Leaf, u64)> = sums.by_ref().take(room).collect();
            let begin = piece.first().filter(|_| skipped > 0).map_or(first, |(leaf, _)| *leaf);
            let end = sums.next().map_or(last, |(leaf, _)| Leaf(leaf.0 - 1));
            told.extend(piece);
            parts.push((begin, end));
            if skipped == 0 {
                break;
            }
        }
    }
    (parts, told)
}

impl Epidemic {
    /// A period of repair has passed.
    pub(in crate::epidemic) fn on_repair_round(&mut self, cx: &mut Context<'_>) {
        let Some(range) = self.state.range().filter(|_| self.state.is_whole()) else { return };
        self.end_if_nobody_has_it(range, cx);
        if let Some(member) = self.state.member(cx.rng) {
            self.compare(range, member, Vec::new(), cx);
            self.ask_for_copy(range, member, cx);
        }
    }

    /// Asks a node whether it has the same in a range, of which it has a copy of these parts.
    pub(super) fn compare(
        &mut self,
        range: Range,
        with: NodeId,
        copies: Vec<Range>,
        cx: &mut Context<'_>,
    ) {
        self.state.questions += 1;
        let number = self.state.questions;
        self.state.doubt.ask_copy(with, range, number, copies);
        let sums = self.sums(&range, range.parts_usual());
        let (ids, last) = (self.state.seen.sum(&range), self.state.last);
        let forgotten = self.state.seen.forgotten();
        cx.fx.send(with, Message::Compare { number, range, sums, ids, last, forgotten });
    }

    /// Whether this node has all of a range.
    fn may_tell(&self, range: &Range) -> bool {
        let is_ready = self.state.ready.is_some_and(|ready| ready.covers(range));
        is_ready || mutant!("epidemic_joiner_repairs")
    }

    fn sums(&self, range: &Range, count: usize) -> Vec<u64> {
        let parts = range.parts(count).expect("it is cut into whole leaves");
        parts.into_iter().map(|(first, last)| self.state.store.sum_of(first, last)).collect()
    }

    /// A node tells what it has in a range.
    pub(in crate::epidemic) fn on_compare(
        &mut self,
        from: Incarnation,
        (number, range): (u64, Range),
        theirs: (&[u64], u64),
        (last, forgotten): (Option<EventKey>, Option<EventKey>),
        cx: &mut Context<'_>,
    ) {
        invariant!(range.is_sound(), "a range is what it says");
        if let Some(last) = last {
            self.state.epto.on_seen(last.time);
        }
        // Who has not all of it has nothing to say: what it finds on its disk may be purged
        // elsewhere.
        if !self.may_tell(&range) {
            return;
        }
        // What one has forgotten both have, or they would differ for ever.
        self.state.seen.forget_up_to(forgotten, &mut self.state.writes);
        self.flush(cx);
        let (sums, ids) = theirs;
        let mine = self.sums(&range, sums.len());
        let knows_ids = ids == self.state.seen.sum(&range);
        let is_alone = core::mem::take(&mut self.state.is_alone);
        if is_alone && mine != sums && !mutant!("epidemic_alone_for_ever") {
            // Others were there all the time: it began with nothing because it was cut off.
            probe!("epidemic/was_cut_off");
            return self.leave_place(cx);
        }
        if mine == sums && knows_ids {
            cx.fx.send(from, Message::Equal { number });
            return;
        }
        probe!("epidemic/differs");
        let parts = range.parts(sums.len()).expect("it was checked on arrival");
        let differing = parts.iter().zip(mine.iter().zip(sums)).filter(|(_, (a, b))| a != b);
        let differing = differing.map(|(part, _)| *part).collect();
        let (parts, told) = some_of(&self.state.store, differing, cx.rng);
        let ids =
            if knows_ids { Vec::new() } else { self.state.seen.newest(&range, None, RECORDS_MAX) };
        invariant!(told.len() <= SUMS_MAX, "an answer is bounded");
        cx.fx.send(from, Message::Leaves { number, parts, sums: told, ids });
    }

    /// A node has the same.
    pub(in crate::epidemic) fn on_equal(
        &mut self,
        from: Incarnation,
        number: u64,
        cx: &mut Context<'_>,
    ) {
        let before = self.state.doubt.count();
        self.state.doubt.end_equal(from.node, number);
        invariant!(self.state.doubt.count() <= before, "an answer raises no doubt");
        self.flush_doubt(cx);
        invariant!(self.state.writes.is_empty(), "all that was changed was written");
    }

    /// A node has other sums: what this one has there is listed.
    pub(in crate::epidemic) fn on_leaves(
        &mut self,
        from: Incarnation,
        (number, parts): (u64, &[(Leaf, Leaf)]),
        sums: Vec<(Leaf, u64)>,
        ids: Vec<(RequestId, Done)>,
        cx: &mut Context<'_>,
    ) {
        invariant!(sums.len() <= SUMS_MAX, "an answer is bounded");
        self.merge(Vec::new(), ids);
        self.flush(cx);
        let is_whole = sums.len() < SUMS_MAX;
        let theirs: BTreeMap<Leaf, u64> = sums.into_iter().collect();
        let store = &self.state.store;
        let mine = parts.iter().flat_map(|(first, last)| store.sums(*first, *last));
        let mine: BTreeMap<Leaf, u64> = mine.collect();
        let all: BTreeSet<Leaf> = mine.keys().chain(theirs.keys()).copied().collect();
        let differing = all.into_iter().filter(|leaf| mine.get(leaf) != theirs.get(leaf));
        let mut leaves: Vec<Leaf> = differing.collect();
        self.state.doubt.end_leaves((from.node, number), parts, &leaves, is_whole);
        self.flush_doubt(cx);
        // What was given up since it was compared is handed over page by page: it is in good hands
        // when each page was answered, and of this listing the first may be left out.
        let state = &self.state;
        let is_own = |range: Range| state.is_mine(range.first) || state.is_mine(range.last);
        leaves
            .retain(|it| is_own(Range::of_leaf(*it)) || mutant!("epidemic_lists_what_it_gave_up"));
        for _ in 0..LEAVES_MAX.min(leaves.len()) {
            let leaf = leaves.swap_remove(cx.rng.below(leaves.len() as u64) as usize);
            let range = Range::of_leaf(leaf);
            // A long leaf is compared from a key on, another one each time.
            let (mut after, mut pages) = (None, 0);
            let (held, until) = loop {
                let (held, until) = self.state.store.list(&range, after.as_ref(), LISTED_MAX);
                pages += 1;
                if until.is_none() || cx.rng.below(pages + 1) == 0 {
                    break (held, until);
                }
                after = until;
            };
            self.state.questions += 1;
            let number = self.state.questions;
            if after.is_none() && until.is_none() {
                self.state.doubt.list(from.node, leaf, number);
            }
            let page = Page { number, leaf, until };
            cx.fx.send(from, Message::Listed { page, after, held });
        }
        invariant!(self.state.writes.is_empty(), "all that was changed was written");
    }

    /// All that a node has between two keys.
    pub(in crate::epidemic) fn on_listed(
        &mut self,
        from: Incarnation,
        page: Page,
        after: Option<Bytes>,
        held: Vec<Entry>,
        cx: &mut Context<'_>,
    ) {
        invariant!(self.state.writes.is_empty(), "an input begins without writes");
        let range = Range::of_leaf(page.leaf);
        if !self.may_tell(&range) {
            return;
        }
        let (mine, _) = self.state.store.list(&range, after.as_ref(), usize::MAX);
        let is_within = |key: &Bytes| page.until.as_ref().is_none_or(|until| key <= until);
        let mine: Vec<_> = mine.into_iter().filter(|one| is_within(&one.key)).collect();
        let wanted = newer(&held, &mine).into_iter().filter(|(key, _)| range.has(position(key)));
        let wanted = wanted.take(LISTED_MAX).collect();
        let records = self.records(&newer(&mine, &held), cx);
        self.tell(from, Some(page), records, wanted, cx);
        invariant!(self.state.writes.is_empty(), "what is told is not changed");
    }

    /// Records of another node, and what it would like.
    pub(in crate::epidemic) fn on_records(
        &mut self,
        from: Incarnation,
        (page, heard, records): (Option<Page>, LogicalTime, Vec<Record>),
        ids: Vec<(RequestId, Done)>,
        wanted: &[(Bytes, Version)],
        cx: &mut Context<'_>,
    ) {
        invariant!(self.state.writes.is_empty(), "an input begins without writes");
        if self.is_late(heard) {
            return;
        }
        self.on_former_records(page.clone(), wanted.is_empty());
        let bytes: usize = records.iter().map(bytes_of).sum();
        let is_all = records.len() < RECORDS_MAX && bytes < PAGE_BYTES;
        if let Some(Page { number, leaf, until: None }) = page.filter(|_| is_all) {
            self.state.doubt.end_listed(from.node, leaf, number);
        }
        self.state.doubt.store(&mut self.state.writes);
        self.merge_answer(heard, records, ids);
        self.flush(cx);
        // Nor does who has lost its place hand out what it has.
        let wanted = if self.state.ready.is_some() { wanted } else { &[] };
        let records = self.records(wanted, cx);
        if !records.is_empty() {
            self.tell(from, None, records, Vec::new(), cx);
        }
        invariant!(self.state.writes.is_empty(), "all that was changed was written");
    }

    fn tell(
        &self,
        to: Incarnation,
        page: Option<Page>,
        records: Vec<Record>,
        wanted: Vec<(Bytes, Version)>,
        cx: &mut Context<'_>,
    ) {
        let named = |record: &Record| Some((record.id, self.state.seen.get(record.id)?));
        let ids = records.iter().filter_map(named).collect();
        let heard = self.heard_of(records.iter().map(|record| &record.key));
        cx.fx.send(to, Message::Records { page, heard, records, ids, wanted });
    }

    /// As many of these as a message holds.
    fn records(&self, named: &[(Bytes, Version)], cx: &Context<'_>) -> Vec<Record> {
        let (mut records, mut bytes) = (Vec::new(), 0);
        for (key, version) in named {
            if records.len() == RECORDS_MAX || bytes >= PAGE_BYTES {
                break;
            }
            // It may have been replaced since it was asked for.
            if let Some(record) = self.state.store.record(key, *version, cx.table) {
                bytes += bytes_of(&record);
                records.push(record);
            }
        }
        records
    }

    /// Takes in what others have: what is newer wins.
    pub(in crate::epidemic) fn merge(&mut self, records: Vec<Record>, ids: Vec<(RequestId, Done)>) {
        let state = &mut self.state;
        for (id, done) in ids {
            see(state, done.event.time);
            if state.is_mine(done.position) {
                state.seen.note(id, done, &mut state.writes);
            }
        }
        for record in records {
            let is_chosen = matches!(record.version, Version::Explicit(_));
            if is_chosen != (self.settings.level == Level::None) {
                // No node of this keyspace writes such a version.
                state.counters.malformed += 1;
                continue;
            }
            if !state.is_mine(position(&record.key)) {
                continue;
            }
            see(state, record.version.time());
            match state.store.put(record, &mut state.writes) {
                Put::Stored => {
                    probe!("epidemic/repaired");
                    state.counters.repaired += 1;
                }
                Put::Conflict => state.counters.conflicts += 1,
                Put::Known | Put::Older => {}
            }
        }
    }
}

/// About how long a record is in a message.
pub(super) fn bytes_of(record: &Record) -> usize {
    record.key.len() + record.value.as_ref().map_or(0, Bytes::len)
}

/// What this node broadcasts from now on comes after what it has taken in.
fn see(state: &mut State, time: LogicalTime) {
    if !mutant!("epidemic_clock_unmoved") {
        state.epto.on_seen(time);
    }
}

/// Those of the first that the second lacks: of versions that events name only if they are newer,
/// of versions that clients choose also if another value of theirs wins.
fn newer(first: &[Entry], second: &[Entry]) -> Vec<(Bytes, Version)> {
    let mut known: BTreeMap<&Bytes, Vec<&Entry>> = BTreeMap::new();
    second.iter().for_each(|one| known.entry(&one.key).or_default().push(one));
    let lacks = |one: &&Entry| {
        known.get(&one.key).is_none_or(|known| match one.version {
            Version::Explicit(_) => {
                !known.iter().any(|it| it.version == one.version && it.rank >= one.rank)
            }
            Version::Ordered(_) => known.iter().all(|it| it.version < one.version),
        })
    };
    first.iter().filter(lacks).map(|one| (one.key.clone(), one.version)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::epidemic::keys::wire_key;
    use std::format;

    #[test]
    fn what_has_no_room_is_compared_another_time() {
        let (mut store, mut writes) = (Store::default(), Vec::new());
        for number in 0..40_000 {
            let key = wire_key(format!("key {number}").as_bytes());
            let id = RequestId(number);
            store.put(Record { key, version: Version::Explicit(1), id, value: None }, &mut writes);
        }
        let parts = [(Leaf(0), Leaf(1023)), (Leaf(2048), Leaf(3071))];
        let all: usize = parts.iter().map(|(first, last)| store.sums(*first, *last).count()).sum();
        assert!(all > 3 * SUMS_MAX, "{all} leaves are too many for some messages");
        let (mut rng, mut seen) = (Rng::new(7), BTreeSet::new());
        for _ in 0..64 {
            let (told_of, told) = some_of(&store, parts.to_vec(), &mut rng);
            assert_eq!(told.len(), SUMS_MAX, "as much as there is room for");
            let of = |(first, last): &(Leaf, Leaf)| store.sums(*first, *last).collect::<Vec<_>>();
            let meant: Vec<(Leaf, u64)> = told_of.iter().flat_map(of).collect();
            assert_eq!(told, meant, "all of what it is about");
            seen.extend(told.into_iter().map(|(leaf, _)| leaf));
        }
        assert_eq!(seen.len(), all, "each leaf has its turn");
    }
}
