//! What a transaction does to a key, and what comes of it.

use crate::serializable::number::Version;
use crate::serializable::raw::Raw;
use alloc::vec::Vec;
use quorate_kernel::change::{Changed, Unchanged};
use serde::{Deserialize, Serialize};

/// Milliseconds since 1970 by some wall clock.
pub type WallMs = u64;

/// A time that has passed by any clock. The host that a client asks puts it in the place of each
/// that had passed then, by its own clock: what an act does with a time that it is given depends on
/// no clock, so whoever evaluates it says the same of it.
pub const PASSED: WallMs = 0;

/// What becomes of a key's expiry when a value is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Expiry {
    /// It stays as it is.
    Keep,
    /// The key has none any more.
    Never,
    /// The key is removed at this time; at once if that is [`PASSED`].
    At(WallMs),
}

/// What must hold of a key for a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Condition {
    /// It has no value.
    Absent,
    /// It has a value.
    Present,
    /// It has this version, with a value or without.
    Version(Version),
}

/// When an expiry is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum When {
    /// Always.
    Always,
    /// If the key has none.
    IfNone,
    /// If the key has one.
    IfSome,
    /// If it is later than that of the key; none is later than any.
    IfLater,
    /// If it is sooner than that of the key; any is sooner than none.
    IfSooner,
    /// If the key has one, and it is sooner.
    IfSomeAndSooner,
}

/// One act. It is evaluated at the key's primary, when nothing else can change the key; what is
/// logged is its [`Effect`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Act {
    /// Puts a value, whatever there is.
    Put {
        /// The value.
        value: Raw,
        /// What becomes of the expiry.
        expiry: Expiry,
    },
    /// Puts a value if something holds of the key.
    PutIf {
        /// What must hold.
        condition: Condition,
        /// The value.
        value: Raw,
        /// What becomes of the expiry.
        expiry: Expiry,
    },
    /// Removes the key.
    Delete,
    /// Adds to a decimal integer of 64 bits; an absent key counts as 0.
    Add(i64),
    /// Adds a decimal number to one; 64-bit floating point; an absent key counts as 0.
    AddFloat(Raw),
    /// Appends to the value; an absent key counts as empty.
    Append(Raw),
    /// Overwrites part of the value, which is filled up with zero bytes where it is too short.
    SetRange {
        /// Where the part begins.
        offset: u64,
        /// What it becomes.
        bytes: Raw,
    },
    /// Sets (`Some`) or drops (`None`) the expiry; [`PASSED`] removes the key at once.
    Expire {
        /// The time.
        at: Option<WallMs>,
        /// When it is set. Not looked at where it is dropped.
        when: When,
    },
}

impl Act {
    /// The bytes that it carries.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            Act::Put { value, .. } | Act::PutIf { value, .. } => value.len(),
            Act::AddFloat(bytes) | Act::Append(bytes) | Act::SetRange { bytes, .. } => bytes.len(),
            Act::Delete | Act::Add(_) | Act::Expire { .. } => 0,
        }
    }
}

/// What an act answers when it was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Done {
    /// The value was put.
    Put,
    /// The key has no value any more.
    Deleted {
        /// Whether it had one.
        existed: bool,
    },
    /// The integer that the key has now.
    Integer(i64),
    /// The number that the key has now, as its value says it.
    Float(Raw),
    /// The length of the value now.
    Length(u64),
    /// An expiry was looked at.
    Expiry {
        /// Whether it was set, dropped, or has removed the key.
        changed: bool,
    },
}

/// Why an act was not done. The key was not changed by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ActError {
    /// What must hold of the key does not.
    Condition,
    /// The value is no decimal integer of 64 bits.
    NotAnInteger,
    /// The value or the increment is no decimal number.
    NotAFloat,
    /// The sum does not fit 64 bits.
    Overflow,
    /// The sum would be infinite.
    NotFinite,
    /// The value would be longer than a value may be.
    TooLong,
}

impl From<Changed> for Done {
    fn from(changed: Changed) -> Done {
        match changed {
            Changed::Put => Done::Put,
            Changed::Integer(number) => Done::Integer(number),
            Changed::Float(number) => Done::Float(Raw(number)),
            Changed::Length(length) => Done::Length(length),
        }
    }
}

impl From<Unchanged> for ActError {
    fn from(why: Unchanged) -> ActError {
        match why {
            Unchanged::Condition => ActError::Condition,
            Unchanged::NotAnInteger => ActError::NotAnInteger,
            Unchanged::NotAFloat => ActError::NotAFloat,
            Unchanged::Overflow => ActError::Overflow,
            Unchanged::NotFinite => ActError::NotFinite,
            Unchanged::TooLong => ActError::TooLong,
        }
    }
}

impl From<ActError> for Unchanged {
    fn from(error: ActError) -> Unchanged {
        match error {
            ActError::Condition => Unchanged::Condition,
            ActError::NotAnInteger => Unchanged::NotAnInteger,
            ActError::NotAFloat => Unchanged::NotAFloat,
            ActError::Overflow => Unchanged::Overflow,
            ActError::NotFinite => Unchanged::NotFinite,
            ActError::TooLong => Unchanged::TooLong,
        }
    }
}

/// What each act of a group's share answers, in their order.
pub type Results = Vec<Result<Done, ActError>>;

/// What is logged of the acts on one key: the value that they leave, whole, so that executing an
/// entry needs nothing but the entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Effect {
    /// The key has this value.
    Put {
        /// The value.
        value: Raw,
        /// When it is removed.
        expires: Option<WallMs>,
    },
    /// The key has no value.
    Delete,
}
