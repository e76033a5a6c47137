//! Expiry: keys that end by themselves at a time of the wall clock.
//!
//! Times are absolute: a door turns "in so many milliseconds" into one, by the clock of its host.
//! One that had passed already when an operation was asked ends the key at once; any other ends it
//! after the operation, however long that takes. So within one operation nothing ends by itself,
//! and what its items are told depends on no clock that others cannot see.

use crate::time::WallTime;

/// What becomes of the end of a key when a value is put.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expiry {
    /// The key has none any more.
    #[default]
    Never,
    /// It stays as it is.
    Keep,
    /// The key ends at this time.
    At(WallTime),
}

/// When the end of a key is set to another time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum When {
    /// Whatever end it has, or none.
    #[default]
    Always,
    /// If the key has none.
    IfNone,
    /// If the key has one.
    IfSome,
    /// If that is later than the key's; none is later than any.
    IfLater,
    /// If that is sooner than the key's; any is sooner than none.
    IfSooner,
    /// If the key has one, and that is sooner.
    IfSomeAndSooner,
}

/// How long a key is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// It has no value.
    Absent,
    /// Until somebody removes it.
    Endless,
    /// Until this time, which may have passed: nobody has noticed yet.
    Until(WallTime),
}
