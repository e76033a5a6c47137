//! One deadline per (lane, timer), fired in the order of (deadline, arming).

use alloc::vec::Vec;
use quorate_kernel::time::Time;

/// Which timer: the lane's slot in the node and the timer's code.
pub type Key = (u16, u32);

/// When a timer fires: its deadline, and when it was armed among all.
type Place = (Time, u64);

/// The timers, in two lists that stand in order: lanes have few of them, and set them all the time.
/// Re-arming overwrites; the order of equal deadlines is the order of arming.
#[derive(Default, Debug)]
pub struct Timers {
    /// The last deadline first.
    due: Vec<(Place, Key)>,
    /// The same by timer.
    armed: Vec<(Key, Place)>,
    sequence: u64,
}

impl Timers {
    /// Sets (`Some`) or takes back (`None`) a deadline.
    pub fn set(&mut self, key: Key, at: Option<Time>) {
        let known = self.armed.binary_search_by_key(&key, |(key, _)| *key);
        if let Ok(place) = known {
            let due = self.due_at(self.armed[place].1).expect("what is armed is due");
            self.due.remove(due);
        }
        let Some(at) = at else {
            if let Ok(place) = known {
                self.armed.remove(place);
            }
            return;
        };
        self.sequence += 1;
        let new = (at, self.sequence);
        let due = self.due_at(new).expect_err("no two are armed at once");
        self.due.insert(due, (new, key));
        match known {
            Ok(place) => self.armed[place].1 = new,
            Err(place) => self.armed.insert(place, (key, new)),
        }
    }

    /// Where a place stands among those that are due, or where it would.
    fn due_at(&self, place: Place) -> Result<usize, usize> {
        self.due.binary_search_by(|(other, _)| place.cmp(other))
    }

    /// Takes back every deadline of a slot.
    pub fn drop_slot(&mut self, slot: u16) {
        self.due.retain(|(_, key)| key.0 != slot);
        self.armed.retain(|(key, _)| key.0 != slot);
    }

    /// Takes the first timer whose deadline has come.
    pub fn pop(&mut self, now: Time) -> Option<Key> {
        let (_, key) = self.due.pop_if(|((at, _), _)| *at <= now)?;
        let place = self.armed.binary_search_by_key(&key, |(key, _)| *key);
        self.armed.remove(place.expect("what is due is armed"));
        Some(key)
    }

    /// The next deadline.
    #[must_use]
    pub fn next(&self) -> Option<Time> {
        self.due.last().map(|((at, _), _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_fire_in_order_and_rearming_overwrites() {
        let mut timers = Timers::default();
        timers.set((0, 1), Some(Time(30)));
        timers.set((0, 2), Some(Time(10)));
        timers.set((1, 1), Some(Time(10)));
        timers.set((0, 1), Some(Time(20)));
        assert_eq!(timers.next(), Some(Time(10)));
        assert_eq!(timers.pop(Time(9)), None);
        assert_eq!(timers.pop(Time(25)), Some((0, 2)));
        assert_eq!(timers.pop(Time(25)), Some((1, 1)));
        assert_eq!(timers.pop(Time(25)), Some((0, 1)));
        assert_eq!(timers.pop(Time(99)), None);
        timers.set((0, 1), Some(Time(5)));
        timers.set((0, 1), None);
        assert_eq!(timers.next(), None);
    }
    #[test]
    fn a_slot_loses_its_deadlines_and_no_other() {
        let mut timers = Timers::default();
        for (slot, code) in [(0, 1), (1, 0), (1, 7), (2, 3)] {
            timers.set((slot, code), Some(Time(10)));
        }
        timers.drop_slot(1);
        timers.set((1, 7), None);
        timers.set((1, 9), Some(Time(5)));
        assert_eq!(timers.next(), Some(Time(5)));
        let order: Vec<Key> = core::iter::from_fn(|| timers.pop(Time(10))).collect();
        assert_eq!(order, [(1, 9), (0, 1), (2, 3)]);
        assert_eq!(timers.next(), None);
    }
}
