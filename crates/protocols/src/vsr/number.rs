//! Numbers: epochs, views, and places in the log.

use core::fmt;
use serde::{Deserialize, Serialize};

/// The number of a configuration of a group; rises by one with each that is logged. Epoch 0 has no
/// members: it is where a newcomer begins.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Epoch(pub u64);

impl Epoch {
    /// The epoch that follows.
    #[must_use]
    pub fn next(self) -> Epoch {
        Epoch(self.0.checked_add(1).expect("a group has fewer than 2^64 epochs"))
    }
}

/// A view of a group: epochs first, then the view within the epoch. Each has one primary.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ViewNumber {
    /// The configuration whose members take part.
    pub epoch: Epoch,
    /// Counted from 0 within the epoch.
    pub view: u64,
}

impl ViewNumber {
    /// The first view of an epoch.
    #[must_use]
    pub fn first(epoch: Epoch) -> ViewNumber {
        ViewNumber { epoch, view: 0 }
    }

    /// The view that follows within the epoch.
    #[must_use]
    pub fn next(self) -> ViewNumber {
        let view = self.view.checked_add(1).expect("an epoch has fewer than 2^64 views");
        ViewNumber { view, ..self }
    }
}

impl fmt::Debug for ViewNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.epoch.0, self.view)
    }
}

/// A place in a group's log, counted from 1 (the paper's op-number); 0 is before the first entry.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Op(pub u64);

impl Op {
    /// The place that follows; that of the highest number is itself.
    #[must_use]
    pub fn next(self) -> Op {
        Op(self.0.saturating_add(1))
    }

    /// The place before; that of 0 is 0.
    #[must_use]
    pub fn before(self) -> Op {
        Op(self.0.saturating_sub(1))
    }

    /// How many entries follow `earlier`, this one included; 0 if none do.
    #[must_use]
    pub fn since(self, earlier: Op) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A place in the log with the view of the entry there (the paper's viewstamp). Two logs whose
/// entries at a place are of one view are equal up to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The place.
    pub op: Op,
    /// The view in which a primary put the entry there.
    pub view: ViewNumber,
}
