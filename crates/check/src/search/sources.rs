//! Tells apart writes of one value that no read can confuse.
//!
//! A read can only have returned what a write wrote that began before the read ended and that was
//! not surely overwritten before the read began. Writes of one value that share no such read, not
//! even by way of others, get values of their own. That changes nothing about whether an order
//! exists, but it leaves far fewer reads whose write must be guessed: deletes all write the same.

use crate::histories::register::{ABSENT, Action, Kind};
use alloc::vec::Vec;

/// A write among those of its value.
#[derive(Clone, Copy)]
struct Source {
    /// Its place among the actions.
    action: u32,
    began: u32,
    /// The latest end of this one and of those before it.
    reach: u32,
}

/// The writes of a value: `sources[start..open]` were acknowledged, `sources[open..end]` are open,
/// both in the order they began.
#[derive(Clone, Copy, Default)]
struct Group {
    start: u32,
    open: u32,
    end: u32,
    /// How many of the open ones are joined already.
    joined: u32,
}

/// The telling apart; its room is kept from one register to the next.
#[derive(Default)]
pub(crate) struct Sources {
    sources: Vec<Source>,
    groups: Vec<Group>,
    /// The acknowledged writes in the order they ended: end and beginning.
    ended: Vec<(u32, u32)>,
    order: Vec<(u32, bool, u32)>,
    /// Per action, and last for the value held first: another of the same component, or itself.
    parent: Vec<u32>,
    number: Vec<u32>,
    actions: Vec<Action>,
}

/// The number of a component that has none yet.
const UNNUMBERED: u32 = u32::MAX;

impl Sources {
    /// The actions with values told apart, and how many values there are; `None` if a read has no
    /// possible source at all, which no order can explain.
    pub fn tell_apart(&mut self, actions: &[Action], values: u32) -> Option<(&[Action], u32)> {
        self.group(actions, values);
        self.actions.clear();
        self.actions.extend_from_slice(actions);
        let initial = u32::try_from(actions.len()).expect("actions are numbered");
        self.parent.clear();
        self.parent.extend(0..=initial);
        let mut over = 0;
        let mut newest = None;
        for (index, read) in (0u32..).zip(actions).filter(|(_, action)| !action.is_write()) {
            while let Some((_, began)) = self.ended.get(over).filter(|(end, _)| *end < read.began) {
                newest = newest.max(Some(*began));
                over += 1;
            }
            self.join_sources(index, read, newest, initial)?;
        }
        Some(self.renumber(initial))
    }

    fn group(&mut self, actions: &[Action], values: u32) {
        self.order.clear();
        self.ended.clear();
        for (index, action) in (0u32..).zip(actions).filter(|(_, action)| action.is_write()) {
            self.order.push((action.value, action.kind == Kind::Open, index));
            if action.kind == Kind::Write {
                self.ended.push((action.ended, action.began));
            }
        }
        self.order.sort_unstable();
        self.ended.sort_unstable();
        self.groups.clear();
        self.groups.resize(values as usize, Group::default());
        self.sources.clear();
        for &(value, is_open, index) in &self.order {
            let place = u32::try_from(self.sources.len()).expect("actions are numbered");
            let group = &mut self.groups[value as usize];
            let Action { began, ended, .. } = actions[index as usize];
            let mut reach = ended;
            if group.end == 0 {
                *group = Group { start: place, open: place, end: place, joined: 0 };
            } else if !is_open {
                reach = reach.max(self.sources[place as usize - 1].reach);
            }
            group.end = place + 1;
            if !is_open {
                group.open = place + 1;
            }
            self.sources.push(Source { action: index, began, reach });
        }
    }

    /// Joins a read with all its possible sources. `newest` is the latest beginning of a write that
    /// was over when the read began: what ended before that was overwritten.
    fn join_sources(
        &mut self,
        index: u32,
        read: &Action,
        newest: Option<u32>,
        initial: u32,
    ) -> Option<()> {
        let Group { start, open, end, joined } = self.groups[read.value as usize];
        let begun =
            |sources: &[Source]| sources.partition_point(|source| source.began < read.ended);
        let mut is_found = false;
        let known = start as usize..open as usize;
        let known = known.start..known.start + begun(&self.sources[known]);
        for place in known.rev() {
            let source = self.sources[place];
            if Some(source.reach) < newest {
                break;
            }
            if Some(self.actions[source.action as usize].ended) > newest {
                self.join(index, source.action);
                is_found = true;
            }
        }
        let count = begun(&self.sources[open as usize..end as usize]);
        for place in joined as usize..count {
            let first = self.sources[open as usize].action;
            self.join(first, self.sources[open as usize + place].action);
        }
        if count > 0 {
            self.groups[read.value as usize].joined = joined.max(count as u32);
            self.join(index, self.sources[open as usize].action);
            is_found = true;
        }
        if read.value == ABSENT && newest.is_none() {
            self.join(index, initial);
            is_found = true;
        }
        is_found.then_some(())
    }

    fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.root(a), self.root(b));
        self.parent[a as usize] = b;
    }

    fn root(&mut self, mut node: u32) -> u32 {
        while self.parent[node as usize] != node {
            let above = self.parent[self.parent[node as usize] as usize];
            self.parent[node as usize] = above;
            node = above;
        }
        node
    }

    /// Numbers the components; the one of the value held first keeps the number of "absent".
    fn renumber(&mut self, initial: u32) -> (&[Action], u32) {
        self.number.clear();
        self.number.resize(self.parent.len(), UNNUMBERED);
        let first = self.root(initial);
        self.number[first as usize] = ABSENT;
        let mut count = ABSENT + 1;
        for index in 0..initial {
            let root = self.root(index) as usize;
            if self.number[root] == UNNUMBERED {
                self.number[root] = count;
                count += 1;
            }
            self.actions[index as usize].value = self.number[root];
        }
        (&self.actions, count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::NEVER;
    use Kind::{Open, Read, Write};

    fn told_apart(spans: &[(Kind, u32, u32, u32)]) -> Option<Vec<u32>> {
        let action = |&(kind, value, began, ended)| Action { kind, value, began, ended, entry: 0 };
        let actions: Vec<Action> = spans.iter().map(action).collect();
        let mut sources = Sources::default();
        let (told, _) = sources.tell_apart(&actions, 3)?;
        Some(told.iter().map(|action| action.value).collect())
    }

    #[test]
    fn writes_far_apart_get_values_of_their_own() {
        let spans = [
            (Read, 0, 0, 1),
            (Write, 1, 2, 3),
            (Read, 1, 4, 5),
            (Write, 0, 6, 7),
            (Read, 0, 8, 9),
            (Write, 1, 10, 20),
            (Write, 1, 11, 21),
            (Read, 1, 12, 13),
        ];
        assert_eq!(told_apart(&spans), Some([0, 1, 1, 2, 2, 3, 3, 3].into()));
    }

    #[test]
    fn a_long_write_does_not_hide_that_a_short_one_was_overwritten() {
        let spans = [(Write, 1, 0, 20), (Write, 1, 1, 2), (Write, 2, 3, 4), (Read, 1, 5, 6)];
        assert_eq!(told_apart(&spans), Some([1, 2, 3, 1].into()));
    }

    #[test]
    fn an_open_write_may_be_the_source_of_any_later_read() {
        let spans = [
            (Read, 0, 0, 1),
            (Open, 0, 2, NEVER),
            (Write, 1, 3, 4),
            (Write, 0, 5, 6),
            (Write, 1, 7, 8),
            (Read, 0, 9, 10),
            (Read, 1, 11, 12),
        ];
        assert_eq!(told_apart(&spans), Some([0, 1, 2, 3, 4, 1, 4].into()));
    }

    #[test]
    fn a_read_without_a_possible_source_is_noticed() {
        let written = (Write, 1, 0, 1);
        let cases = [
            (Read, 2, 2, 3),
            // Overwritten before it began.
            (Read, 0, 2, 3),
        ];
        for read in cases {
            assert_eq!(told_apart(&[written, read]), None);
        }
        // Before any write of the value began.
        assert_eq!(told_apart(&[(Read, 1, 0, 1), (Write, 1, 2, 3)]), None);
        assert!(told_apart(&[(Write, 1, 0, 3), (Read, 0, 1, 2)]).is_some());
    }
}
