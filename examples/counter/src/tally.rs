//! What was added to one key, and what of that was deleted.

use bytes::Bytes;
use quorate_kernel::evaluate::Cell;
use quorate_kernel::expiry::Expiry;
use quorate_kernel::ids::Incarnation;
use quorate_kernel::operation::Refusal;
use quorate_kernel::plain::PlainData;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a put takes.
const EXPECTED: &str = "numbers to add: whole, and 2^64 - 1 in all from one start of a host";

/// By who added it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally(BTreeMap<Incarnation, Share>);

/// What one incarnation added, and how much of it was deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Share {
    added: u64,
    deleted: u64,
}

impl Tally {
    /// What is left.
    fn sum(&self) -> u128 {
        self.0.values().map(|share| u128::from(share.added - share.deleted)).sum()
    }

    /// Adds a number under a name.
    ///
    /// # Errors
    /// There is no room for it.
    fn add(&mut self, who: Incarnation, number: u64) -> Result<(), Refusal> {
        let share = self.0.entry(who).or_default();
        let added = share.added.checked_add(number);
        share.added = added.ok_or(Refusal::Value { expected: EXPECTED })?;
        Ok(())
    }

    /// Takes in what another host has heard. Returns whether that was news.
    pub fn merge(&mut self, other: &Tally) -> bool {
        let before = self.clone();
        for (who, theirs) in &other.0 {
            let mine = self.0.entry(*who).or_default();
            mine.added = mine.added.max(theirs.added);
            mine.deleted = mine.deleted.max(theirs.deleted);
        }
        self.check();
        *self != before
    }

    /// What must always hold.
    pub fn check(&self) {
        assert!(self.is_sound(), "no more is deleted than was added");
    }
}

/// As it is stored and told.
impl PlainData for Tally {
    fn is_sound(&self) -> bool {
        self.0.values().all(|share| share.deleted <= share.added)
    }
}

/// A tally and the host that adds to it.
pub struct Own(pub Incarnation, pub Tally);

impl Cell for Own {
    fn value(&self) -> Option<Bytes> {
        Some(self.1.sum()).filter(|sum| *sum > 0).map(|sum| Bytes::from(sum.to_string()))
    }

    fn put(&mut self, value: &Bytes, _expiry: Expiry) -> Result<(), Refusal> {
        let number = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
        self.1.add(self.0, number.ok_or(Refusal::Value { expected: EXPECTED })?)
    }

    /// Takes away all that is there.
    fn delete(&mut self) {
        self.1.0.values_mut().for_each(|share| share.deleted = share.added);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_kernel::ids::{NodeId, Start};

    fn who(node: u64) -> Incarnation {
        Incarnation { node: NodeId(node), start: Start(1) }
    }

    #[test]
    fn what_was_not_heard_of_outlives_a_delete() {
        let (mut a, mut b) = (Tally::default(), Tally::default());
        assert!(a.add(who(1), 5).is_ok() && b.merge(&a) && !b.merge(&a));
        assert!(a.add(who(1), 2).is_ok());
        let mut own = Own(who(2), b);
        own.delete();
        let Own(_, mut b) = own;
        assert_eq!((a.sum(), b.sum()), (7, 0));
        assert!(a.merge(&b) && b.merge(&a));
        assert_eq!((a.sum(), b.sum()), (2, 2));
        assert!(a.add(who(1), u64::MAX).is_err() && a.sum() == 2, "it is refused, not wrapped");
    }
}
