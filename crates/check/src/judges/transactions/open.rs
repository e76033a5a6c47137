//! Operations of unknown outcome: which of them matter, and which must have happened.

use super::step::{Need, Step};
use crate::history::NEVER;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// The steps without those of unknown outcome that need not have happened; and those that must
/// have, since others found what they alone wrote, end with the first that found it. There is an
/// order of these if there is one of all.
pub(super) fn sift(steps: &[Step]) -> Vec<Step> {
    let mut kept = useful(steps);
    while bind(&mut kept) {}
    kept
}

/// An open step that leaves nothing that any other needs can be left out of any order: who read a
/// key between it and the next write of that key would have found what it left.
fn useful(steps: &[Step]) -> Vec<Step> {
    let mut is_kept: Vec<bool> = steps.iter().map(|step| !step.is_open()).collect();
    loop {
        let is_useful = |at: usize| {
            let others = steps.iter().enumerate().filter(|(other, _)| *other != at);
            let mut kept = others.filter(|(other, _)| is_kept[*other]);
            kept.any(|(_, other)| {
                let is_later = other.ended > steps[at].began;
                is_later && other.needs.iter().any(|needed| steps[at].may_meet(needed))
            })
        };
        let found: Vec<usize> =
            (0..steps.len()).filter(|at| !is_kept[*at] && is_useful(*at)).collect();
        if found.is_empty() {
            break;
        }
        found.into_iter().for_each(|at| is_kept[at] = true);
    }
    let kept = steps.iter().zip(is_kept).filter(|(_, is_kept)| *is_kept);
    kept.map(|(step, _)| step.clone()).collect()
}

/// Ends open steps that must have happened. Says whether there was any.
fn bind(steps: &mut [Step]) -> bool {
    // By what is written: the only step that writes it, if there is only one.
    let mut sources: BTreeMap<u32, Option<usize>> = BTreeMap::new();
    for (at, step) in steps.iter().enumerate() {
        for cell in &step.writes {
            sources.entry(*cell).and_modify(|source| *source = None).or_insert(Some(at));
        }
    }
    let mut ends: BTreeMap<usize, u32> = BTreeMap::new();
    for (at, step) in steps.iter().enumerate().filter(|(_, step)| !step.is_open()) {
        for needed in &step.needs {
            let Need::Is(cell) = needed.need else { continue };
            // Each key begins without a value, so that nobody need have taken it away.
            let is_first = cell == needed.key;
            let Some(Some(source)) = sources.get(&cell).filter(|_| !is_first) else { continue };
            if *source != at && steps[*source].is_open() && steps[*source].began < step.ended {
                let end = ends.entry(*source).or_insert(NEVER);
                *end = step.ended.min(*end);
            }
        }
    }
    for (at, end) in &ends {
        steps[*at].ended = *end;
    }
    !ends.is_empty()
}
