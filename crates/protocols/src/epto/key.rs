//! Names of events, and their total order.

use core::fmt;
use quorate_kernel::ids::Incarnation;
use quorate_kernel::limits::EPTO_TIME_MAX;
use quorate_kernel::mutant;
use serde::{Deserialize, Serialize};

/// A reading of a logical clock (Lamport, 1978). 0 is before every event.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct LogicalTime(pub u64);

/// The name of an event. Events are ordered by all of it, everywhere: by time alone, two of one
/// time would be delivered in different orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EventKey {
    /// What the source's clock showed; an incarnation uses each reading once.
    pub time: LogicalTime,
    /// Who broadcast it. A restart is another source, as its clock begins anew.
    pub source: Incarnation,
}

/// How many events of a source there are up to one, itself included: the first has 1.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Sequence(pub u64);

impl EventKey {
    /// Whether a correct peer may have named an event so: clocks do not get further.
    #[must_use]
    pub fn is_sound(self) -> bool {
        (1..=EPTO_TIME_MAX).contains(&self.time.0)
    }

    /// Whether an event of this name comes too late once `last` is delivered.
    pub(super) fn is_past(self, last: EventKey) -> bool {
        if mutant!("epto_order_by_timestamp") {
            return self.time < last.time;
        }
        self <= last
    }

    /// Whether an event of this name may be delivered although `other` is not stable yet.
    pub(super) fn may_precede(self, other: EventKey) -> bool {
        if mutant!("epto_order_by_timestamp") {
            return self.time <= other.time;
        }
        self < other
    }
}

impl fmt::Display for EventKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.time.0, self.source)
    }
}
