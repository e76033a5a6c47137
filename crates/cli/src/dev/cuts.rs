//! What frames between the hosts of a cluster meet on purpose.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

/// Hosts by their numbers, written as `2,3`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostList(pub Vec<u32>);

impl FromStr for HostList {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<HostList, &'static str> {
        let numbers = text.split(',').map(|number| number.trim().parse());
        let numbers: Result<Vec<u32>, _> = numbers.collect();
        numbers.map(HostList).map_err(|_| "expected numbers of hosts with commas between")
    }
}

/// Cuts and delays between hosts, each in one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cuts {
    cut: BTreeSet<(u32, u32)>,
    delay_ms: BTreeMap<(u32, u32), u64>,
}

impl Cuts {
    /// Drops what one host sends another.
    pub fn cut(&mut self, from: u32, to: u32) {
        if from != to {
            self.cut.insert((from, to));
        }
    }

    /// Drops what hosts of two sides send each other.
    pub fn part(&mut self, one: &[u32], other: &[u32]) {
        for &a in one {
            for &b in other {
                self.cut(a, b);
                self.cut(b, a);
            }
        }
    }

    /// Delays what two hosts send each other; 0 for no longer.
    pub fn delay(&mut self, one: u32, other: u32, millis: u64) {
        for pair in [(one, other), (other, one)] {
            match millis {
                0 => self.delay_ms.remove(&pair),
                _ => self.delay_ms.insert(pair, millis),
            };
        }
    }

    /// Drops and delays nothing any more.
    pub fn heal(&mut self) {
        *self = Cuts::default();
    }

    /// What frames of a host meet on their way to each other, as its HTTP door wants it.
    #[must_use]
    pub fn of(&self, from: u32) -> Vec<(u32, String)> {
        let delayed = self.delay_ms.iter().filter(|(pair, _)| !self.cut.contains(pair));
        let delayed = delayed.map(|(&(a, b), millis)| (a, b, millis.to_string()));
        let cut = self.cut.iter().map(|&(a, b)| (a, b, String::from("cut")));
        cut.chain(delayed).filter(|(a, ..)| *a == from).map(|(_, b, what)| (b, what)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_cuts_both_ways_and_healing_ends_all() {
        let mut cuts = Cuts::default();
        cuts.part(&[1], &[2, 3]);
        cuts.delay(1, 4, 50);
        cuts.delay(1, 2, 50);
        let cut = |to| (to, String::from("cut"));
        assert_eq!(cuts.of(1), [cut(2), cut(3), (4, String::from("50"))]);
        assert_eq!(cuts.of(2), [cut(1)], "what is cut is not delayed");
        assert_eq!(cuts.of(4), [(1, String::from("50"))]);
        cuts.delay(4, 1, 0);
        assert!(cuts.of(4).is_empty());
        cuts.cut(5, 5);
        assert!(cuts.of(5).is_empty(), "a host always hears itself");
        cuts.heal();
        assert!((1..6).all(|host| cuts.of(host).is_empty()));
    }
}
