//! Decides without a search whether one key's operations can be explained, where every read has
//! only one possible write (Gibbons and Korach, "Testing shared memories", on reads with a known
//! mapping), and finds many contradictions where some have several.
//!
//! A write and its reads form a cluster, which no other write may break. If one of them ended
//! before another began, the register holds their value from that end to that beginning: a
//! **forward zone**. Otherwise there is a stretch that all of them share, a **backward zone**, and
//! the cluster may stand at any point of it. There is an order if and only if no two forward zones
//! overlap and no backward zone lies within a forward one. Where the write of a read is not known,
//! the operations of the value are judged one by one, each as a backward zone: then no conflict
//! proves nothing.

use crate::histories::register::{ABSENT, Action, Kind};
use crate::search::orders::Finding;
use alloc::vec::Vec;

/// The operations of one value so far.
#[derive(Clone, Copy)]
struct Cluster {
    writes: u32,
    reads: u32,
    first_end: i64,
    last_begin: i64,
}

const EMPTY: Cluster = Cluster { writes: 0, reads: 0, first_end: i64::MAX, last_begin: i64::MIN };

/// The zones of one register; their room is kept from one to the next.
#[derive(Default)]
pub(crate) struct Zones {
    clusters: Vec<Cluster>,
    /// From the first end to the last beginning.
    forward: Vec<(i64, i64)>,
    /// From the last beginning to the first end.
    backward: Vec<(i64, i64)>,
}

impl Zones {
    /// The answer, or `None` if it takes a search.
    pub fn judge(&mut self, actions: &[Action], values: u32) -> Option<Finding> {
        let is_mapped = self.fill(actions, values);
        self.forward.sort_unstable();
        let has_overlap = self.forward.windows(2).any(|pair| pair[0].1 > pair[1].0);
        if has_overlap || self.backward.iter().any(|zone| self.is_within_forward(*zone)) {
            return Some(Finding::Contradiction);
        }
        is_mapped.then_some(Finding::Explained)
    }

    /// Builds the zones; says whether every read has only one possible write.
    fn fill(&mut self, actions: &[Action], values: u32) -> bool {
        self.clusters.clear();
        self.clusters.resize(values as usize, EMPTY);
        // What the key held first was written before everything.
        self.clusters[ABSENT as usize] = Cluster { writes: 1, first_end: -1, ..EMPTY };
        for action in actions {
            let cluster = &mut self.clusters[action.value as usize];
            if action.is_write() {
                cluster.writes += 1;
            } else {
                cluster.reads += 1;
            }
            cluster.first_end = cluster.first_end.min(i64::from(action.ended));
            cluster.last_begin = cluster.last_begin.max(i64::from(action.began));
        }
        self.forward.clear();
        self.backward.clear();
        let mut is_mapped = true;
        for cluster in self.clusters.iter().filter(|cluster| cluster.reads > 0) {
            if cluster.writes > 1 {
                is_mapped = false;
            } else if cluster.first_end < cluster.last_begin {
                self.forward.push((cluster.first_end, cluster.last_begin));
            } else {
                self.backward.push((cluster.last_begin, cluster.first_end));
            }
        }
        for action in actions {
            let cluster = &self.clusters[action.value as usize];
            let is_alone = cluster.reads == 0 || cluster.writes > 1;
            // An open write need not happen.
            if is_alone && action.kind != Kind::Open {
                self.backward.push((i64::from(action.began), i64::from(action.ended)));
            }
        }
        is_mapped
    }

    /// Whether a backward zone lies within one of the forward zones, which are sorted and disjoint.
    fn is_within_forward(&self, (from, to): (i64, i64)) -> bool {
        let after = self.forward.partition_point(|(start, _)| *start < from);
        after > 0 && to < self.forward[after - 1].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::orders::Search;
    use quorate_kernel::rng::Rng;

    fn random_actions(rng: &mut Rng, values: u32) -> Vec<Action> {
        let count = rng.between(1, 7) as u32;
        let mut times: Vec<u32> = (0..count * 2).collect();
        for index in (1..times.len()).rev() {
            times.swap(index, rng.below(index as u64 + 1) as usize);
        }
        let mut actions: Vec<Action> = times
            .chunks_exact(2)
            .map(|pair| {
                let (began, ended) = (pair[0].min(pair[1]), pair[0].max(pair[1]));
                let kind = [Kind::Read, Kind::Write, Kind::Read, Kind::Write, Kind::Open]
                    [rng.below(5) as usize];
                let ended = if kind == Kind::Open { crate::history::NEVER } else { ended };
                Action { kind, value: rng.below(values.into()) as u32, began, ended, entry: 0 }
            })
            .collect();
        actions.sort_by_key(|action| action.began);
        actions
    }

    #[test]
    fn a_read_of_unknown_source_cannot_break_a_cluster() {
        let action = |kind, value, began, ended| Action { kind, value, began, ended, entry: 0 };
        let mut actions = [
            action(Kind::Write, 1, 0, 20),
            action(Kind::Write, 1, 1, 21),
            action(Kind::Write, 2, 2, 3),
            action(Kind::Read, 1, 4, 5),
            action(Kind::Read, 2, 6, 7),
        ];
        assert_eq!(Zones::default().judge(&actions, 3), Some(Finding::Contradiction));
        actions[3].ended = 10;
        assert_eq!(Zones::default().judge(&actions, 3), None);
    }

    #[test]
    fn the_search_agrees_with_every_shortcut() {
        let mut rng = Rng::new(5);
        let (mut zones, mut search, mut shortcut) =
            (Zones::default(), Search::default(), Search::default());
        let (mut explained, mut contradicted) = (0, 0);
        for round in 0..60_000 {
            let values = rng.between(2, 6) as u32;
            let actions = random_actions(&mut rng, values);
            let plain = search.explore(&actions, values, u64::MAX);
            assert_eq!(shortcut.run(&actions, values, u64::MAX), plain, "{round}: {actions:#?}");
            let Some(answer) = zones.judge(&actions, values) else { continue };
            // Zones take it that no read ended before its write began.
            let is_early = |read: &Action| {
                let mut all = actions.iter();
                !read.is_write()
                    && all.any(|w| w.is_write() && w.value == read.value && read.is_before(w))
            };
            let is_unwritten = |read: &Action| {
                read.value != ABSENT
                    && !actions.iter().any(|w| w.is_write() && w.value == read.value)
            };
            if actions.iter().any(|action| is_early(action) || is_unwritten(action)) {
                continue;
            }
            assert_eq!(answer, plain, "{round}: {actions:#?}");
            match answer {
                Finding::Explained => explained += 1,
                _ => contradicted += 1,
            }
        }
        assert!(explained > 1000, "{explained}");
        assert!(contradicted > 1000, "{contradicted}");
    }
}
