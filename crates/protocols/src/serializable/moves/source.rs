//! The group that a bucket moves from: it shows pages, and hands the bucket over when nobody holds
//! a key of it.

use super::moving::{BucketAsked, Closing};
use super::places::{bucket_of, first_key, has_purged, told};
use super::said::Said;
use super::step::Step;
use super::target::ARRIVALS_MAX;
use crate::serializable::engine::Context;
use crate::serializable::execute::items::Stored;
use crate::serializable::primary::in_hand::Primary;
use crate::serializable::raw::Raw;
use crate::serializable::timer::{Again, CLOSED, REOPENED};
use alloc::vec::Vec;
use quorate_kernel::ids::GroupId;
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::probe;
use quorate_kernel::time::{Span, Time};

/// For how long a bucket keeps its tombstones when it was asked for: who has copied it would have
/// to copy it anew, and again at each purge, for as long as somebody holds a key of it.
const KEPT: Span = Span::secs(10);
/// For how long it keeps them at most: at the next purge it is copied anew, and keeps them again.
const KEPT_MAX: Span = Span::secs(3600);
/// How many keys are looked at for one page, and about how many bytes it has.
const PAGE: (usize, usize) = (1024, 256 * 1024);

impl BucketAsked {
    fn at(now: Time) -> BucketAsked {
        BucketAsked { first: now, last: now }
    }

    /// The same once more; anew, if that is long ago.
    fn again(self, now: Time) -> BucketAsked {
        if now < self.last + KEPT {
            BucketAsked { last: now, ..self }
        } else {
            BucketAsked::at(now)
        }
    }
}

impl Primary {
    /// Another group asks for keys of a bucket.
    pub(super) fn on_pull(
        &mut self,
        bucket: u8,
        group: GroupId,
        (id, since, cursor): (u64, u64, Raw),
        (asked, releases): (u64, Option<u64>),
        cx: &mut Context<'_>,
    ) {
        let state = cx.state;
        invariant!(bucket_of(&cursor) == bucket, "a frame that says otherwise is not read");
        let (version, home) = state.home(bucket);
        let is_its = home == group && state.head.moves.is_kept(bucket);
        if home != state.group && !is_its {
            return self.say(group, bucket, Said::Elsewhere { home, version }, cx);
        }
        invariant!(group != state.group, "nobody asks itself");
        let purged = told(cx.life, state.head.moves.purged(bucket));
        let stay = version - u64::from(is_its);
        // What is purged since the copy began, it lacks: it is told so while all are served here.
        let releases = releases
            .filter(|first| !has_purged(*first, purged) || mutant!("txn_releases_after_a_purge"))
            .filter(|_| asked == stay || mutant!("txn_releases_another_stay"));
        if self.is_of_earlier_copy(bucket, (group, id)) && releases.is_some() && !is_its {
            return;
        }
        let may_have = self.moving.may_have(bucket, group) || mutant!("txn_releases_to_anyone");
        if home == state.group && !may_have {
            return self.say(group, bucket, Said::Stays { id }, cx);
        }
        if releases.is_none() {
            self.moving.asked.remove(&bucket);
        }
        if let Some(purged) = releases.filter(|_| home == state.group) {
            // It is told when it is handed over, and asks again.
            let asked = self.moving.asked.entry(bucket).or_insert(BucketAsked::at(cx.now));
            *asked = asked.again(cx.now);
            return self.close(bucket, (group, purged), cx);
        }
        if self.tail.step_of(bucket).is_some() {
            return;
        }
        let (items, next) = self.page_of(bucket, since, &cursor, cx);
        let (as_of, floor, released) = (state.applied, state.head.floor, is_its.then_some(version));
        let page =
            Said::Page { id, since, cursor, items, next, as_of, stay, floor, purged, released };
        self.say(group, bucket, page, cx);
    }

    /// Whether who asks for a bucket has asked for it in the name of a later copy before.
    fn is_of_earlier_copy(&mut self, bucket: u8, (group, id): (GroupId, u64)) -> bool {
        let seen = self.moving.seen.entry(bucket).or_insert((group, id));
        if seen.0 != group || seen.1 < id {
            *seen = (group, id);
        }
        id < seen.1 && !mutant!("txn_releases_to_an_earlier_copy")
    }

    /// Keys of a bucket from one on that were changed since an entry, and where the next page
    /// begins.
    fn page_of(
        &self,
        bucket: u8,
        since: u64,
        cursor: &Raw,
        cx: &Context<'_>,
    ) -> (Vec<(Raw, Stored)>, Option<Raw>) {
        let first = first_key(bucket);
        let (mut items, next) = cx.state.items.range(cursor, PAGE, cx.table);
        let is_left_out = |item: &Stored| {
            (since > 0 && mutant!("txn_second_pass_is_empty"))
                || (item.content.is_none() && mutant!("txn_tombstones_stay"))
        };
        items
            .retain(|(key, item)| key.starts_with(&first) && item.op > since && !is_left_out(item));
        (items, next.filter(|next| next.starts_with(&first)))
    }

    /// Nothing is begun on a bucket any more, so that it can be handed over.
    fn close(&mut self, bucket: u8, (to, purged): (GroupId, u64), cx: &mut Context<'_>) {
        let is_open = self.moving.open.get(&bucket).is_some_and(|until| cx.now < *until);
        if is_open || self.moving.closing.contains_key(&bucket) || self.must_wait(bucket, to, cx) {
            return;
        }
        self.moving.open.remove(&bucket);
        self.moving.closing.insert(bucket, Closing { to, purged, since: cx.now });
        self.release(bucket, cx);
    }

    /// Whether a bucket is not closed because others are. Nobody serves one that is handed over
    /// until the last pass of it is made, and who wants to begin something on many waits for all
    /// that are closed: of either few are so at a time. One of which nobody holds a key does not
    /// wait for those that are held; a transaction of one group alone holds none.
    fn must_wait(&self, bucket: u8, to: GroupId, cx: &Context<'_>) -> bool {
        let is_held = |(bucket, closing): &(&u8, &Closing)| {
            closing.to == to && self.tail.step_of(**bucket).is_none()
        };
        let held = self.moving.closing.iter().filter(is_held).count();
        let is_many = held >= ARRIVALS_MAX && self.is_held(bucket, cx);
        (is_many || self.are_unserved(to, cx)) && !mutant!("txn_closes_any_number")
    }

    /// Whether as many buckets are handed over to a group as may be before it serves them.
    fn are_unserved(&self, to: GroupId, cx: &Context<'_>) -> bool {
        let moved = cx.state.head.moves.buckets.values();
        let unserved = moved.filter(|it| it.is_kept && it.home == to).count();
        unserved + self.tail.released_to(to) >= ARRIVALS_MAX && !mutant!("txn_closes_any_number")
    }

    /// Whether somebody holds a key of a bucket.
    fn is_held(&self, bucket: u8, cx: &Context<'_>) -> bool {
        cx.state.locks.holds_any_of(bucket) || self.tail.locks.holds_any_of(bucket)
    }

    /// Whether a bucket was asked for lately by a group that has copied it.
    pub(in crate::serializable) fn is_asked_for(&self, bucket: u8, cx: &Context<'_>) -> bool {
        let asked = self.moving.asked.get(&bucket).copied();
        let is_kept = |it: BucketAsked| cx.now < it.last + KEPT && cx.now < it.first + KEPT_MAX;
        asked.is_some_and(is_kept) && !mutant!("txn_purges_what_is_asked_for")
    }

    /// Whether nothing is begun on some keys.
    pub(in crate::serializable) fn is_closing<'k>(
        &self,
        mut keys: impl Iterator<Item = &'k Raw>,
    ) -> bool {
        let closing = &self.moving.closing;
        !closing.is_empty() && keys.any(|key| closing.contains_key(&bucket_of(key)))
    }

    /// Hands a bucket over, if nobody holds a key of it.
    fn release(&mut self, bucket: u8, cx: &mut Context<'_>) {
        let Some(closing) = self.moving.closing.get(&bucket).copied() else { return };
        let Closing { to, purged, .. } = closing;
        if self.tail.step_of(bucket).is_some() || !cx.state.is_here(bucket) {
            return;
        }
        if !self.moving.may_have(bucket, to) && !mutant!("txn_releases_to_anyone") {
            self.moving.closing.remove(&bucket);
            return self.wake(bucket);
        }
        if !mutant!("txn_releases_after_a_purge") {
            if self.tail.purges_of(bucket) {
                return;
            }
            if has_purged(purged, told(cx.life, cx.state.head.moves.purged(bucket))) {
                // Who asks again is told so.
                self.moving.closing.remove(&bucket);
                return self.wake(bucket);
            }
        }
        if self.is_held(bucket, cx) && !mutant!("txn_release_skips_locks") {
            return;
        }
        if self.are_unserved(to, cx) && !mutant!("txn_releases_any_number") {
            return;
        }
        let (version, _) = cx.state.home(bucket);
        self.step(Step::Release { bucket, to, version: version + 1 }, cx);
    }

    /// Hands over what can be.
    pub(in crate::serializable) fn release_all(&mut self, cx: &mut Context<'_>) {
        let closing: Vec<u8> = self.moving.closing.keys().copied().collect();
        closing.into_iter().for_each(|bucket| self.release(bucket, cx));
    }

    /// What has waited for too long is open again: who holds keys may hold them for as long as
    /// another group is gone.
    pub(super) fn tick_closing(&mut self, cx: &mut Context<'_>) {
        let now = cx.now;
        let is_late = |(_, closing): &(&u8, &Closing)| now - closing.since >= CLOSED;
        let late = self.moving.closing.iter().filter(is_late).map(|(bucket, _)| *bucket);
        let late: Vec<u8> = late.filter(|it| self.tail.step_of(*it).is_none()).collect();
        for bucket in late.into_iter().filter(|_| !mutant!("txn_closes_for_good")) {
            probe!("serializable/bucket_reopened");
            self.moving.closing.remove(&bucket);
            self.moving.open.insert(bucket, now + REOPENED);
            self.wake(bucket);
        }
    }

    /// Whoever waits for keys of a bucket looks again.
    fn wake(&mut self, bucket: u8) {
        let waiting = self.queue.range(first_key(bucket)..).map(|(key, _)| key);
        let waiting = waiting.take_while(|key| bucket_of(key) == bucket);
        self.woken.extend(waiting.cloned());
    }

    /// The bucket is another group's.
    pub(super) fn has_released(&mut self, bucket: u8, cx: &mut Context<'_>) {
        invariant!(!cx.state.is_here(bucket), "what was handed over is not here");
        self.moving.closing.remove(&bucket);
        self.wake(bucket);
        self.tell_gone(bucket, cx);
        invariant!(self.moving.told.contains_key(&bucket), "it is told until it is answered");
    }

    /// Tells the next group that a bucket is its own.
    pub(super) fn tell_gone(&mut self, bucket: u8, cx: &mut Context<'_>) {
        let now = cx.now;
        self.moving.told.entry(bucket).or_insert_with(|| Again::after(now));
        let (version, home) = cx.state.home(bucket);
        self.say(home, bucket, Said::Gone { version }, cx);
    }

    pub(super) fn tick_told(&mut self, cx: &mut Context<'_>) {
        let now = cx.now;
        let due =
            self.moving.told.iter_mut().filter_map(|(it, again)| again.is_due(now).then_some(*it));
        let due: Vec<u8> = due.collect();
        due.into_iter().for_each(|bucket| self.tell_gone(bucket, cx));
    }

    /// The next group has a bucket: nothing of it is kept any more.
    pub(super) fn on_took(
        &mut self,
        bucket: u8,
        group: GroupId,
        version: u64,
        cx: &mut Context<'_>,
    ) {
        invariant!(version > 0, "what is handed over has a version");
        let is_it = cx.state.home(bucket) == (version, group);
        if is_it && cx.state.head.moves.is_kept(bucket) && self.tail.step_of(bucket).is_none() {
            self.step(Step::Let { bucket, version }, cx);
        }
        invariant!(!is_it || !cx.state.is_here(bucket), "only what is gone is taken");
    }
}
