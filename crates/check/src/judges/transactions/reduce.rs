//! Few steps of a contradictory set that contradict each other.
//!
//! As in [`crate::search::reduce`], only that is removed without which every order of the whole
//! would still be one of the rest: what a step needs, and then the step, if it leaves nothing that
//! a remaining one may have found.

use super::search::Search;
use super::step::{Need, Step};
use crate::search::orders::Finding;
use alloc::vec::Vec;
use core::ops::Range;

/// How much all searches of a reduction may look at together, and one of them. What is not shown to
/// contradict within them is not removed.
const STEPS_MAX: u64 = 40_000_000;
const SEARCH_STEPS_MAX: u64 = 1_000_000;

/// A contradictory set of steps, made as small as removing pieces and single steps can make it.
pub(super) fn reduce(search: &mut Search, steps: &[Step], keys: usize, cells: usize) -> Vec<Step> {
    if let Some(step) = steps.iter().find(|step| step.is_impossible) {
        return [step.clone()].into();
    }
    let mut steps_left = STEPS_MAX;
    let mut contradicts = |steps: &[Step]| {
        let answer = search.run(steps, keys, cells, steps_left.min(SEARCH_STEPS_MAX));
        steps_left = steps_left.saturating_sub(search.steps());
        answer == Finding::Contradiction
    };
    let mut rest = shortest_prefix(steps, &mut contradicts);
    // What keys did not have says little, and holds many steps back that gave them something else.
    let mut plain = rest.clone();
    plain
        .iter_mut()
        .for_each(|step| step.needs.retain(|needed| matches!(needed.need, Need::Is(_))));
    if contradicts(&plain) {
        rest = plain;
    }
    let mut size = rest.len().div_ceil(2).max(1);
    loop {
        let has_shrunk = remove_pieces(&mut rest, size, &mut contradicts);
        if size > 1 {
            size /= 2;
        } else if !has_shrunk {
            return rest;
        }
    }
}

/// The steps up to the first end at which they could no longer be explained.
fn shortest_prefix(steps: &[Step], contradicts: &mut impl FnMut(&[Step]) -> bool) -> Vec<Step> {
    let known = steps.iter().filter(|step| !step.is_open());
    let mut ends: Vec<u32> = known.map(|step| step.ended).collect();
    ends.sort_unstable();
    let first = ends.partition_point(|end| !contradicts(&cut(steps, *end)));
    match ends.get(first) {
        Some(end) => cut(steps, *end),
        // No end was shown to be too late within the bounds of a search.
        None => steps.to_vec(),
    }
}

/// What was known when the event `end` had just happened.
fn cut(steps: &[Step], end: u32) -> Vec<Step> {
    let begun = steps.iter().filter(|step| step.began < end);
    let known = begun.filter_map(|step| match step.ended <= end {
        true => Some(step.clone()),
        false => step.unanswered(),
    });
    known.collect()
}

/// Tries to do without each piece of `size` neighbours; says whether any was removed.
fn remove_pieces(
    rest: &mut Vec<Step>,
    size: usize,
    contradicts: &mut impl FnMut(&[Step]) -> bool,
) -> bool {
    let (mut has_shrunk, mut at) = (false, 0);
    while at < rest.len() {
        let piece = at..(at + size).min(rest.len());
        let smaller = without(rest, &piece);
        if weight(&smaller) < weight(rest) && contradicts(&smaller) {
            // Some steps of the piece may have stayed for what they write.
            at += smaller.len() + piece.len() - rest.len();
            *rest = smaller;
            has_shrunk = true;
        } else {
            at = piece.end;
        }
    }
    has_shrunk
}

/// How much there is to read.
fn weight(steps: &[Step]) -> usize {
    steps.len() + steps.iter().map(|step| step.needs.len()).sum::<usize>()
}

/// The steps without what may be removed of a piece: of its end first, since what comes later may
/// be all that has found what came before.
fn without(steps: &[Step], piece: &Range<usize>) -> Vec<Step> {
    let mut rest = steps.to_vec();
    for at in piece.clone().rev() {
        rest[at].needs.clear();
        let step = &rest[at];
        let others = rest.iter().enumerate().filter(|(other, _)| *other != at);
        let mut needs = others.flat_map(|(_, other)| &other.needs);
        if !needs.any(|needed| step.may_meet(needed)) {
            rest.remove(at);
        }
    }
    rest
}
