//! Snapshots: how a node that joins gets what members of its slice have, page by page.

use super::behind::Heard;
use super::compare::bytes_of;
use super::donor::{Donor, Said, is_life};
use super::enough::{HOPE, Had};
use super::join::{DONORS, PATIENCE_TTLS, Standing};
use crate::epidemic::message::{Message, PAGE_BYTES, RECORDS_MAX, Rest, SnapshotB};
use crate::epidemic::replica::range::Range;
use crate::epidemic::replica::store::{Entry, VERSIONS_MAX};
use crate::epidemic::{Context, Epidemic, Level};
use crate::epto::{EventKey, Horizon, LogicalTime};
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::{invariant, mutant, probe};

impl Epidemic {
    /// Asks as many members as it takes, and others in place of those that are silent; beside them
    /// those that have what nobody else has.
    pub(super) fn ask_donors(&mut self, had: &Had, round: u64, cx: &mut Context<'_>) {
        let name = |peer: &crate::gossip::cyclon::Peer| peer.who.node;
        let members: Vec<NodeId> = self.state.slices.members().iter().map(name).collect();
        let neighbours = self.state.cyclon.view().iter().map(name);
        let neighbours: Vec<NodeId> = neighbours.filter(|node| !members.contains(node)).collect();
        let patience = PATIENCE_TTLS * u64::from(self.state.epto.parameters().ttl);
        let Standing::Joining(joining) = &mut self.state.standing else { return };
        let is_long = |times| joining.since.is_some_and(|since| round >= since + times * patience);
        // Before that nothing is taken of who is not ready, nor while one sends who is.
        let takes_all = is_long(2) && !joining.hears_ready(round, patience);
        let beside = match takes_all {
            true => joining.beside(had, (round, HOPE * patience), cx.rng),
            false => Vec::new(),
        };
        let has_ready = joining.donors.values().any(Donor::is_ready);
        // Where no member is ready anybody may know a place in the order.
        let asks_all = members.is_empty() || (is_long(1) && !has_ready && round.is_multiple_of(2));
        let is_counted = |donor: &&Donor| donor.is_member != asks_all && !donor.is_beside;
        let is_open = |donor: &&Donor| !donor.is_silent(round) && is_counted(donor);
        let open = joining.donors.values().filter(is_open).count();
        let is_free = |node: &NodeId| {
            let is_silent = joining.donors.get(node).is_none_or(|donor| donor.is_silent(round));
            is_silent && !beside.contains(node)
        };
        let asked = if asks_all { &neighbours } else { &members };
        // Those that never were first: all are heard the sooner.
        let is_new = |node: &NodeId| !joining.donors.contains_key(node);
        let (mut new, mut free): (Vec<NodeId>, Vec<NodeId>) =
            asked.iter().copied().filter(is_free).partition(is_new);
        let mut chosen: Vec<(NodeId, bool)> = beside.iter().map(|node| (*node, true)).collect();
        for _ in open..DONORS {
            let free = if new.is_empty() { &mut free } else { &mut new };
            if free.is_empty() {
                break;
            }
            chosen.push((free.swap_remove(cx.rng.below(free.len() as u64) as usize), false));
        }
        for (donor, is_beside) in chosen {
            self.ask_donor(donor, (had.range, round), (members.contains(&donor), is_beside), cx);
        }
    }

    /// Asks one; again, if it was late. What one that is not ready has said stays until it has said
    /// more.
    fn ask_donor(
        &mut self,
        donor: NodeId,
        (range, round): (Range, u64),
        (is_member, is_beside): (bool, bool),
        cx: &mut Context<'_>,
    ) {
        let Standing::Joining(joining) = &mut self.state.standing else { return };
        if mutant!("epidemic_late_page_begins_anew")
            && let Some(donor) = joining.donors.get_mut(&donor)
        {
            self.state.questions += 1;
            donor.begin_anew(self.state.questions);
        }
        let asked = joining.donors.entry(donor).or_insert_with(|| {
            self.state.questions += 1;
            Donor::new(self.state.questions, round)
        });
        (asked.asked_at, asked.is_member, asked.is_beside) = (round, is_member, is_beside);
        // A question promises nothing.
        cx.fx.send_early(donor, asked.question(range));
    }

    /// A joining node asks for a page.
    pub(in crate::epidemic) fn on_snapshot(
        &mut self,
        from: Incarnation,
        (number, range): (u64, Range),
        after: &Rest<Bytes>,
        ids_below: &Rest<EventKey>,
        cx: &mut Context<'_>,
    ) {
        invariant!(range.is_sound(), "a range is what it says");
        let state = &self.state;
        let is_ready = state.ready.is_some_and(|ready| ready.covers(&range));
        let own = Horizon { last: state.last, ..Horizon::default() };
        let horizon = state.epto.horizon().unwrap_or(own);
        let (mut records, mut bytes, mut last) = (Vec::new(), 0, None);
        // So many keys that their versions fit.
        let keys = match self.settings.level {
            Level::None => RECORDS_MAX / VERSIONS_MAX,
            Level::Eventual | Level::Strong => RECORDS_MAX,
        };
        let list = |after| state.store.list(&range, after, keys).0;
        let mut listed = after.begin().map_or(Vec::new(), list).into_iter().peekable();
        while let Some(Entry { key, version, .. }) = listed.next() {
            let record = state.store.record(&key, version, cx.table).expect("it is listed");
            bytes += bytes_of(&record);
            records.push(record);
            // A page ends between two keys.
            if listed.peek().is_none_or(|next| next.key != key) {
                last = Some(key);
                if bytes >= PAGE_BYTES {
                    break;
                }
            }
        }
        let has_more = |last: &Bytes| !state.store.list(&range, Some(last), 1).0.is_empty();
        let after = Rest::behind(last.filter(has_more));
        let page = |below: Option<&EventKey>| state.seen.page(&range, below.copied(), RECORDS_MAX);
        let (ids, below) = ids_below.begin().map_or((Vec::new(), None), page);
        let ids_below = Rest::behind(below);
        invariant!(records.len() <= RECORDS_MAX, "a page is bounded");
        let forgotten = state.seen.forgotten();
        let noted = state.behind.told(&range);
        let page = SnapshotB {
            number,
            is_ready,
            horizon,
            noted,
            records,
            forgotten,
            ids,
            after,
            ids_below,
        };
        let mut lost = state.doubt.lost_within(&range);
        if mutant!("epidemic_loss_is_not_told") {
            lost.clear();
        }
        // Who is in no doubt is understood by builds that know of none.
        let page = match lost.is_empty() {
            true => Message::SnapshotB(page),
            false => Message::SnapshotC { page, lost },
        };
        cx.fx.send(from, page);
    }

    /// A page of a snapshot.
    pub(in crate::epidemic) fn on_page(
        &mut self,
        from: Incarnation,
        (page, lost): (SnapshotB, Vec<Range>),
        cx: &mut Context<'_>,
    ) {
        invariant!(self.state.writes.is_empty(), "an input begins without writes");
        let (round, last, grace) = (self.state.round, self.state.last, self.settings.grace);
        let is_believed = self.believes(&page.horizon);
        let patience = PATIENCE_TTLS * u64::from(self.state.epto.parameters().ttl);
        let Standing::Joining(joining) = &mut self.state.standing else { return };
        let Some(range) = joining.range else { return };
        joining.forget_unless(|told| self.state.epto.believes(told));
        let waits = joining.hears_ready(round, patience) && !mutant!("epidemic_takes_of_both");
        let counts = joining.counts(from.node, &page, (round, patience));
        let Some(donor) = joining.donors.get(&from.node).filter(|_| counts) else { return };
        if donor.number != page.number && !mutant!("epidemic_late_page_taken") {
            return;
        }
        let is_member = donor.is_member;
        joining.lives |= is_life(&page, &range, self.settings.level);
        if is_believed {
            joining.hear_told(from.node, (&page, &lost), round);
        }
        if page.is_ready {
            joining.hear_ready((page.horizon.last, is_believed), (round, patience));
        }
        match is_believed {
            false => return self.hear_witness(from.node, &page.horizon),
            true if self.is_ahead_of(&page, cx) => return self.ask_anew(from.node),
            true => {}
        }
        let Standing::Joining(joining) = &mut self.state.standing else { return };
        let furthest = joining.hear_of(page.horizon.last, is_member || page.is_ready, last);
        // How long this node was away: tombstones may be purged that it has not heard of.
        let away = time(page.horizon.last).saturating_sub(time(last));
        let is_late = last.is_some() && away > grace && !mutant!("epidemic_away_ignored");
        // What others have purged is not taken from who has not heard yet that it was away. Where
        // nobody is ready for long, as all have started, what they have on disk says who was.
        let is_early = joining.since.is_none_or(|since| round < since + 2 * patience);
        let tells_time =
            page.is_ready || is_member && !is_early && !mutant!("epidemic_unready_tell_no_time");
        if joining.takes_place && tells_time && is_late {
            probe!("epidemic/away_too_long");
            joining.restart();
            return self.drop_all(cx);
        }
        // Who has nothing itself does not know how far others are, but has heard it of them.
        // While one sends who is ready, nobody else says how far those are who have the range.
        let told = match (page.is_ready, last) {
            (true, _) => time(joining.furthest_ready),
            (false, None) => time(furthest),
            (false, Some(_)) => time(page.horizon.last),
        };
        let tells_time = tells_time || last.is_none() && !waits;
        if tells_time && self.drop_behind(&range, told) {
            return self.flush(cx);
        }
        let Standing::Joining(joining) = &mut self.state.standing else { return };
        let Some(donor) = joining.donors.get_mut(&from.node) else { return };
        // Nor is it while somebody sends who is ready: that is all there is, and more may be old.
        let is_early = donor.is_member && is_early && !mutant!("epidemic_old_copy_merged");
        if !page.is_ready && (waits || is_early) {
            probe!("epidemic/unready_early");
            return self.ask_anew(from.node);
        }
        donor.asked_at = round;
        self.weigh_page(from, (range, page, lost), time(furthest), cx);
        invariant!(self.state.writes.is_empty(), "all that was changed was written");
    }

    /// A page is taken, unless it is of one that is not ready and lags behind the furthest of those
    /// that have the range.
    fn weigh_page(
        &mut self,
        from: Incarnation,
        (range, page, lost): (Range, SnapshotB, Vec<Range>),
        furthest: u64,
        cx: &mut Context<'_>,
    ) {
        let (grace, reached) = (self.settings.grace, time(page.horizon.last));
        // A neighbour that is no member may have had the range before, and not heard of it since.
        let behind = page.noted.iter().filter_map(|(_, heard)| heard.until()).min();
        let behind = behind.filter(|_| !mutant!("epidemic_range_as_young_as_its_holder"));
        let heard = behind.map_or(reached, |behind| reached.min(behind.0));
        let lags = furthest.saturating_sub(heard) > grace;
        if page.is_ready && self.stands_still(from.node, reached) {
            return self.ask_anew(from.node);
        }
        let Standing::Joining(joining) = &mut self.state.standing else { return };
        let Some(donor) = joining.donors.get_mut(&from.node) else { return };
        let is_trusted = page.is_ready || !donor.is_member && mutant!("epidemic_trusts_neighbours");
        if !is_trusted && lags && !mutant!("epidemic_unready_tell_no_time") {
            // That is longer than tombstones are kept: nothing of it is taken.
            donor.whole = Some(Said::of(&page, true));
            return;
        }
        let has_any = !(page.records.is_empty() && page.ids.is_empty());
        self.take_page(from, (range, page, lost), has_any.then_some(heard), cx);
    }

    /// Whether a donor that is ready has stood still, and does not know that yet: others that are
    /// ready, or this node, have gone on.
    fn stands_still(&mut self, donor: NodeId, reached: u64) -> bool {
        let (round, grace) = (self.state.round, self.settings.grace);
        let patience = PATIENCE_TTLS * u64::from(self.state.epto.parameters().ttl);
        let lags = |other: Option<EventKey>| time(other).saturating_sub(reached) > grace;
        let Standing::Joining(joining) = &mut self.state.standing else { return false };
        let is_behind = joining.may_be_asleep(donor, lags(self.state.last), (round, patience));
        (is_behind || lags(joining.furthest_ready)) && !mutant!("epidemic_ready_never_lags")
    }

    /// What a donor has sent is not taken. It is asked again when it has been silent for long.
    fn ask_anew(&mut self, donor: NodeId) {
        self.state.questions += 1;
        let Standing::Joining(joining) = &mut self.state.standing else { return };
        if let Some(donor) = joining.donors.get_mut(&donor) {
            donor.number = self.state.questions;
        }
    }

    /// A page that counts is taken, and what is left is asked for. It says no more than what was
    /// heard by `heard`: a join may take long, and break off.
    fn take_page(
        &mut self,
        from: Incarnation,
        (range, page, lost): (Range, SnapshotB, Vec<Range>),
        heard: Option<u64>,
        cx: &mut Context<'_>,
    ) {
        let Standing::Joining(joining) = &mut self.state.standing else { return };
        let Some(donor) = joining.donors.get_mut(&from.node) else { return };
        let begun = donor.begun.get_or_insert_with(|| Said::of(&page, false));
        if begun.is_ready != page.is_ready && !mutant!("epidemic_donor_becomes_ready") {
            // The pages before this one were of what it had when it was not ready, or this one is.
            probe!("epidemic/donor_changed");
            self.state.questions += 1;
            donor.begin_anew(self.state.questions);
            cx.fx.send_early(from, donor.question(range));
            return;
        }
        begun.is_ready = page.is_ready;
        if !mutant!("epidemic_first_page_tells_all") {
            begun.hear(&page.noted);
            begun.hear_lost(lost);
        }
        self.state.questions += 1;
        if page.after.is_nothing() && page.ids_below.is_nothing() {
            donor.whole = donor.begun.take();
            // A page that comes twice is none of another snapshot.
            if !mutant!("epidemic_pages_count_twice") {
                donor.begin_anew(self.state.questions);
            }
        } else {
            // Nor is it another page.
            donor.turn(self.state.questions, (page.after, page.ids_below));
            // A question promises nothing.
            cx.fx.send_early(from, donor.question(range));
        }
        // Others may have purged it, who are heard later.
        if let Some(heard) = heard.filter(|_| !mutant!("epidemic_keeps_of_who_lags")) {
            self.state.behind.take(&range, LogicalTime(heard), &mut self.state.writes);
        }
        // What its sender does not remember cannot be asked of this node either.
        self.state.seen.forget_up_to(page.forgotten, &mut self.state.writes);
        self.merge(page.records, page.ids);
        self.flush(cx);
    }
}

impl Epidemic {
    /// A donor has come so far: what this node has of a range may be deleted there, and the
    /// tombstones purged. That is dropped, and the range asked for anew. Returns whether there was
    /// any.
    pub(super) fn drop_behind(&mut self, range: &Range, reached: u64) -> bool {
        if self.settings.level == Level::None {
            // It has no tombstones, so nothing is too old.
            return false;
        }
        let (state, grace) = (&mut self.state, self.settings.grace);
        let is_old = |until: LogicalTime| reached.saturating_sub(until.0) > grace;
        let old = state.behind.within(range).filter(|(_, heard)| heard.until().is_some_and(is_old));
        let old: Vec<(Range, Heard)> = old.collect();
        for (part, _) in &old {
            probe!("epidemic/behind_too_long");
            state.drop_part(part);
        }
        if let (false, Standing::Joining(joining)) = (old.is_empty(), &mut state.standing) {
            joining.has_dropped |= old.iter().any(|(_, heard)| matches!(heard, Heard::Own(_)));
            joining.restart();
        }
        !old.is_empty()
    }
}

/// The time of an event; that before all others if there is none.
pub(super) fn time(event: Option<EventKey>) -> u64 {
    event.map_or(0, |event| event.time.0)
}

/// What the clock of its node shows at least.
pub(super) fn clock_of(horizon: &Horizon) -> LogicalTime {
    horizon.clock.max(LogicalTime(time(horizon.last)))
}
