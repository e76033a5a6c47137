//! The smallest slice, and the smallest half of one, that anybody knows of.
//!
//! Positions are random, so sizes spread around their mean: of sixteen nodes in four slices some
//! slice has one member or none in every fourth cluster. So nodes tell each other the least that
//! they have heard, with the number of periods since its members said so. Who is the least says it
//! anew each period; what nobody says any more is forgotten with age.

use super::position::Groups;
use quorate_kernel::mutant;
use serde::{Deserialize, Serialize};

/// A number of members, and how many periods ago some of them counted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// How many.
    pub members: u16,
    /// How long ago.
    pub age: u16,
}

/// The least, among slices of one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Least {
    /// Of all slices.
    pub whole: Counted,
    /// Of all halves of slices.
    pub half: Counted,
}

/// What a node knows of the least.
#[derive(Clone, Debug, Default)]
pub(super) struct Floor(Option<Least>);

impl Counted {
    fn now(members: u16) -> Counted {
        Counted { members, age: 0 }
    }

    /// The lower one; of two that are equal the younger.
    fn lower(self, other: Counted) -> Counted {
        if (other.members, other.age) < (self.members, self.age) { other } else { self }
    }

    /// A period later: what is too old is replaced by what the node counts itself.
    fn aged(self, own: u16, age_max: u16) -> Counted {
        let older = Counted { age: self.age.saturating_add(1), ..self };
        if older.age > age_max { Counted::now(own) } else { older.lower(Counted::now(own)) }
    }
}

impl Floor {
    /// What is told of it: older by one, or what nobody counts any more could go from one to the
    /// other for ever.
    pub fn told(&self) -> Option<Least> {
        let older = |counted: Counted| Counted { age: counted.age.saturating_add(1), ..counted };
        let told = |least: Least| Least { whole: older(least.whole), half: older(least.half) };
        if mutant!("slices_floor_stays_young") { self.0 } else { self.0.map(told) }
    }

    /// What is known; none while the own slice is not.
    pub fn least(&self) -> Option<Least> {
        self.0
    }

    /// A period has passed; `own` is what the node counts of its slice and of its smaller half.
    pub fn on_period(&mut self, own: Option<(u16, u16)>, age_max: u16) {
        self.0 = own.map(|(whole, half)| match self.0 {
            None => Least { whole: Counted::now(whole), half: Counted::now(half) },
            Some(known) => Least {
                whole: known.whole.aged(whole, age_max),
                half: known.half.aged(half, age_max),
            },
        });
    }

    /// A partner that goes by the same number tells what it knows.
    pub fn hear(&mut self, told: Option<Least>, age_max: u16) {
        let Some((known, told)) = self.0.as_mut().zip(told) else { return };
        let is_young = |counted: Counted| counted.age <= age_max;
        if is_young(told.whole) {
            known.whole = known.whole.lower(told.whole);
        }
        if is_young(told.half) {
            known.half = known.half.lower(told.half);
        }
    }

    /// Another number of slices: nothing is known of them yet.
    pub fn clear(&mut self) {
        self.0 = None;
    }
}

/// The number of slices that the smallest of them wants, if any does: `floor` is the fewest members
/// that a slice shall have, and `is_crowded` says whether there are enough nodes for more slices.
/// They are cut only where each half has twice that, so that one that is down for a while does not
/// join them again.
pub(super) fn wanted(
    least: Option<Least>,
    groups: Groups,
    floor: u16,
    is_crowded: bool,
) -> Option<Groups> {
    let least = least?;
    if least.whole.members < floor {
        return groups.log2().checked_sub(1).and_then(Groups::power);
    }
    let has_room = least.half.members >= 2 * floor;
    (is_crowded && has_room).then(|| Groups::power(groups.log2() + 1)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn least(whole: u16, half: u16) -> Option<Least> {
        Some(Least { whole: Counted::now(whole), half: Counted::now(half) })
    }

    #[test]
    fn the_lowest_is_kept_while_somebody_says_it() {
        let mut floor = Floor::default();
        floor.hear(least(1, 0), 3);
        assert_eq!(floor.least(), None, "it knows no slice of its own");
        floor.on_period(Some((9, 4)), 3);
        floor.hear(least(7, 5), 3);
        let members = |floor: &Floor| {
            let least = floor.least().expect("it counts");
            (least.whole.members, least.half.members)
        };
        assert_eq!(members(&floor), (7, 4));
        for _ in 0..3 {
            floor.on_period(Some((9, 4)), 3);
            assert_eq!(members(&floor), (7, 4));
        }
        floor.on_period(Some((9, 4)), 3);
        assert_eq!(members(&floor), (9, 4), "nobody says it any more");
        let old = Least { whole: Counted { members: 1, age: 4 }, ..least(9, 4).expect("some") };
        floor.hear(Some(old), 3);
        assert_eq!(members(&floor), (9, 4));
        floor.on_period(None, 3);
        assert_eq!(floor.least(), None);
    }

    #[test]
    fn slices_are_cut_where_all_halves_are_large_and_joined_where_one_is_small() {
        let groups = |log2| Groups::power(log2).expect("few");
        let table = [
            (least(12, 6), true, Some(groups(3))),
            (least(12, 5), true, None),
            (least(12, 6), false, None),
            (least(3, 0), true, None),
            (least(2, 1), false, Some(groups(1))),
            (None, true, None),
        ];
        for (least, is_crowded, expected) in table {
            assert_eq!(wanted(least, groups(2), 3, is_crowded), expected, "{least:?}");
        }
        assert_eq!(wanted(least(1, 0), Groups::ONE, 3, false), None, "there is but one");
    }
}
