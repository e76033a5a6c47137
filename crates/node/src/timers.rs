//! One deadline per (lane, timer), fired in the order of (deadline, arming).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use quorate_kernel::time::Time;

/// Which timer: the lane's slot in the node and the timer's code.
pub type Key = (u16, u32);

/// The wheel. Re-arming overwrites; the order of equal deadlines is the order of arming.
#[derive(Default, Debug)]
pub struct Timers {
    due: BTreeMap<(Time, u64), Key>,
    armed: BTreeMap<Key, (Time, u64)>,
    sequence: u64,
}

impl Timers {
    /// Sets (`Some`) or takes back (`None`) a deadline.
    pub fn set(&mut self, key: Key, at: Option<Time>) {
        if let Some(old) = self.armed.remove(&key) {
            self.due.remove(&old);
        }
        if let Some(at) = at {
            self.sequence += 1;
            self.due.insert((at, self.sequence), key);
            self.armed.insert(key, (at, self.sequence));
        }
    }

    /// Takes back every deadline of a slot.
    pub fn drop_slot(&mut self, slot: u16) {
        let keys: Vec<Key> =
            self.armed.range((slot, 0)..=(slot, u32::MAX)).map(|(k, _)| *k).collect();
        keys.into_iter().for_each(|key| self.set(key, None));
    }

    /// Takes the first timer whose deadline has come.
    pub fn pop(&mut self, now: Time) -> Option<Key> {
        let (&(at, _), _) = self.due.first_key_value()?;
        if at > now {
            return None;
        }
        let (_, key) = self.due.pop_first()?;
        self.armed.remove(&key);
        Some(key)
    }

    /// The next deadline.
    #[must_use]
    pub fn next(&self) -> Option<Time> {
        self.due.first_key_value().map(|(&(at, _), _)| at)
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
}
