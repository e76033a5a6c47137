//! Joining: how a node comes to have all of a range, and a place in the order.
//!
//! A node that starts, or that stood still, relays at once, as that needs no state. It listens for
//! TTL + 2 rounds: what was broadcast before it could be reached is then delivered at the others,
//! and in their snapshots; what was broadcast later it has itself. It takes over the snapshots of
//! two members, so that a hole of one is none of its own, and goes on behind the later one's last
//! event.
//!
//! A node whose slice has become larger does the same for what it has not, but keeps its place.
//!
//! When a whole cluster starts, nobody is ready. Who has waited long takes over what those have who
//! are not ready either. Who is alone in its slice has all that there is of it, and asks any
//! neighbour for a place in the order.

use crate::epidemic::message::{Message, PAGE_BYTES, RECORDS_MAX, SnapshotB};
use crate::epidemic::replica::range::Range;
use crate::epidemic::{Context, Epidemic};
use crate::epto::{EventKey, Horizon, LogicalTime};
use crate::slices::Changed;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::{invariant, mutant, probe};

/// From how many members a snapshot is taken over.
pub const DONORS: usize = 2;
/// After how many rounds without an answer another member is asked.
const SILENT_ROUNDS: u64 = 6;
/// After how many TTLs a node that finds fewer members, or none that is ready, goes on without.
const PATIENCE_TTLS: u64 = 3;

/// After how many rounds a node has heard how many others there are.
const COUNTED_ROUNDS: u64 = 12;

/// Whether a node has all that it shall have.
#[derive(Clone, Debug)]
pub enum Standing {
    /// It has.
    Ready,
    /// It takes over snapshots.
    Joining(Joining),
}

/// A node that takes over snapshots.
#[derive(Clone, Debug)]
pub struct Joining {
    /// Whether it has no place in the order either.
    takes_place: bool,
    /// Snapshots must have come so far at least.
    floor: Option<EventKey>,
    /// The round from which it may ask.
    since: Option<u64>,
    /// For which range it asks.
    range: Option<Range>,
    /// Names its questions: answers to earlier ones are dropped.
    number: u64,
    donors: BTreeMap<NodeId, Donor>,
}

#[derive(Clone, Debug)]
struct Donor {
    asked_at: u64,
    /// How far it had come with its first page.
    horizon: Option<Horizon>,
    is_ready: bool,
    is_done: bool,
    /// Whether it is of the slice: others know no more than a place in the order.
    is_member: bool,
}

impl Standing {
    /// A node that begins to join.
    #[must_use]
    pub fn joining(takes_place: bool, floor: Option<EventKey>, number: u64) -> Standing {
        let donors = BTreeMap::new();
        Standing::Joining(Joining { takes_place, floor, since: None, range: None, number, donors })
    }
}

impl Joining {
    fn restart(&mut self) {
        self.number += 1;
        (self.range, self.since) = (None, None);
        self.donors.clear();
    }

    fn done(&self, is_ready: bool) -> impl Iterator<Item = &Donor> {
        self.donors.values().filter(move |donor| donor.is_done && (donor.is_ready || !is_ready))
    }

    /// Whether enough is here, after so many rounds, where so many members are known, or so many
    /// neighbours if there are none.
    fn is_enough(&self, waited: u64, patience: u64, members: usize, neighbours: usize) -> bool {
        if mutant!("epidemic_join_at_once") {
            return true;
        }
        let ready = self.done(true).count();
        let is_counted = |donor: &&Donor| donor.is_member || members == 0;
        let all = self.done(false).filter(is_counted).count();
        if members == 0 {
            return waited >= patience && (all >= 1 || neighbours == 0);
        }
        ready >= DONORS
            || (waited >= patience && ready >= 1 && members < DONORS)
            || (waited >= 2 * patience && (ready >= 1 || all >= members.min(DONORS)))
    }
}

impl Epidemic {
    /// The place in the order is lost: nothing is answered until another one is taken.
    pub(in crate::epidemic) fn lose_place(&mut self) {
        probe!("epidemic/place_lost");
        if mutant!("epidemic_resume_delivers") {
            return;
        }
        self.state.standing = Standing::joining(true, None, self.state.round);
        self.state.ready = None;
        self.state.holes.clear();
    }

    /// The number of slices has changed, and with it the range of this node.
    pub(in crate::epidemic) fn on_changed(&mut self, changed: Changed, before: Vec<NodeId>) {
        invariant!(changed.from != Some(changed.to), "a change is to another number");
        let range = self.state.range().expect("a node with a number of slices has a slice");
        let is_kept = |former: &super::super::state::Former| !former.range.meets(&range);
        self.state.former.retain(is_kept);
        if let Standing::Joining(joining) = &mut self.state.standing
            && joining.takes_place
        {
            joining.restart();
            return;
        }
        let Some(ready) = self.state.ready else { return };
        if mutant!("epidemic_growth_assumed") {
            self.state.ready = Some(range);
            return;
        }
        for left in ready.without(&range) {
            self.give_up(left, before.clone());
        }
        let first = ready.first.max(range.first);
        let last = ready.last.min(range.last);
        self.state.ready = Some(Range { first, last });
        self.state.standing = match range.without(&ready).is_empty() {
            true => Standing::Ready,
            false => Standing::joining(false, self.state.last, self.state.round),
        };
        invariant!(self.state.former.len() <= super::former::FORMER_MAX, "ranges are few");
    }

    /// A round has passed.
    pub(in crate::epidemic) fn on_join_round(&mut self, cx: &mut Context<'_>) {
        let Some(range) = self.state.range() else { return };
        let (round, ttl) = (self.state.round, u64::from(self.state.epto.parameters().ttl));
        let may_resume = self.state.epto.may_resume() || mutant!("epidemic_join_at_once");
        let missing = self.state.ready.map_or(Vec::from([range]), |ready| range.without(&ready));
        let known = self.state.slices.members().len();
        let neighbours = self.state.cyclon.view().len();
        let Standing::Joining(joining) = &mut self.state.standing else { return };
        // TTL must be that of the cluster, so it must have been heard how large that is.
        if joining.takes_place && (!may_resume || round < COUNTED_ROUNDS) {
            return;
        }
        let Some(target) = missing.first().copied() else {
            self.state.standing = Standing::Ready;
            return;
        };
        if joining.range != Some(target) {
            joining.restart();
            joining.range = Some(target);
        }
        let since = *joining.since.get_or_insert(round);
        if joining.is_enough(round - since, PATIENCE_TTLS * ttl, known, neighbours) {
            return self.take_over(target, cx);
        }
        self.ask_donors(target, round, cx);
    }

    /// Asks as many members as it takes, and others in place of those that are silent.
    fn ask_donors(&mut self, range: Range, round: u64, cx: &mut Context<'_>) {
        let name = |peer: &crate::gossip::cyclon::Peer| peer.who.node;
        let members: Vec<NodeId> = self.state.slices.members().iter().map(name).collect();
        let neighbours = self.state.cyclon.view().iter().map(name);
        let neighbours: Vec<NodeId> = neighbours.filter(|node| !members.contains(node)).collect();
        let patience = PATIENCE_TTLS * u64::from(self.state.epto.parameters().ttl);
        let Standing::Joining(joining) = &mut self.state.standing else { return };
        let is_long = joining.since.is_some_and(|since| round >= since + patience);
        let has_ready = joining.donors.values().any(|donor| donor.is_ready);
        // Where no member is ready anybody may know a place in the order.
        let asks_all = members.is_empty() || (is_long && !has_ready && round.is_multiple_of(2));
        let is_silent = |donor: &Donor| {
            let is_worthless = donor.is_done && !donor.is_ready;
            (!donor.is_done || is_worthless) && round >= donor.asked_at + SILENT_ROUNDS
        };
        let is_open = |donor: &&Donor| !is_silent(donor) && donor.is_member != asks_all;
        let open = joining.donors.values().filter(is_open).count();
        let free = |node: &NodeId| joining.donors.get(node).is_none_or(is_silent);
        let asked = if asks_all { &neighbours } else { &members };
        let mut free: Vec<NodeId> = asked.iter().copied().filter(free).collect();
        for _ in open..DONORS {
            if free.is_empty() {
                break;
            }
            let donor = free.swap_remove(cx.rng.below(free.len() as u64) as usize);
            // What one that is not ready has said stays until it says more.
            let kept = joining.donors.remove(&donor).filter(|donor| donor.is_done);
            let (horizon, is_done) =
                kept.map_or((None, false), |donor| (donor.horizon, donor.is_done));
            let is_member = members.contains(&donor);
            let asked = Donor { asked_at: round, horizon, is_ready: false, is_done, is_member };
            joining.donors.insert(donor, asked);
            let number = joining.number;
            let question = Message::SnapshotA { number, range, after: None, ids_below: None };
            // A question promises nothing.
            cx.fx.send_early(donor, question);
        }
    }

    /// A joining node asks for a page.
    pub(in crate::epidemic) fn on_snapshot(
        &mut self,
        from: Incarnation,
        (number, range): (u64, Range),
        after: Option<&Bytes>,
        ids_below: Option<EventKey>,
        cx: &mut Context<'_>,
    ) {
        invariant!(range.is_sound(), "a range is what it says");
        let state = &self.state;
        let is_ready = state.ready.is_some_and(|ready| ready.covers(&range));
        let own = Horizon { last: state.last, ..Horizon::default() };
        let horizon = state.epto.horizon().unwrap_or(own);
        let (listed, _) = state.store.list(&range, after, RECORDS_MAX / 16);
        let (mut records, mut bytes, mut last) = (Vec::new(), 0, None);
        let mut listed = listed.into_iter().peekable();
        while let Some((key, version)) = listed.next() {
            let record = state.store.record(&key, version, cx.table).expect("it is listed");
            bytes += key.len() + record.value.as_ref().map_or(0, Bytes::len);
            records.push(record);
            // A page ends between two keys.
            if listed.peek().is_none_or(|(next, _)| *next != key) {
                last = Some(key);
                if bytes >= PAGE_BYTES {
                    break;
                }
            }
        }
        let has_more = |last: &Bytes| !state.store.list(&range, Some(last), 1).0.is_empty();
        let after = last.filter(has_more);
        let ids = state.seen.newest(&range, ids_below, RECORDS_MAX);
        let ids_below = ids.last().filter(|_| ids.len() == RECORDS_MAX).map(|(_, done)| done.event);
        invariant!(records.len() <= RECORDS_MAX, "a page is bounded");
        let page = SnapshotB { number, is_ready, horizon, records, ids, after, ids_below };
        cx.fx.send(from, Message::SnapshotB(page));
    }

    /// A page of a snapshot.
    pub(in crate::epidemic) fn on_page(
        &mut self,
        from: Incarnation,
        page: SnapshotB,
        cx: &mut Context<'_>,
    ) {
        invariant!(self.state.writes.is_empty(), "an input begins without writes");
        let (round, last, grace) = (self.state.round, self.state.last, self.settings.grace);
        let Standing::Joining(joining) = &mut self.state.standing else { return };
        let Some(range) = joining.range.filter(|_| joining.number == page.number) else { return };
        let is_behind = page.horizon.last < joining.floor;
        let Some(donor) = joining.donors.get_mut(&from.node).filter(|_| !is_behind) else { return };
        // How long this node was away: tombstones may be purged that it has not heard of.
        let time = |event: Option<EventKey>| event.map_or(LogicalTime(0), |event| event.time).0;
        let away = time(page.horizon.last).saturating_sub(time(last));
        let is_late = last.is_some() && away > grace && !mutant!("epidemic_away_ignored");
        if joining.takes_place && page.is_ready && is_late {
            probe!("epidemic/away_too_long");
            joining.restart();
            return self.drop_all(cx);
        }
        donor.asked_at = round;
        donor.is_ready = page.is_ready;
        donor.horizon.get_or_insert_with(|| page.horizon.clone());
        donor.is_done |= page.after.is_none() && page.ids_below.is_none();
        if page.after.is_some() || page.ids_below.is_some() {
            let (after, ids_below) = next(&page);
            let number = joining.number;
            let question = Message::SnapshotA { number, range, after, ids_below };
            // A question promises nothing.
            cx.fx.send_early(from, question);
        }
        self.merge(page.records, page.ids);
        self.flush(cx);
        invariant!(self.state.writes.is_empty(), "all that was changed was written");
    }

    /// Enough is here: the node is ready.
    fn take_over(&mut self, target: Range, cx: &mut Context<'_>) {
        invariant!(self.state.writes.is_empty(), "an input begins without writes");
        let Standing::Joining(joining) = &mut self.state.standing else { return };
        // Who is not ready may have come further, without the events in between.
        let has_ready = joining.done(true).next().is_some();
        let horizons = joining.done(has_ready).filter_map(|donor| donor.horizon.clone());
        let own = Horizon { last: self.state.last, ..Horizon::default() };
        let horizon = horizons.chain([own]).max_by_key(|horizon| horizon.last);
        let mut horizon = horizon.expect("there is the own one");
        let takes_place = joining.takes_place;
        if takes_place {
            let clock = horizon.last.map_or(LogicalTime(0), |last| last.time);
            horizon.clock = horizon.clock.max(clock);
            if self.state.epto.resume_at(&horizon).is_err() {
                probe!("epidemic/snapshot_old");
                return joining.restart();
            }
            if let Some(last) = horizon.last {
                self.state.set_last(last);
            }
        }
        probe!("epidemic/joined");
        if takes_place {
            self.give_up_found();
        }
        self.state.counters.joins += 1;
        let ready = self.state.ready.unwrap_or(target);
        let (first, last) = (ready.first.min(target.first), ready.last.max(target.last));
        self.state.ready = Some(Range { first, last });
        let is_whole = self.state.is_whole();
        let floor = self.state.last;
        self.state.standing = match is_whole {
            true => Standing::Ready,
            false => Standing::joining(false, floor, self.state.round),
        };
        self.flush(cx);
        invariant!(self.state.epto.has_place(), "who is ready knows its place in the order");
    }

    /// Drops all that is stored: it may be what others have purged.
    fn drop_all(&mut self, cx: &mut Context<'_>) {
        let state = &mut self.state;
        state.seen.forget_range(&Range::ALL, &mut state.writes);
        state.store.drop_range(&Range::ALL, usize::MAX, &mut state.writes);
        state.last = None;
        state.former.clear();
        state.writes.push((super::super::keys::LAST, None));
        self.flush(cx);
    }
}

/// Where the next page begins: behind what has come of both lists.
fn next(page: &SnapshotB) -> (Option<Bytes>, Option<EventKey>) {
    // The list that has ended is asked for behind its end, where there is nothing.
    let after = page.after.clone().or_else(|| page.records.last().map(|record| record.key.clone()));
    let ids_below = page.ids_below.or_else(|| page.ids.last().map(|(_, done)| done.event));
    (after, ids_below)
}
