//! Commands of one operation: what its outcome is turned into.

use super::error;
use super::reply::CommandReply;
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::change::{Changed, Unchanged};
use quorate_kernel::expiry::Lifetime;
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::refusal::Ended;
use quorate_kernel::time::WallTime;
use quorate_kernel::transaction::{Copied, ItemOutcome};

/// An engine answered something else than was asked. Clients get an error; writes may have
/// happened.
pub(crate) const MISMATCH: &str =
    "UNKNOWNOUTCOME the engine answered another question than was asked";

/// A command of one operation: what its outcome is turned into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Single {
    /// The value.
    Get,
    /// `+OK`.
    Put,
    /// 1 if there was a value.
    Delete,
    /// 1 if there is a value.
    Exists,
    /// The length of the value.
    Length,
    /// A part of the value; negative numbers count from its end.
    Range { start: i64, end: i64 },
    /// `string` or `none`.
    Type,
    /// How long a key is there: -1 if it does not end, -2 if there is none.
    End(Unit),
    /// How much memory a value takes, with its key of this length.
    Usage { key_bytes: usize },
    /// A context, and all values.
    Siblings,
    /// The context of what was written.
    Context,
    /// What the one change has come to: a number, a length, or `+OK`.
    Change,
    /// 1 if the one change was done.
    IsDone,
    /// What the first of several items has read.
    First,
    /// 1 if all was done, 0 if a check did not hold.
    AllOrNone,
    /// 1 if the copy was made.
    Copy,
    /// `+COMMITTED`, `+PARTIAL` or `+ABORTED`.
    HowEnded,
    /// `+OK`; an error if there was nothing to rename.
    Rename,
    /// 1 if the key was renamed, 0 if the other name is taken; an error if there was nothing.
    RenameNx,
}

/// How a command says a time, and is told one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    /// Whether it is in seconds, and told rounded, not in milliseconds.
    pub(crate) is_seconds: bool,
    /// Whether it counts from now on, not from 1970.
    pub(crate) is_relative: bool,
}

impl Unit {
    /// The number that tells the end of a key, by this clock.
    fn told(self, lifetime: Lifetime, now: WallTime) -> i64 {
        let at = match lifetime {
            Lifetime::Absent => return -2,
            Lifetime::Endless => return -1,
            Lifetime::Until(at) => at.0,
        };
        // What has passed was there when it was read: it is told so, and not that it never ends.
        let ms = if self.is_relative { at.saturating_sub(now.0).max(0) } else { at };
        if self.is_seconds { ms.saturating_add(500) / 1000 } else { ms }
    }
}

impl Single {
    /// The reply to the outcome of the operation. The clock is that of the moment of the reply:
    /// what is left of a key's time is never told too long.
    pub(crate) fn answer(self, outcome: Outcome, now: WallTime) -> CommandReply {
        match outcome {
            Outcome::Values { values, context } if self == Single::Siblings => {
                CommandReply::Siblings(context, values.into_vec())
            }
            Outcome::Values { values, .. } => match values.into_one() {
                Ok(value) => self.of_value(value),
                Err(_) => mismatch(),
            },
            Outcome::Written { .. } if self == Single::Put => CommandReply::OK,
            Outcome::Deleted { existed, .. } if self == Single::Delete => {
                CommandReply::Integer(i64::from(existed))
            }
            Outcome::Written { context } | Outcome::Deleted { context, .. }
                if self == Single::Context =>
            {
                CommandReply::Bulk(Some(context))
            }
            Outcome::Refused(Refusal::Unmet { .. }) if self == Single::AllOrNone => {
                CommandReply::Integer(0)
            }
            Outcome::Ended(ended) if self == Single::HowEnded => {
                CommandReply::Simple(match ended {
                    Ended::Committed => "COMMITTED",
                    Ended::Partial => "PARTIAL",
                    Ended::Aborted => "ABORTED",
                })
            }
            Outcome::Transacted(told) => self.of_items(told, now),
            Outcome::Refused(refusal) => CommandReply::Error(error::refusal(&refusal)),
            _ => mismatch(),
        }
    }

    /// The reply to what the items of a transaction were told.
    fn of_items(self, mut told: Vec<ItemOutcome>, now: WallTime) -> CommandReply {
        match (self, &mut told[..]) {
            (Single::AllOrNone, _) => CommandReply::Integer(1),
            (Single::First, [ItemOutcome::Value(value), ..]) => CommandReply::Bulk(value.take()),
            (Single::IsDone, [ItemOutcome::Changed(_)]) => CommandReply::Integer(1),
            (Single::IsDone, [ItemOutcome::Unchanged(Unchanged::Condition)]) => {
                CommandReply::Integer(0)
            }
            (Single::IsDone, [ItemOutcome::Expiry { changed }]) => {
                CommandReply::Integer(i64::from(*changed))
            }
            (Single::End(unit), [ItemOutcome::Lifetime(lifetime)]) => {
                CommandReply::Integer(unit.told(*lifetime, now))
            }
            (_, [ItemOutcome::Unchanged(why)]) => unchanged(*why),
            (Single::Copy, [ItemOutcome::Copied(copied)]) => {
                CommandReply::Integer(i64::from(*copied == Copied::Done))
            }
            (Single::Rename | Single::RenameNx, [ItemOutcome::Copied(Copied::NoSource)]) => {
                CommandReply::Error(String::from("ERR no such key"))
            }
            (Single::Rename, [ItemOutcome::Copied(Copied::Done)]) => CommandReply::OK,
            (Single::RenameNx, [ItemOutcome::Copied(copied)]) => {
                CommandReply::Integer(i64::from(*copied == Copied::Done))
            }
            (Single::Change, [ItemOutcome::Written | ItemOutcome::Changed(Changed::Put)]) => {
                CommandReply::OK
            }
            (Single::Change, [ItemOutcome::Changed(Changed::Integer(number))]) => {
                CommandReply::Integer(*number)
            }
            (Single::Change, [ItemOutcome::Changed(Changed::Length(length))]) => {
                CommandReply::Integer(*length as i64)
            }
            (Single::Change, [ItemOutcome::Changed(Changed::Float(number))]) => {
                CommandReply::Bulk(Some(number.clone()))
            }
            _ => mismatch(),
        }
    }

    fn of_value(self, value: Option<Bytes>) -> CommandReply {
        let length = value.as_ref().map(|bytes| bytes.len() as i64);
        match self {
            Single::Get => CommandReply::Bulk(value),
            Single::Exists => CommandReply::Integer(i64::from(value.is_some())),
            Single::Length => CommandReply::Integer(length.unwrap_or(0)),
            Single::Range { start, end } => {
                CommandReply::Bulk(Some(range(value.unwrap_or_default(), start, end)))
            }
            Single::Type => CommandReply::Simple(if value.is_some() { "string" } else { "none" }),
            Single::End(_) => CommandReply::Integer(if value.is_some() { -1 } else { -2 }),
            Single::Usage { key_bytes } => match length {
                Some(length) => CommandReply::Integer(length + key_bytes as i64),
                None => CommandReply::Bulk(None),
            },
            _ => mismatch(),
        }
    }
}

/// Why a change was not done, as Redis says it.
fn unchanged(why: Unchanged) -> CommandReply {
    let text = match why {
        Unchanged::Condition => return CommandReply::Bulk(None),
        Unchanged::NotAnInteger => "ERR value is not an integer or out of range",
        Unchanged::NotAFloat => "ERR value is not a valid float",
        Unchanged::Overflow => "ERR increment or decrement would overflow",
        Unchanged::NotFinite => "ERR increment would produce NaN or Infinity",
        Unchanged::TooLong => "ERR string exceeds maximum allowed size of a value of this keyspace",
    };
    CommandReply::Error(String::from(text))
}

fn mismatch() -> CommandReply {
    CommandReply::Error(String::from(MISMATCH))
}

fn range(value: Bytes, start: i64, end: i64) -> Bytes {
    let length = value.len() as i64;
    let from_end = |at: i64| if at < 0 { at.saturating_add(length) } else { at };
    if start < 0 && end < 0 && start > end {
        return Bytes::new();
    }
    let start = from_end(start).max(0);
    let end = from_end(end).max(0).min(length - 1);
    if start > end || length == 0 {
        return Bytes::new();
    }
    value.slice(start as usize..=end as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_told_as_redis_does() {
        let told = |is_seconds, is_relative, at| {
            Unit { is_seconds, is_relative }.told(Lifetime::Until(WallTime(at)), WallTime(10_000))
        };
        assert_eq!([10_001, 11_499, 11_500, 9_000].map(|at| told(true, true, at)), [0, 1, 2, 0]);
        assert_eq!([10_001, 9_000].map(|at| told(false, true, at)), [1, 0]);
        assert_eq!([told(true, false, 11_499), told(false, false, 11_499)], [11, 11_499]);
        assert_eq!(told(true, false, i64::MAX), i64::MAX / 1000);
    }

    #[test]
    fn ranges_are_those_of_redis() {
        let value = || Bytes::from_static(b"This is a string");
        let table: &[(i64, i64, &str)] = &[
            (0, 3, "This"),
            (-3, -1, "ing"),
            (0, -1, "This is a string"),
            (10, 100, "string"),
            (5, 3, ""),
            (-1, -5, ""),
            (-100, 1, "Th"),
            (-100, -50, "T"),
            (100, 200, ""),
            (i64::MIN, i64::MAX, "This is a string"),
            (i64::MAX, i64::MIN, ""),
        ];
        for (start, end, expected) in table {
            assert_eq!(range(value(), *start, *end), expected, "{start} {end}");
        }
        assert_eq!(range(Bytes::new(), 0, -1), "");
    }
}
