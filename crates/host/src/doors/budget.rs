//! The memory that the clients of one door may take together.
//!
//! A client is charged for the command that has begun to arrive, with the length it has announced,
//! and for what was read and not answered, or answered and not taken. Commands that have only begun
//! may take three quarters of the budget, so that clients who send theirs whole go on. One that
//! finds no room is refused when its length is known, before it is read.

use crate::machine;

/// A command that has begun and is no longer than this may take the last quarter too.
const SHORT_BYTES: usize = 64 * 1024;

/// What one client is charged for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Charge {
    /// The bytes of the command that has begun to arrive, as long as it has announced to be.
    pub begun: usize,
    /// The bytes of commands that are not answered, and of replies that were not taken.
    pub held: usize,
}

/// What all clients may hold, and what they do.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: usize,
    begun: usize,
    held: usize,
}

impl Budget {
    /// A budget of `limit` bytes, none of them taken. 0 is a quarter of the memory of the machine,
    /// or of what its control group may take.
    pub fn of(limit: usize) -> Budget {
        let limit = if limit == 0 { machine::memory_bytes() / 4 } else { limit };
        Budget { limit, begun: 0, held: 0 }
    }

    /// How many bytes may be taken at once; a quarter of the machine's if none was set.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// What is taken.
    pub fn taken(&self) -> usize {
        self.begun + self.held
    }

    /// Whether nothing is left: no command is read but those that were let in.
    pub fn is_spent(&self) -> bool {
        self.taken() >= self.limit
    }

    /// Whether a client that is charged `before` may have a command of `begun` bytes under way.
    pub fn admits(&self, before: Charge, begun: usize) -> bool {
        let others = self.begun - before.begun;
        let is_within = |most: usize, taken: usize| taken.saturating_add(begun) <= most;
        let is_short = begun <= SHORT_BYTES && is_within(self.limit, others + self.held);
        is_short || is_within(self.limit / 4 * 3, others)
    }

    /// A client's charge changes.
    pub fn change(&mut self, charge: &mut Charge, now: Charge) {
        self.begun = self.begun - charge.begun + now.begun;
        self.held = self.held - charge.held + now.held;
        *charge = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn begun_commands_take_three_quarters_and_short_ones_the_rest() {
        let mut budget = Budget::of(8 * MIB);
        let (mut one, mut other) = (Charge::default(), Charge::default());
        assert!(budget.admits(one, 6 * MIB));
        assert!(!budget.admits(one, 6 * MIB + 1));
        budget.change(&mut one, Charge { begun: 5 * MIB, held: 0 });
        assert!(budget.admits(one, 6 * MIB), "it is charged for already");
        assert!(!budget.admits(other, 2 * MIB));
        assert!(budget.admits(other, MIB));
        budget.change(&mut other, Charge { begun: MIB, held: MIB });
        assert!(!budget.admits(Charge::default(), MIB));
        assert!(budget.admits(Charge::default(), 1000), "it is short");
        budget.change(&mut other, Charge { begun: MIB, held: 2 * MIB });
        assert!(budget.is_spent() && !budget.admits(Charge::default(), 1000));
        budget.change(&mut one, Charge::default());
        budget.change(&mut other, Charge::default());
        assert_eq!(budget.taken(), 0);
    }
}
