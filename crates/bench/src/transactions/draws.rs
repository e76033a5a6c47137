//! Which operations a transaction has.

use bytes::Bytes;
use quorate_kernel::rng::{Rng, mix};

use crate::load::command::{KEY_BYTES, Values, put_key};
use crate::load::distribution::{Distribution, KeyChooser};
use crate::load::mixes::{Kind, Workload};

/// One operation of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Reads a key.
    Read(Bytes),
    /// Writes a key.
    Write(Bytes, Bytes),
    /// Reads a key, then writes it.
    Modify(Bytes, Bytes),
}

/// Draws transactions for ever.
#[derive(Debug)]
pub struct Draws {
    read_percent: u64,
    other: Kind,
    key_count: u64,
    length: usize,
    chooser: KeyChooser,
    values: Values,
    rng: Rng,
}

impl Draws {
    /// Transactions of so many operations of a workload without inserts, over keys that are there.
    ///
    /// # Panics
    /// The workload has inserts.
    #[must_use]
    pub fn new(
        (workload, distribution): (Workload, Distribution),
        key_count: u64,
        value_bytes: usize,
        length: usize,
        seed: u64,
    ) -> Draws {
        let (read_percent, other) = workload.mix();
        assert_ne!(other, Kind::Insert, "transactions are about keys that are there");
        Draws {
            read_percent,
            other,
            key_count,
            length,
            chooser: KeyChooser::new(distribution, key_count),
            values: Values::new(value_bytes, mix(seed)),
            rng: Rng::new(seed),
        }
    }

    /// The next transaction.
    pub fn transaction(&mut self) -> Vec<Step> {
        (0..self.length).map(|_| self.step()).collect()
    }

    fn step(&mut self) -> Step {
        let key = key(self.chooser.choose(&mut self.rng, self.key_count));
        if self.rng.below(100) < self.read_percent {
            return Step::Read(key);
        }
        let value = Bytes::copy_from_slice(self.values.value(self.rng.next()));
        match self.other {
            Kind::Modify => Step::Modify(key, value),
            _ => Step::Write(key, value),
        }
    }
}

/// The key of a number, as a load writes it.
#[must_use]
pub fn key(number: u64) -> Bytes {
    let mut place = [0; KEY_BYTES];
    put_key(number, &mut place);
    Bytes::copy_from_slice(&place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_has_its_length_and_its_mix() {
        let draws = |workload| Draws::new((workload, Distribution::Uniform), 100, 10, 5, 1);
        let mut counts = [0; 3];
        for workload in [Workload::A, Workload::C, Workload::F] {
            let mut draws = draws(workload);
            for _ in 0..1000 {
                let steps = draws.transaction();
                assert_eq!(steps.len(), 5);
                for step in steps {
                    counts[match step {
                        Step::Read(_) => 0,
                        Step::Write(..) => 1,
                        Step::Modify(..) => 2,
                    }] += 1;
                }
            }
        }
        // Half of A's and of F's are reads, and all of C's.
        assert!((9_500..10_500).contains(&counts[0]), "{counts:?}");
        assert!((2_000..3_000).contains(&counts[1]), "{counts:?}");
        assert_eq!(counts[0] + counts[1] + counts[2], 15_000);
    }
}
