//! What one position of a ring's log is.

use serde::{Deserialize, Serialize};

/// A ring: that of a partition has its number, and the one of all partitions is the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RingId(pub u32);

impl RingId {
    /// The ring of the commands of several partitions: at each slot it comes last.
    pub const ALL: RingId = RingId(u32::MAX);
}

/// A place in the order of a ring, counted from 0. A ring has all slots below its next one.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Slot(pub u64);

/// The most slots that one decision skips.
pub const SKIP_MAX: u64 = 1 << 40;

/// What a ring decides at one position of its log. That it skips is said by the kind of decision,
/// never by what a client puts into it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Decision<T> {
    /// Commands: they take one slot together, however many they are.
    Commands(T),
    /// So many slots stay empty: 1 to [`SKIP_MAX`].
    Skip(u64),
    /// An entry of the log itself, such as a change of its members: no command, and one slot, so
    /// that the positions of a ring have no holes.
    Nothing,
}

impl<T> Decision<T> {
    /// How many slots it takes.
    #[must_use]
    pub fn slots(&self) -> u64 {
        match self {
            Decision::Commands(_) | Decision::Nothing => 1,
            Decision::Skip(count) => *count,
        }
    }

    /// The same of other commands.
    pub fn map<U>(self, of: impl FnOnce(T) -> U) -> Decision<U> {
        match self {
            Decision::Commands(commands) => Decision::Commands(of(commands)),
            Decision::Skip(count) => Decision::Skip(count),
            Decision::Nothing => Decision::Nothing,
        }
    }

    /// Whether it may be put into a log, as far as slots go.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        (1..=SKIP_MAX).contains(&self.slots())
    }
}
