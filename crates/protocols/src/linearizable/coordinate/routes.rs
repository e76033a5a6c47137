//! Where to send: the newest view known for each part of the ring. A hint, never the truth: whoever
//! is asked stamps its reply with the view that it has installed.
//!
//! Along the history of one token versions only rise, through splits too
//! ([`View::after`](quorate_kernel::view::View::after)), so of two views of a token the one with
//! the higher version is the newer.

use crate::linearizable::keys::segments;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::{GroupId, NodeId};
use quorate_kernel::limits::ROUTES_MAX;
use quorate_kernel::view::{Range, View};

/// The table: for each interval its last token, its first one, and the view.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    intervals: BTreeMap<u64, (u64, Arc<View>)>,
}

impl Routes {
    /// The newest view known of a token.
    pub fn find(&self, token: u64) -> Option<&Arc<View>> {
        let (_, (first, view)) = self.intervals.range(token..).next()?;
        (*first <= token).then_some(view)
    }

    /// The newest view known of a group.
    pub fn of(&self, group: GroupId) -> Option<&Arc<View>> {
        let views = self.intervals.values().map(|(_, view)| view);
        views.filter(|view| view.id.group == group).max_by_key(|view| view.id.version)
    }

    /// A token in a range of which a node is a member in the newest view known.
    pub fn expects(&self, range: &Range, node: NodeId) -> Option<u64> {
        segments(range).find_map(|(first, last)| {
            let mut met = self.intervals.range(first..).take_while(|(_, (from, _))| *from <= last);
            let found = met.find(|(_, (_, view))| view.index_of(node).is_some());
            found.map(|(end, _)| last.min(*end))
        })
    }

    /// Takes in a view, wherever no newer one is known; returns whether that changed anything.
    pub fn learn(&mut self, view: &Arc<View>) -> bool {
        let mut is_new = false;
        for (first, last) in segments(&view.range) {
            is_new |= self.cover(first, last, view);
        }
        is_new
    }

    fn cover(&mut self, first: u64, last: u64, view: &Arc<View>) -> bool {
        let met = self.intervals.range(first..).take_while(|(_, (from, _))| *from <= last);
        let met: Vec<u64> = met.map(|(end, _)| *end).collect();
        let is_known = |(_, known): &(u64, Arc<View>)| known.id.version >= view.id.version;
        if let [one] = met[..]
            && let Some(interval) = self.intervals.get(&one)
            && interval.0 <= first
            && one >= last
            && is_known(interval)
        {
            // The usual case: nothing new.
            return false;
        }
        if self.intervals.len() + 2 > ROUTES_MAX {
            // What is dropped is asked for again.
            self.intervals.clear();
        }
        let mut is_new = false;
        // Where the next uncovered token is.
        let mut from = first;
        let mut gap = |intervals: &mut BTreeMap<u64, (u64, Arc<View>)>, from: u64, upto: u64| {
            intervals.insert(upto, (from, Arc::clone(view)));
            is_new = true;
        };
        for end in met {
            let Some((begin, known)) = self.intervals.remove(&end) else { continue };
            if begin < first {
                self.intervals.insert(first - 1, (begin, Arc::clone(&known)));
            }
            if end > last {
                let rest = (last + 1, Arc::clone(&known));
                self.intervals.insert(end, rest);
            }
            let (inner, inner_end) = (begin.max(first), end.min(last));
            if known.id.version >= view.id.version {
                if from < inner {
                    gap(&mut self.intervals, from, inner - 1);
                }
                self.intervals.insert(inner_end, (inner, known));
            } else {
                gap(&mut self.intervals, from, inner_end);
            }
            from = match inner_end.checked_add(1) {
                Some(next) => next,
                None => return is_new,
            };
        }
        if from <= last {
            gap(&mut self.intervals, from, last);
        }
        is_new
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.intervals.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use quorate_kernel::view::ViewId;

    fn view(group: u64, version: u64, low: u64, high: u64) -> Arc<View> {
        let id = ViewId { group: GroupId(group), version };
        Arc::new(View::new(id, Range { low, high }, Vec::from([NodeId(1)])))
    }

    #[test]
    fn a_split_takes_the_place_of_its_parent_where_it_is_known() {
        let mut routes = Routes::default();
        assert!(routes.find(5).is_none());
        assert!(routes.learn(&view(1, 3, 0, 100)));
        assert!(!routes.learn(&view(1, 2, 0, 100)), "older");
        assert!(routes.learn(&view(2, 4, 50, 100)));
        let version = |routes: &Routes, at| routes.find(at).map(|view| view.id.version);
        assert_eq!(version(&routes, 50), Some(3));
        assert_eq!(version(&routes, 51), Some(4));
        assert!(!routes.learn(&view(1, 3, 0, 100)), "the parent does not come back");
        assert_eq!(version(&routes, 101), None);
        assert_eq!(version(&routes, 0), None);
    }

    proptest! {
        /// The table agrees with the slow obvious one: a version for each of a few tokens.
        #[test]
        fn it_keeps_the_highest_version_of_each_token(
            views in proptest::collection::vec((0u64..4, 0u64..9, 0u64..16, 0u64..16), 0..24),
        ) {
            // Tokens 0..16 are spread over the whole space, so that ranges wrap at its end.
            let spread = |at: u64| at * (u64::MAX / 15);
            let (mut routes, mut model) = (Routes::default(), [None::<u64>; 16]);
            for (group, version, low, high) in views {
                let view = view(group, version, spread(low), spread(high));
                routes.learn(&view);
                for (at, known) in (0..).zip(&mut model) {
                    let is_newer = known.is_none_or(|known| known < version);
                    if view.range.contains(spread(at)) && is_newer {
                        *known = Some(version);
                    }
                }
            }
            for (at, known) in (0..).zip(model) {
                prop_assert_eq!(routes.find(spread(at)).map(|view| view.id.version), known);
            }
        }
    }
}
