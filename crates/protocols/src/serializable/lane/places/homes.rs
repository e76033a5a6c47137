//! Which group has which bucket, as far as this host knows: hints, by which it is chosen who is
//! asked. What is right the groups' logs say ([`crate::serializable::moves`]).

use super::place::{BUCKETS, Shape};
use crate::serializable::bucket_of;
use alloc::collections::{BTreeMap, BTreeSet};
use quorate_kernel::ids::GroupId;
use quorate_kernel::invariant;
use quorate_kernel::view::Range;

/// Where buckets are, and where they should be.
#[derive(Debug)]
pub struct Homes {
    founding: Shape,
    wanted: Shape,
    /// How often buckets were handed over, and who has them then, as primaries have told.
    told: BTreeMap<u8, (u64, GroupId)>,
    /// Groups that were added.
    added: BTreeSet<GroupId>,
}

impl Homes {
    /// As it was in the beginning.
    pub fn new(founding: Shape) -> Homes {
        Homes { founding, wanted: founding, told: BTreeMap::new(), added: BTreeSet::new() }
    }

    /// The placement of the beginning.
    pub fn founding(&self) -> Shape {
        self.founding
    }

    /// So many groups should share the buckets; 0 is as many as in the beginning.
    pub fn want(&mut self, groups: u64) {
        self.wanted = if groups == 0 { self.founding } else { Shape::new(groups) };
    }

    /// The groups that should share the buckets.
    pub fn wanted(&self) -> Shape {
        self.wanted
    }

    /// The groups there are, ascending: also those that have no bucket any more.
    pub fn groups(&self) -> impl Iterator<Item = GroupId> {
        self.founding.groups().chain(self.added.iter().copied())
    }

    /// Whether a keyspace can have the group.
    pub fn may_be(group: GroupId) -> bool {
        (1..=BUCKETS).contains(&group.0)
    }

    /// Whether the group is known to be there.
    pub fn knows(&self, group: GroupId) -> bool {
        self.founding.groups().any(|it| it == group) || self.added.contains(&group)
    }

    /// A group was added.
    pub fn add(&mut self, group: GroupId) {
        invariant!(Homes::may_be(group), "groups are no more than buckets");
        if !self.knows(group) {
            self.added.insert(group);
        }
    }

    /// Who has a bucket, and how often it was handed over.
    pub fn home(&self, bucket: u8) -> (u64, GroupId) {
        let told = self.told.get(&bucket).copied();
        told.unwrap_or_else(|| (0, self.founding.of_bucket(bucket)))
    }

    /// The group of a stored key.
    pub fn group_of(&self, stored: &[u8]) -> GroupId {
        self.home(bucket_of(stored)).1
    }

    /// A primary says where a bucket is; whether that is news.
    pub fn note(&mut self, bucket: u8, home: (u64, GroupId)) -> bool {
        let is_news = home.0 > self.home(bucket).0 && Homes::may_be(home.1);
        if is_news {
            self.told.insert(bucket, home);
        }
        is_news
    }

    /// Buckets that are not where they should be.
    pub fn away(&self) -> impl Iterator<Item = u8> + '_ {
        let is_away = |bucket: &u8| self.home(*bucket).1 != self.wanted.of_bucket(*bucket);
        (0..=u8::MAX).filter(is_away)
    }

    /// How many buckets were heard to have moved, and groups to have been added.
    pub fn moved(&self) -> usize {
        self.told.len() + self.added.len()
    }

    /// The tokens of a group, from its first to its last: while buckets move there may be others
    /// between them. None if it has none.
    pub fn range(&self, group: GroupId) -> Option<Range> {
        let mut of = (0..=u8::MAX).filter(|bucket| self.home(*bucket).1 == group);
        let first = of.next()?;
        let last = of.next_back().unwrap_or(first);
        let before = |bucket: u64| (bucket << 56).wrapping_sub(1);
        let high = before((u64::from(last) + 1) % BUCKETS);
        Some(Range { low: before(u64::from(first)), high })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_version_says_where_a_bucket_is() {
        let mut homes = Homes::new(Shape::new(2));
        assert_eq!((homes.home(200), homes.away().count()), ((0, GroupId(2)), 0));
        homes.want(3);
        assert_eq!(homes.away().count(), 42 + 85, "each has a third");
        assert!(homes.note(200, (2, GroupId(3))) && !homes.note(200, (1, GroupId(1))));
        assert!(!homes.note(200, (2, GroupId(1))), "a version has one home");
        assert!(!homes.note(201, (1, GroupId(257))), "no keyspace has that group");
        assert_eq!((homes.group_of(&[200, 7]), homes.away().count()), (GroupId(3), 126));
        assert!(!homes.knows(GroupId(3)));
        homes.add(GroupId(3));
        assert!(homes.groups().eq([1, 2, 3].map(GroupId)));
        homes.want(0);
        assert_eq!(homes.away().count(), 1);
        let of =
            |group| homes.range(GroupId(group)).map(|range| (range.low >> 56, range.high >> 56));
        assert_eq!([of(1), of(3), of(4)], [Some((255, 127)), Some((199, 200)), None]);
    }

    #[test]
    fn tokens_of_groups_are_those_of_the_beginning_until_buckets_move() {
        for groups in [1, 2, 3, 5, 100, 256] {
            let shape = Shape::new(groups);
            let homes = Homes::new(shape);
            for group in shape.groups() {
                assert_eq!(homes.range(group), Some(shape.range(group)), "{group:?} of {groups}");
            }
        }
    }
}
