//! The group that a bucket moves to: it asks for pages, and logs what they bring.

use super::moving::{Began, Looked, Pull};
use super::places::{Arrival, Look, bucket_of, first_key, has_purged, told};
use super::said::Said;
use super::step::Step;
use crate::serializable::engine::Context;
use crate::serializable::execute::items::Stored;
use crate::serializable::primary::in_hand::Primary;
use crate::serializable::raw::Raw;
use crate::serializable::timer::Again;
use alloc::vec::Vec;
use quorate_kernel::ids::GroupId;
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::probe;

/// How many buckets one group copies of another at a time, not counting those that only wait to be
/// handed over; and how many of those are handed over, or wait for who holds keys, at a time.
pub(super) const ARRIVALS_MAX: usize = 4;
/// About how many bytes a pass may have brought for the bucket to be handed over before the next
/// one: nobody serves it in that one.
const LITTLE: usize = 64 * 1024;
/// How many passes are made at most before the bucket is handed over, whatever they bring.
const PASSES_MAX: u8 = 8;

impl Primary {
    /// A bucket should be here; who has it, as far as is known. Said again as long as it is so.
    pub(in crate::serializable) fn want(
        &mut self,
        bucket: u8,
        hint: (u64, GroupId),
        cx: &mut Context<'_>,
    ) {
        let (_, from) = hint.max(cx.state.home(bucket));
        let arrivals = cx.state.head.moves.buckets.values().filter_map(|it| it.arrival.as_ref());
        // What waits to be handed over may wait for long: others go on.
        let is_copied = |it: &Arrival| !it.releases || mutant!("txn_counts_what_waits");
        let count = arrivals.filter(|it| it.from == from && is_copied(it)).count();
        let proposed =
            if mutant!("txn_counts_executed_arrivals") { 0 } else { self.tail.arriving_from(from) };
        if count + proposed < ARRIVALS_MAX {
            self.fetch(bucket, hint, cx);
        }
    }

    /// Begins to copy a bucket, if it is not here, and nothing is left of an earlier stay.
    fn fetch(&mut self, bucket: u8, hint: (u64, GroupId), cx: &mut Context<'_>) {
        let state = cx.state;
        let moves = &state.head.moves;
        let is_busy = moves.arrival(bucket).is_some() || moves.is_kept(bucket);
        if state.is_here(bucket) || is_busy || self.tail.step_of(bucket).is_some() {
            return;
        }
        match self.look(bucket, hint, cx) {
            _ if mutant!("txn_copies_onto_what_is_left") => {}
            Look::Found(key) => return self.clear_left(bucket, key, cx),
            Look::Upto(_) => return,
            Look::Nothing => {}
        }
        if !self.may_propose() {
            return;
        }
        let (version, from) = hint.max(state.home(bucket));
        if from != state.group {
            self.step(Step::Arriving { bucket, from, version }, cx);
        }
    }

    /// Looks for what is left of a bucket, from where an earlier look has come to: what is dropped
    /// stays in memory, and in the store, for as long as little is logged.
    fn look(&mut self, bucket: u8, hint: (u64, GroupId), cx: &Context<'_>) -> Look {
        let look = self.look_on(bucket, cx);
        let (upto, wanted) = match &look {
            Look::Found(key) => (key.clone(), None),
            Look::Upto(key) => (key.clone(), Some(hint)),
            Look::Nothing => return look,
        };
        invariant!(bucket_of(&upto) == bucket, "it is looked for where it can be");
        self.moving.looks.insert(bucket, Looked { upto, wanted });
        look
    }

    fn look_on(&self, bucket: u8, cx: &Context<'_>) -> Look {
        let begin = self.moving.looks.get(&bucket).map(|looked| looked.upto.clone());
        let begin = begin.filter(|_| !mutant!("txn_looks_from_the_first_key"));
        cx.state.look_for(bucket, begin.unwrap_or_else(|| first_key(bucket)), cx.table)
    }

    /// Goes on to look through one bucket.
    pub(super) fn tick_looks(&mut self, cx: &mut Context<'_>) {
        let mut looks = self.moving.looks.iter_mut();
        let next = looks.find_map(|(bucket, looked)| Some((*bucket, looked.wanted.take()?)));
        if let Some((bucket, hint)) = next {
            probe!("serializable/looks_on");
            self.want(bucket, hint, cx);
        }
    }

    /// A pass begins.
    pub(super) fn begin_pass(&mut self, bucket: u8, cx: &mut Context<'_>) {
        let (again, cursor) = (Again::after(cx.now), first_key(bucket));
        let first = self.moving.pulls.get(&bucket).and_then(|pull| pull.first);
        self.moving.pulls.insert(bucket, Pull { again, cursor, brought: 0, began: None, first });
        self.pull(bucket, cx);
    }

    /// Asks for the next page.
    fn pull(&mut self, bucket: u8, cx: &mut Context<'_>) {
        let Some(arrival) = cx.state.head.moves.arrival(bucket) else { return };
        let Some(pull) = self.moving.pulls.get_mut(&bucket) else { return };
        pull.again = Again::after(cx.now);
        let id = told(cx.life, arrival.id);
        let (since, cursor) = (arrival.since, pull.cursor.clone());
        let (from, releases) = (arrival.from, arrival.purged.filter(|_| arrival.releases));
        let (stay, _) = cx.state.home(bucket);
        self.say(from, bucket, Said::Pull { id, since, cursor, stay, releases }, cx);
    }

    pub(super) fn tick_pulls(&mut self, cx: &mut Context<'_>) {
        let now = cx.now;
        let due = self.moving.pulls.iter_mut();
        let due = due.filter_map(|(bucket, pull)| pull.again.is_due(now).then_some(*bucket));
        let due: Vec<u8> = due.collect();
        for bucket in due {
            if self.tail.step_of(bucket).is_none() {
                self.pull(bucket, cx);
            }
        }
    }

    /// A page comes. One that is late, or of another copy, is not taken; it is asked for again.
    pub(super) fn on_page(
        &mut self,
        bucket: u8,
        group: GroupId,
        (id, since, cursor): (u64, u64, Raw),
        (items, next, page): (Vec<(Raw, Stored)>, Option<Raw>, Began),
        cx: &mut Context<'_>,
    ) {
        let Some(arrival) = cx.state.head.moves.arrival(bucket) else { return };
        let named = told(cx.life, arrival.id);
        let is_its = (named, arrival.since, arrival.from) == (id, since, group);
        if !is_its || self.tail.step_of(bucket).is_some() || !self.may_propose() {
            return;
        }
        invariant!(!cx.state.is_here(bucket), "what is copied is not here");
        let (known, _) = cx.state.home(bucket);
        if page.stay < known && !mutant!("txn_takes_an_earlier_stay") {
            // It was handed over again since: a primary that leads no more has not heard of it.
            return;
        }
        let Some(pull) = self.moving.pulls.get(&bucket).filter(|pull| pull.cursor == cursor) else {
            return;
        };
        // Another group has had it since the copy began: what was purged there, no page tells. Nor
        // what was written after a loss at a place from which the copy has an entry that is lost.
        let is_of_later = page.stay > known && !mutant!("txn_goes_on_with_a_later_stay");
        let lacks_a_purge = match arrival.purged.or(pull.first) {
            Some(first) => has_purged(first, page.purged),
            // Another primary has begun the first pass, and when is not known.
            None => {
                let has_any = self.look_on(bucket, cx) != Look::Nothing;
                has_any && !mutant!("txn_goes_on_with_a_pass_of_another")
            }
        };
        if is_of_later || lacks_a_purge {
            probe!("serializable/copied_again");
            let (home, version) = (arrival.from, page.stay.max(known));
            return self.step(Step::Abandon { bucket, home, version, is_awaited: true }, cx);
        }
        let Some(pull) = self.moving.pulls.get_mut(&bucket) else { return };
        pull.first.get_or_insert(page.purged);
        let began = *pull.began.get_or_insert(page);
        let is_late = page.as_of < began.as_of;
        let is_handed = began.released.is_none() && page.released.is_some();
        if is_handed && !is_late && !mutant!("txn_pass_outlives_release") {
            // It was handed over within the pass: that brings all when it is begun anew.
            probe!("serializable/passed_again");
            return self.begin_pass(bucket, cx);
        }
        if is_late || page.released != began.released {
            return;
        }
        let sizes = items.iter().map(|(key, item)| key.len() + item.size());
        pull.brought += sizes.sum::<usize>();
        let brought = pull.brought;
        if !items.is_empty() {
            self.step(Step::Arrived { bucket, items }, cx);
        }
        invariant!(self.tail.step_of(bucket).is_none(), "what is copied stays where it is");
        match next {
            Some(next) => {
                if let Some(pull) = self.moving.pulls.get_mut(&bucket) {
                    pull.cursor = next;
                }
                self.pull(bucket, cx);
            }
            None => self.end_pass(bucket, brought, began, cx),
        }
    }

    fn end_pass(&mut self, bucket: u8, brought: usize, began: Began, cx: &mut Context<'_>) {
        let Some(arrival) = cx.state.head.moves.arrival(bucket) else { return };
        let Began { as_of, floor, purged, released, .. } = began;
        let released = released.or_else(|| {
            let is_early = mutant!("txn_take_before_release");
            is_early.then(|| cx.state.home(bucket).0 + 1)
        });
        match released {
            None => {
                let is_last = arrival.passes.saturating_add(1) >= PASSES_MAX
                    && !mutant!("txn_passes_for_ever");
                let releases = brought <= LITTLE || is_last || mutant!("txn_releases_too_early");
                self.step(Step::Passed { bucket, as_of, purged, releases }, cx);
            }
            Some(version) => self.step(Step::Take { bucket, version, floor }, cx),
        }
    }

    /// Who was asked does not have the bucket.
    pub(super) fn on_elsewhere(
        &mut self,
        bucket: u8,
        group: GroupId,
        (version, home): (u64, GroupId),
        cx: &mut Context<'_>,
    ) {
        let Some(arrival) = cx.state.head.moves.arrival(bucket) else { return };
        invariant!(!cx.state.is_here(bucket), "what is copied is not here");
        let is_news = arrival.from == group && home != group && home != cx.state.group;
        let is_late = version < cx.state.home(bucket).0;
        if is_news && !is_late && self.tail.step_of(bucket).is_none() {
            probe!("serializable/copied_from_another");
            self.step(Step::Abandon { bucket, home, version, is_awaited: false }, cx);
        }
        invariant!(self.moving.pulls.contains_key(&bucket), "what is copied is asked for");
    }

    /// The source keeps the bucket. If it is not to be here either, the copy is given up; else they
    /// do not agree yet, and it is asked again.
    pub(super) fn on_stays(
        &mut self,
        bucket: u8,
        (group, id): (GroupId, u64),
        cx: &mut Context<'_>,
    ) {
        let Some(arrival) = cx.state.head.moves.arrival(bucket) else { return };
        invariant!(!cx.state.is_here(bucket), "what is copied is not here");
        let is_its = (arrival.from, told(cx.life, arrival.id)) == (group, id);
        let is_wanted = self.moving.may_have(bucket, cx.state.group);
        if is_its && !is_wanted && self.tail.step_of(bucket).is_none() && self.may_propose() {
            probe!("serializable/copy_not_wanted");
            let (version, _) = cx.state.home(bucket);
            self.step(Step::Abandon { bucket, home: group, version, is_awaited: false }, cx);
        }
        invariant!(self.moving.pulls.contains_key(&bucket), "what is copied is asked for");
    }

    /// A source has handed a bucket over to this group.
    pub(super) fn on_gone(
        &mut self,
        bucket: u8,
        group: GroupId,
        version: u64,
        cx: &mut Context<'_>,
    ) {
        invariant!(version > 0, "what is handed over has a version");
        // It comes here no other way: whoever knows of as late a version has had it.
        if cx.state.home(bucket).0 >= version {
            return self.say(group, bucket, Said::Took { version }, cx);
        }
        if cx.state.is_here(bucket) {
            // Nobody else hands over what is here: whoever says so is confused.
            return;
        }
        invariant!(group != cx.state.group, "a group tells others");
        if cx.state.head.moves.arrival(bucket).is_some() {
            if self.tail.step_of(bucket).is_none() {
                self.pull(bucket, cx);
            }
            return;
        }
        self.fetch(bucket, (version - 1, group), cx);
    }

    /// The bucket is here.
    pub(super) fn has_taken(&mut self, bucket: u8, cx: &Context<'_>) {
        invariant!(cx.state.is_here(bucket), "what was taken is here");
        probe!("serializable/bucket_taken");
        self.moving.pulls.remove(&bucket);
    }
}
