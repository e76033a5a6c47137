//! Enough is here: a node takes a place in the order, and answers for what it has taken over.
//!
//! Events that come while a node without a place takes over wait for it. There is room for so many
//! only: where more come while all of its range is sent, what it has is too old when the last page
//! comes. Then it takes over half of it, which is sent in half the time, and half of that, until it
//! is soon enough. With a place, it takes over what is beside it.

use super::behind::Heard;
use super::enough::Had;
use super::join::{Joining, Standing};
use super::snapshot::time;
use crate::epidemic::replica::range::Range;
use crate::epidemic::{Context, Epidemic};
use crate::epto::{EventKey, Horizon, LogicalTime, ResumeError};
use alloc::boxed::Box;
use alloc::vec::Vec;
use quorate_kernel::{invariant, mutant, probe};

impl Epidemic {
    /// Enough is here: the node is ready.
    pub(super) fn take_over(&mut self, had: Had, cx: &mut Context<'_>) {
        let target = had.range;
        invariant!(self.state.writes.is_empty(), "an input begins without writes");
        let Standing::Joining(joining) = &mut self.state.standing else { return };
        let furthest_ready = time(joining.furthest_ready);
        if self.drop_behind(&target, furthest_ready) {
            // What came late, after all that was asked for.
            return self.flush(cx);
        }
        let Standing::Joining(joining) = &mut self.state.standing else { return };
        let has_ready = joining.done(true).next().is_some();
        let own = Horizon { last: self.state.last, ..Horizon::default() };
        let since = self.state.last;
        // Of who lags nothing was taken; who had something itself has what there is.
        let had_any = since.is_some() && !joining.has_dropped;
        let is_alone =
            !had_any && joining.done(false).all(|donor| donor.lags() || !donor.is_member);
        let heard = joining.heard.map_or(LogicalTime(0), |furthest| furthest.time);
        let mut horizon = joining.horizon(own, &had);
        let lost = if has_ready { joining.lost(&had) } else { joining.in_doubt(&had) };
        let takes_place = joining.takes_place;
        // Who has no place has none: nothing has its turn there.
        let (deferred, cuts) = (core::mem::take(&mut joining.deferred), joining.cuts);
        if takes_place {
            let clock = horizon.last.map_or(LogicalTime(0), |last| last.time);
            horizon.clock = horizon.clock.max(clock);
            // Where nobody is ready what was heard of is all that says how far others were.
            let is_led = has_ready && !mutant!("epidemic_believes_any_horizon");
            let is_new = !self.state.epto.has_clock();
            if is_new && !is_led && !mutant!("epidemic_resumes_behind_the_furthest") {
                horizon.clock = horizon.clock.max(heard);
            }
            if !self.resume(&horizon, has_ready, cx) {
                return;
            }
            if let Some(last) = horizon.last {
                self.state.skip_to(last);
                self.forget_old(last.time);
            }
            // What is written from now on comes behind all that was heard of, taken or not.
            if !mutant!("epidemic_resumes_behind_the_furthest") {
                self.state.epto.on_heard_of(heard);
            }
        }
        probe!("epidemic/joined");
        if takes_place {
            self.state.is_alone = is_alone;
            self.note_found(&target, since);
        }
        self.state.behind.end(&target, &mut self.state.writes);
        self.perform_deferred(deferred, &target);
        self.begin_doubt(&target, &lost);
        self.state.counters.joins += 1;
        let ready = self.state.ready.unwrap_or(target);
        let (first, last) = (ready.first.min(target.first), ready.last.max(target.last));
        self.state.ready = Some(Range { first, last });
        self.state.note_rest();
        let is_whole = self.state.is_whole();
        let floor = self.state.last;
        self.state.standing = match is_whole {
            true => Standing::Ready,
            // It may be in time with more, the next time.
            false => {
                let cuts = cuts.saturating_sub(1);
                Standing::Joining(Box::new(Joining { floor, cuts, ..Joining::default() }))
            }
        };
        self.flush(cx);
        invariant!(self.state.epto.has_place(), "who is ready knows its place in the order");
    }

    /// What was here, up to this event, and is not taken over with this range: that of other slices
    /// is handed over, the rest of the own one is taken over next.
    fn note_found(&mut self, target: &Range, since: Option<EventKey>) {
        // It may have skipped events of that time.
        let is_next = self.state.last == since;
        let since = time(since).saturating_sub(u64::from(!is_next));
        self.give_up_found(Vec::new(), LogicalTime(since));
        let range = self.state.range().expect("who joins has a slice");
        for rest in range.without(target) {
            self.state.behind.note(&rest, Heard::Own(LogicalTime(since)), &mut self.state.writes);
        }
    }

    /// Takes a place in the order, or begins anew; returns whether there is one.
    fn resume(&mut self, horizon: &Horizon, has_ready: bool, cx: &mut Context<'_>) -> bool {
        let resumed = self.state.epto.resume_at(horizon);
        if let (Err(error), Standing::Joining(joining)) = (resumed, &mut self.state.standing) {
            probe!("epidemic/snapshot_old");
            // Of those that have no place nobody comes further: the same would come of it again.
            let is_old = error == ResumeError::Old;
            match is_old && has_ready && !mutant!("epidemic_old_is_asked_again") {
                true => joining.take_less(),
                false => joining.restart(),
            }
            joining.is_left_behind |= is_old && !has_ready;
        }
        let is_far = resumed == Err(ResumeError::Far);
        let (own, clock) = (time(self.state.last), self.state.epto.clock().0);
        self.say_ahead(if is_far { own.saturating_sub(clock) } else { 0 }, cx);
        resumed.is_ok()
    }

    /// Drops all that is stored: it may be what others have purged.
    pub(in crate::epidemic) fn drop_all(&mut self, cx: &mut Context<'_>) {
        let state = &mut self.state;
        state.drop_part(&Range::ALL);
        state.last = None;
        state.former.clear();
        state.writes.push((super::super::keys::LAST, None));
        self.flush(cx);
    }
}
