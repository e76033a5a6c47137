//! What is left at a group of buckets that it does not have: a part of a copy that was given up, or
//! what it had before it handed them over.

use super::places::{ROUNDS_MAX, bucket_of, first_key};
use super::step::Step;
use crate::serializable::engine::Context;
use crate::serializable::execute::items::Stored;
use crate::serializable::primary::in_hand::Primary;
use crate::serializable::raw::Raw;
use crate::serializable::rules::SWEEP_KEYS_MAX;
use crate::serializable::sound::is_key;
use alloc::vec::Vec;
use quorate_kernel::invariant;
use quorate_kernel::limits::VSR_PAGE_BYTES_MAX;
use quorate_kernel::mutant;

impl Primary {
    /// Takes those keys out that are of buckets of others; those that nobody needs are dropped.
    /// Whether there are any.
    pub(in crate::serializable) fn clear(
        &mut self,
        items: &mut Vec<(Raw, Stored)>,
        cx: &mut Context<'_>,
    ) -> bool {
        let (state, tail) = (cx.state, &self.tail);
        let may_go = |bucket: u8| {
            let moves = &state.head.moves;
            let is_needed = moves.is_kept(bucket) && !mutant!("txn_clears_what_is_kept");
            !is_needed && moves.arrival(bucket).is_none() && tail.step_of(bucket).is_none()
        };
        let away = |key: &Raw| !state.has(key);
        let cleared = items.iter().map(|(key, _)| key);
        let cleared = cleared.filter(|key| away(key) && may_go(bucket_of(key)));
        let keys: Vec<Raw> = cleared.cloned().collect();
        let is_served = |key: &Raw| !away(key) && tail.step_of(bucket_of(key)).is_none();
        items.retain(|(key, _)| is_served(key));
        let has_any = !keys.is_empty();
        if has_any {
            self.step(Step::Clear { keys }, cx);
        }
        has_any
    }

    /// Drops what is left of a bucket from a key on, some keys at a time until there are none.
    pub(super) fn clear_left(&mut self, bucket: u8, from: Raw, cx: &mut Context<'_>) {
        invariant!(bucket_of(&from) == bucket, "it is looked for where it can be");
        if self.moving.clearing.contains_key(&bucket) || !self.may_propose() {
            return;
        }
        let mut from = from;
        for _ in 0..ROUNDS_MAX {
            let room = (SWEEP_KEYS_MAX, VSR_PAGE_BYTES_MAX);
            let (mut items, next) = cx.state.items.range(&from, room, cx.table);
            items.retain(|(key, _)| bucket_of(key) == bucket && is_key(key));
            let next = next.filter(|next| bucket_of(next) == bucket);
            if self.clear(&mut items, cx) {
                self.moving.clearing.insert(bucket, next);
                return;
            }
            // Keys that were dropped lately are looked at, and not shown.
            let Some(next) = next else { return };
            from = next;
        }
    }

    /// Keys were dropped; the next ones follow.
    pub(super) fn has_cleared(&mut self, keys: &[Raw], cx: &mut Context<'_>) {
        let Some(bucket) = keys.first().map(|key| bucket_of(key)) else { return };
        let next = self.moving.clearing.remove(&bucket).flatten();
        if let Some(next) = next.filter(|_| !cx.state.is_here(bucket)) {
            self.clear_left(bucket, next, cx);
        }
    }

    /// A copy was given up: what has come is dropped.
    pub(super) fn has_abandoned(&mut self, bucket: u8, cx: &mut Context<'_>) {
        invariant!(!cx.state.is_here(bucket), "what was copied is not here");
        self.moving.pulls.remove(&bucket);
        if !mutant!("txn_abandoned_copy_stays") {
            self.clear_left(bucket, first_key(bucket), cx);
        }
    }
}
