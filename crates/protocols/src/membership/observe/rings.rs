//! Rings: in each, members stand in an order of its own, and a member is observed by the one
//! behind it (paper §4.1). So everybody has as many observers, and subjects, as there are rings; in
//! a small cluster some of them are the same.
//!
//! The order hashes ids: an address may change, and one that joins stands where it will stand. Its
//! observers are those that it will have.

use super::super::configuration::Configuration;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use quorate_kernel::ids::NodeId;
use quorate_kernel::rng::mix;

type Place = (u64, NodeId);

/// The rings of a configuration.
#[derive(Clone, Debug, Default)]
pub struct Rings {
    rings: Vec<Vec<Place>>,
}

fn place(ring: usize, node: NodeId) -> Place {
    (mix(mix(ring as u64) ^ mix(node.0)), node)
}

impl Rings {
    /// Those of a configuration.
    #[must_use]
    pub fn of(configuration: &Configuration) -> Rings {
        let ring = |ring: u8| {
            let mut places: Vec<Place> =
                configuration.ids().map(|node| place(usize::from(ring), node)).collect();
            places.sort_unstable();
            places
        };
        Rings { rings: (0..configuration.shape.rings).map(ring).collect() }
    }

    /// Who observes a node in a ring, or would: the next one behind its place. None if there is no
    /// other.
    fn observer(&self, ring: usize, node: NodeId) -> Option<NodeId> {
        let (places, own) = (&self.rings[ring], place(ring, node));
        let behind = places.partition_point(|place| *place <= own);
        let found = places.get(behind).or(places.first())?.1;
        (found != node).then_some(found)
    }

    /// The observers of a member, or of a node that would be one, ring by ring: whoever computes
    /// this of one configuration gets the same list.
    pub fn observers(&self, node: NodeId) -> impl Iterator<Item = (usize, NodeId)> + '_ {
        (0..self.rings.len()).filter_map(move |ring| Some((ring, self.observer(ring, node)?)))
    }

    /// The rings in which one node observes another, one bit each.
    #[must_use]
    pub fn between(&self, observer: NodeId, subject: NodeId) -> u16 {
        let observers = self.observers(subject);
        observers
            .filter(|(_, found)| *found == observer)
            .fold(0, |bits, (ring, _)| bits | 1 << ring)
    }

    /// The different observers of a node.
    #[must_use]
    pub fn observers_of(&self, node: NodeId) -> BTreeSet<NodeId> {
        self.observers(node).map(|(_, observer)| observer).collect()
    }

    /// Whom a member observes.
    #[must_use]
    pub fn subjects_of(&self, node: NodeId) -> BTreeSet<NodeId> {
        let before = |(ring, places): (usize, &Vec<Place>)| {
            let at = places.binary_search(&place(ring, node)).ok()?;
            let subject = places[(at + places.len() - 1) % places.len()].1;
            (subject != node).then_some(subject)
        };
        self.rings.iter().enumerate().filter_map(before).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::configuration::{Member, Shape};
    use super::*;

    fn of(count: u64) -> (Configuration, Rings) {
        let member = |id| Member { id: NodeId(id), ..Member::default() };
        let founders: Vec<Member> = (1..=count).map(member).collect();
        let one = Configuration::founding(Shape::DEFAULT, &founders).expect("they are different");
        let rings = Rings::of(&one);
        (one, rings)
    }

    #[test]
    fn observers_and_subjects_are_two_sides_of_the_same_edges() {
        for count in 1..=30 {
            let (configuration, rings) = of(count);
            for node in configuration.ids() {
                let observers = rings.observers_of(node);
                assert_eq!(rings.observers(node).count(), if count == 1 { 0 } else { 10 });
                assert!(!observers.contains(&node), "nobody observes itself");
                for other in configuration.ids() {
                    let is_subject = rings.subjects_of(other).contains(&node);
                    assert_eq!(observers.contains(&other), is_subject);
                    assert_eq!(rings.between(other, node) != 0, is_subject);
                }
                let all = observers.iter().fold(0, |bits, one| bits | rings.between(*one, node));
                assert_eq!(all, if count == 1 { 0 } else { 0x3ff }, "every ring has one");
            }
        }
    }

    #[test]
    fn who_joins_has_the_observers_that_it_will_have() {
        for count in 1..=12 {
            let (configuration, rings) = of(count);
            let joiner = alloc::sync::Arc::new(Member { id: NodeId(99), ..Member::default() });
            let change = super::super::super::change::Change::new([joiner].into(), Vec::new());
            let before: Vec<_> = rings.observers(NodeId(99)).collect();
            let after = Rings::of(&configuration.after(&change));
            assert_eq!(before.len(), 10);
            assert!(after.observers(NodeId(99)).eq(before), "with {count} members");
        }
    }

    #[test]
    fn observers_are_spread_over_the_members() {
        let (configuration, rings) = of(100);
        let counts: Vec<usize> =
            configuration.ids().map(|node| rings.observers_of(node).len()).collect();
        assert!(counts.iter().all(|count| *count >= 6), "{counts:?}");
        assert!(counts.iter().filter(|count| **count >= 9).count() > 80, "{counts:?}");
    }
}
