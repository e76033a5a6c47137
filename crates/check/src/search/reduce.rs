//! Reduces a contradiction to few operations that still contradict each other.
//!
//! What remains must prove the fault of the whole, so only that is removed without which every
//! order of the whole would still be one of the rest: reads, and writes that no remaining read can
//! have seen.

use crate::histories::register::{ABSENT, Action, Kind};
use crate::history::NEVER;
use crate::search::orders::{Finding, Search};
use alloc::vec::Vec;
use core::ops::Range;

/// How many steps all searches of a reduction may take together, and how many one of them. What is
/// not shown to contradict within them is not removed.
const STEPS_MAX: u64 = 40_000_000;
const SEARCH_STEPS_MAX: u64 = 1_000_000;

/// A contradictory set of actions, made as small as removing one by one can make it.
pub(crate) fn reduce(search: &mut Search, actions: &[Action], values: u32) -> Vec<Action> {
    let mut steps_left = STEPS_MAX;
    let mut contradicts = |actions: &[Action]| {
        let answer = search.run(actions, values, steps_left.min(SEARCH_STEPS_MAX));
        steps_left = steps_left.saturating_sub(search.steps());
        answer == Finding::Contradiction
    };
    let mut rest = shortest_prefix(actions, &mut contradicts);
    let mut size = rest.len().div_ceil(2);
    loop {
        let has_shrunk = remove_pieces(&mut rest, size, &mut contradicts);
        if size > 1 {
            size /= 2;
        } else if !has_shrunk {
            return rest;
        }
    }
}

/// The operations up to the first moment at which they could no longer be explained.
fn shortest_prefix(
    actions: &[Action],
    contradicts: &mut impl FnMut(&[Action]) -> bool,
) -> Vec<Action> {
    let mut ends: Vec<u32> = actions.iter().map(|action| action.ended).collect();
    ends.retain(|&end| end != NEVER);
    ends.sort_unstable();
    let is_over = |end: &u32, contradicts: &mut dyn FnMut(&[Action]) -> bool| {
        contradicts(&cut(actions, *end))
    };
    let first = ends.partition_point(|end| !is_over(end, contradicts));
    let end = ends.get(first).or(ends.last()).copied().unwrap_or(NEVER);
    // A write still in flight at that moment contradicts no less with its later end.
    let mut prefix = actions.to_vec();
    prefix.retain(|action| action.began < end && (action.is_write() || action.ended <= end));
    prefix
}

/// What was known when the event `end` had just happened.
fn cut(actions: &[Action], end: u32) -> Vec<Action> {
    let begun = actions.iter().filter(|action| action.began < end);
    let known = begun.filter_map(|action| match action.kind {
        _ if action.ended <= end => Some(*action),
        Kind::Read => None,
        _ => Some(Action { kind: Kind::Open, ended: NEVER, ..*action }),
    });
    known.collect()
}

/// Tries to do without each piece of `size` neighbours; says whether any was removed.
fn remove_pieces(
    rest: &mut Vec<Action>,
    size: usize,
    contradicts: &mut impl FnMut(&[Action]) -> bool,
) -> bool {
    let mut has_shrunk = false;
    let mut at = 0;
    while at < rest.len() {
        let piece = at..(at + size).min(rest.len());
        let smaller = without(rest, &piece);
        if smaller.len() < rest.len() && contradicts(&smaller) {
            *rest = smaller;
            has_shrunk = true;
        } else {
            at = piece.end;
        }
    }
    has_shrunk
}

/// The actions without what may be removed of a piece.
fn without(actions: &[Action], piece: &Range<usize>) -> Vec<Action> {
    let is_kept_read =
        |index: usize, action: &Action| !action.is_write() && !piece.contains(&index);
    let reads: Vec<&Action> = actions
        .iter()
        .enumerate()
        .filter(|(index, action)| is_kept_read(*index, action))
        .map(|(_, action)| action)
        .collect();
    let may_go = |write: &Action| {
        let mut readers = reads.iter().filter(|read| read.value == write.value);
        // The closer look is only worth its time for a single write.
        if piece.len() > 1 {
            return readers.next().is_none();
        }
        readers.all(|read| {
            read.is_before(write)
                || (cannot_have_seen(read, write, actions)
                    && has_other_source(read, write, actions))
        })
    };
    let all = actions.iter().enumerate();
    let kept = all
        .filter(|(index, action)| !piece.contains(index) || (action.is_write() && !may_go(action)));
    kept.map(|(_, action)| *action).collect()
}

/// Whether it can be told without this write where a value came from: a read of a value without any
/// source would contradict alone, but explain nothing.
fn has_other_source(read: &Action, write: &Action, actions: &[Action]) -> bool {
    let is_source = |other: &Action| {
        other.is_write() && other.value == read.value && !read.is_before(other) && other != write
    };
    read.value == ABSENT || actions.iter().any(is_source)
}

/// Whether a read cannot have returned what this write wrote: the write came later, or was surely
/// overwritten before.
pub(crate) fn cannot_have_seen(read: &Action, write: &Action, actions: &[Action]) -> bool {
    read.is_before(write)
        || actions.iter().any(|other| {
            other.kind == Kind::Write
                && other.value != write.value
                && write.is_before(other)
                && other.is_before(read)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn action(kind: Kind, value: u32, began: u32, ended: u32) -> Action {
        Action { kind, value, began, ended, entry: began }
    }

    #[test]
    fn what_has_nothing_to_do_with_the_fault_goes() {
        use Kind::{Open, Read, Write};
        let mut actions = vec![
            action(Write, 0, 0, 1),
            action(Write, 1, 2, 3),
            action(Read, 1, 4, 5),
            action(Write, 2, 6, 7),
            action(Open, 3, 8, NEVER),
            action(Read, 2, 9, 10),
            action(Write, 4, 11, 20),
            action(Read, 1, 12, 13),
            action(Read, 4, 14, 15),
            action(Write, 1, 16, 17),
            action(Read, 1, 18, 19),
        ];
        let mut search = Search::default();
        assert_eq!(search.run(&actions, 5, u64::MAX), Finding::Contradiction);
        let rest = reduce(&mut search, &actions, 5);
        let entries: Vec<u32> = rest.iter().map(|action| action.entry).collect();
        // Written, overwritten by a put that had completed, then read.
        assert_eq!(entries, [2, 6, 12]);
        actions.retain(|action| action.entry != 12);
        assert_eq!(search.run(&actions, 5, u64::MAX), Finding::Explained);
    }

    #[test]
    fn deletes_long_overwritten_are_not_shown() {
        use Kind::{Read, Write};
        let mut actions: Vec<Action> = (0..10)
            .flat_map(|n| {
                let at = n * 4;
                [action(Write, 0, at, at + 1), action(Write, n + 1, at + 2, at + 3)]
            })
            .collect();
        actions.push(action(Read, 0, 50, 51));
        let rest = reduce(&mut Search::default(), &actions, 11);
        assert_eq!(rest.len(), 2);
        assert_eq!((rest[0].kind, rest[1].entry), (Write, 50));
    }
}
