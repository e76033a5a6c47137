//! Values that expire, in words that the judge of transactions knows.
//!
//! A value that is put with an end is recorded as put, and its expiry as a removal that is begun
//! when its time has come by the clock that is furthest ahead, and whose outcome nobody is told: it
//! takes that very value away, at some later moment, or never. So a key that is empty too early is
//! a violation like any other. That a value is shown too late is looked at here: whoever begins to
//! read when its time has come by all clocks must not be shown it.

use crate::hosts::clock::Clock;
use crate::workload::section::WorkloadSection;
use bytes::Bytes;
use quorate_check::history::{ClientId, Completion, Recorder};
use quorate_kernel::expiry::Expiry;
use quorate_kernel::operation::Operation;
use quorate_kernel::rng::Rng;
use quorate_kernel::time::Time;
use quorate_kernel::transaction::{Condition, Item, ItemOutcome};
use std::collections::BTreeMap;

const MS: u64 = 1_000_000;
/// How long values live that expire, in milliseconds.
const LIFE_MS: (u64, u64) = (100, 4000);

/// The values that expire.
#[derive(Default)]
pub(super) struct Endings {
    /// The time of the world.
    pub now: u64,
    /// Keys with values that may be removed from a time on; the number of the value sets those of
    /// one time apart.
    due: BTreeMap<(u64, u64), (Bytes, Bytes)>,
    /// When each value is to be gone at the latest.
    gone: BTreeMap<Bytes, u64>,
    /// Who was first shown something too late.
    violation: Option<String>,
}

impl Endings {
    /// Draws whether a value that is put to a key now expires, and when.
    pub fn draw(
        &mut self,
        (key, value, number): (&Bytes, &Bytes, u64),
        section: &WorkloadSection,
        rng: &mut Rng,
    ) -> Expiry {
        if section.expire_ppm == 0 || !rng.chance_ppm(section.expire_ppm) {
            return Expiry::Never;
        }
        let off = section.clocks_off_ms * MS;
        let at = self.now + rng.between(LIFE_MS.0, LIFE_MS.1) * MS;
        self.due.insert((at.saturating_sub(off), number), (key.clone(), value.clone()));
        self.gone.insert(value.clone(), at + off);
        // A clock that is right.
        Expiry::At(Clock::new(0, 0, 0).wall(at))
    }

    /// Records the removals that may have begun by now, as those of a client of its own.
    pub fn record(&mut self, client: ClientId, recorder: &mut Recorder) {
        while let Some(first) = self.due.first_entry()
            && first.key().0 <= self.now
        {
            let (key, value) = first.remove();
            let holds = Condition::Value(value);
            let items = vec![Item::Check { key: key.clone(), holds }, Item::Delete { key }];
            let removal = Operation::Transact { items, name: None };
            recorder.invoke(client, removal, Time(self.now));
        }
    }

    /// A client that has begun then was told this.
    pub fn on_told(&mut self, began: u64, operation: &Operation, completion: &Completion) {
        let mut shown = Vec::new();
        match (operation, completion) {
            (Operation::Get { .. }, Completion::Value(Some(value))) => shown.push(value),
            (Operation::Transact { items, .. }, Completion::Transacted(told)) => {
                for (item, told) in items.iter().zip(told) {
                    match (item, told) {
                        (Item::Get { .. }, ItemOutcome::Value(Some(value)))
                        | (Item::Check { holds: Condition::Value(value), .. }, _) => {
                            shown.push(value);
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
        let is_late = |value: &&Bytes| self.gone.get(*value).is_some_and(|gone| *gone < began);
        if let (None, Some(value)) = (&self.violation, shown.into_iter().find(is_late)) {
            let (gone, began) = (self.gone[value] / MS, began / MS);
            self.violation = Some(format!(
                "{operation:?} was begun {began} ms after the start and shown {value:?}, which had \
                 expired by all clocks at {gone} ms"
            ));
        }
    }

    /// All that was there is lost.
    pub fn clear(&mut self) {
        self.due.clear();
        self.gone.clear();
    }

    /// What was shown too late, if anything.
    pub fn take_violation(&mut self) -> Option<String> {
        self.violation.take()
    }
}

/// The operation as it is recorded: what expires is said by its removal.
pub(super) fn without_ends(operation: &Operation) -> Operation {
    let mut plain = operation.clone();
    if let Operation::Transact { items, .. } = &mut plain {
        for item in items {
            if let Item::Put { expiry, .. } = item {
                *expiry = Expiry::Never;
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_shown_what_has_expired_by_all_clocks_is_a_violation() {
        let (key, value) = (Bytes::from("k"), Bytes::from("7"));
        let get = Operation::get(key);
        let told = |began, value: Option<&Bytes>| {
            let mut endings = Endings::default();
            endings.gone.insert(Bytes::from("7"), 5 * MS);
            endings.on_told(began, &get, &Completion::Value(value.cloned()));
            endings.take_violation().is_some()
        };
        assert!(told(5 * MS + 1, Some(&value)));
        assert!(!told(5 * MS, Some(&value)), "a clock may be behind");
        assert!(!told(9 * MS, Some(&Bytes::from("8"))));
        assert!(!told(9 * MS, None));
    }
}
