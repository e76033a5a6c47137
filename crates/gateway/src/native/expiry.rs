//! When keys expire, as the API says it, and as the kernel does.
//!
//! A time that counts from now on is turned into one of the clock where its write is handed over,
//! and not before: sent again it is a later time, but the same request.

use super::problem::{self, Problem};
use bytes::Bytes;
use quorate_api::v1::lifetime::State;
use quorate_api::v1::{self, Absent, Endless, ExpireWhen, expire, expiry};
use quorate_kernel::expiry::{Expiry, Lifetime, When};
use quorate_kernel::operation::Operation;
use quorate_kernel::time::WallTime;
use quorate_kernel::transaction::Item;
use quorate_kernel::write::WriteName;

/// The last time of the clock that a client may name, and the most milliseconds from now on; their
/// sum is a time still.
pub const END_MS_MAX: u64 = i64::MAX as u64 / 2;

/// An item of a transaction as it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timed {
    /// What is done.
    pub item: Item,
    /// Its time counts from the moment at which it is handed over.
    pub is_relative: bool,
}

impl From<Item> for Timed {
    fn from(item: Item) -> Timed {
        Timed { item, is_relative: false }
    }
}

/// A write as it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// What is done.
    pub operation: Operation,
    /// The places, ascending, of the items whose time counts from the moment at which it is handed
    /// over.
    pub relative: Vec<usize>,
}

impl From<Operation> for Asked {
    fn from(operation: Operation) -> Asked {
        Asked { operation, relative: Vec::new() }
    }
}

impl Asked {
    /// Several items at one moment.
    pub fn transaction(items: Vec<Timed>, name: Option<WriteName>) -> Asked {
        let places = items.iter().enumerate().filter(|(_, timed)| timed.is_relative);
        let relative = places.map(|(place, _)| place).collect();
        let items = items.into_iter().map(|timed| timed.item).collect();
        Asked { operation: Operation::Transact { items, name }, relative }
    }

    /// What is handed over at this time.
    pub fn at(self, now: WallTime) -> Operation {
        let Asked { mut operation, relative } = self;
        if let Operation::Transact { items, .. } = &mut operation {
            relative.into_iter().for_each(|place| items[place].postpone(now.0));
        }
        operation
    }
}

/// When a key that is put expires, and whether that counts from now on; `field` is what an error
/// calls it.
pub fn of_put(asked: Option<v1::Expiry>, field: &str) -> Result<(Expiry, bool), Problem> {
    let Some(v1::Expiry { end }) = asked else { return Ok((Expiry::Never, false)) };
    match end {
        Some(expiry::End::Keep(v1::Keep {})) => Ok((Expiry::Keep, false)),
        Some(expiry::End::AfterMs(ms)) => Ok((Expiry::At(after(ms, field)?), true)),
        Some(expiry::End::AtMs(ms)) => Ok((Expiry::At(at(ms, field)?), false)),
        None => {
            let right = "set keep, after_ms or at_ms, or leave the expiry out";
            Err(problem::invalid(field, "the expiry does not say when", right))
        }
    }
}

/// An item that gives a key a time at which it expires; `field` is what an error calls it.
pub fn of_expire(key: Bytes, asked: v1::Expire, field: &str) -> Result<Timed, Problem> {
    let v1::Expire { end, when } = asked;
    let (at, is_relative) = match end {
        Some(expire::End::AfterMs(ms)) => (after(ms, field)?, true),
        Some(expire::End::AtMs(ms)) => (at(ms, field)?, false),
        None => {
            let what = "it does not say when the key expires";
            return Err(problem::invalid(field, what, "set after_ms or at_ms"));
        }
    };
    let when = match ExpireWhen::try_from(when) {
        Ok(ExpireWhen::Always) => When::Always,
        Ok(ExpireWhen::IfNone) => When::IfNone,
        Ok(ExpireWhen::IfSome) => When::IfSome,
        Ok(ExpireWhen::IfLater) => When::IfLater,
        Ok(ExpireWhen::IfSooner) => When::IfSooner,
        Ok(ExpireWhen::IfSomeAndSooner) => When::IfSomeAndSooner,
        Err(_) => {
            let what = format!("the condition {when} is none of this version");
            return Err(problem::invalid(field, what, "set when to one of ExpireWhen"));
        }
    };
    Ok(Timed { item: Item::Expire { key, at: Some(at), when }, is_relative })
}

/// The item that lets a key expire no more.
pub fn persist(key: Bytes) -> Item {
    Item::Expire { key, at: None, when: When::Always }
}

fn after(ms: u64, field: &str) -> Result<WallTime, Problem> {
    time(ms).ok_or_else(|| wrong(field, format!("an expiry {ms} ms from now")))
}

fn at(ms: u64, field: &str) -> Result<WallTime, Problem> {
    time(ms).ok_or_else(|| wrong(field, format!("an expiry {ms} ms after 1970 began")))
}

fn time(ms: u64) -> Option<WallTime> {
    let ms = Some(ms).filter(|ms| (1..=END_MS_MAX).contains(ms))?;
    i64::try_from(ms).ok().map(WallTime)
}

fn wrong(field: &str, what: String) -> Problem {
    problem::invalid(field, what, format!("give 1 to {END_MS_MAX} milliseconds"))
}

/// How long a key has its value, told at this time.
pub fn lifetime(lifetime: Lifetime, now: WallTime) -> v1::Lifetime {
    let state = match lifetime {
        Lifetime::Absent => State::Absent(Absent {}),
        Lifetime::Endless => State::Endless(Endless {}),
        Lifetime::Until(at) => State::RemainingMs(remaining_ms(at, now)),
    };
    v1::Lifetime { state: Some(state) }
}

/// How long it is until then.
pub fn remaining_ms(at: WallTime, now: WallTime) -> u64 {
    u64::try_from(at.0.saturating_sub(now.0)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_api::v1::Kind;

    const KEY: Bytes = Bytes::from_static(b"k");

    fn put(end: expiry::End) -> Result<(Expiry, bool), Problem> {
        of_put(Some(v1::Expiry { end: Some(end) }), "expiry")
    }

    #[test]
    fn a_put_says_when_its_key_expires() {
        let at = |ms| Expiry::At(WallTime(ms));
        assert_eq!(of_put(None, "expiry"), Ok((Expiry::Never, false)));
        assert_eq!(put(expiry::End::Keep(v1::Keep {})), Ok((Expiry::Keep, false)));
        assert_eq!(put(expiry::End::AfterMs(7)), Ok((at(7), true)));
        assert_eq!(put(expiry::End::AtMs(7)), Ok((at(7), false)));
        let last = i64::try_from(END_MS_MAX).expect("it is a time");
        assert_eq!(put(expiry::End::AtMs(END_MS_MAX)), Ok((at(last), false)));
        assert_eq!(last.checked_add(last), Some(i64::MAX - 1), "no sum is too late");
    }

    #[test]
    fn a_time_that_is_none_is_refused_and_says_what_would_be_right() {
        let (first, later) = (0, END_MS_MAX + 1);
        for (told, what) in [
            (put(expiry::End::AfterMs(first)), "0 ms from now"),
            (put(expiry::End::AfterMs(later)), "4611686018427387904 ms from now"),
            (put(expiry::End::AtMs(first)), "0 ms after 1970"),
            (put(expiry::End::AtMs(later)), "4611686018427387904 ms after 1970"),
            (of_put(Some(v1::Expiry { end: None }), "expiry"), "does not say when"),
        ] {
            let problem = told.expect_err("it is none");
            assert_eq!((problem.kind(), &problem.field[..]), (Kind::Invalid, "expiry"));
            assert!(problem.what.contains(what) && !problem.right.is_empty(), "{problem:?}");
        }
        let expire = |end, when| of_expire(KEY, v1::Expire { end, when }, "items[3]");
        let good = Some(expire::End::AtMs(1));
        for bad in [expire(None, 0), expire(Some(expire::End::AfterMs(0)), 0), expire(good, 6)] {
            assert_eq!(bad.expect_err("it is not so").field, "items[3]");
        }
    }

    #[test]
    fn conditions_keep_their_meaning() {
        let meant = |when: ExpireWhen| {
            let end = Some(expire::End::AtMs(9));
            let asked = v1::Expire { end, when: when.into() };
            match of_expire(KEY, asked, "items[0]").expect("all is said").item {
                Item::Expire { when, at: Some(WallTime(9)), .. } => when,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(meant(ExpireWhen::Always), When::Always);
        assert_eq!(meant(ExpireWhen::IfNone), When::IfNone);
        assert_eq!(meant(ExpireWhen::IfSome), When::IfSome);
        assert_eq!(meant(ExpireWhen::IfLater), When::IfLater);
        assert_eq!(meant(ExpireWhen::IfSooner), When::IfSooner);
        assert_eq!(meant(ExpireWhen::IfSomeAndSooner), When::IfSomeAndSooner);
    }

    #[test]
    fn only_times_that_count_from_now_on_move_with_the_clock() {
        let of = |at| Item::Expire { key: KEY, at: Some(WallTime(at)), when: When::Always };
        let timed = |is_relative| Timed { item: of(5), is_relative };
        let asked = Asked::transaction(vec![timed(false), timed(true), persist(KEY).into()], None);
        assert_eq!(asked.relative, [1]);
        let items = vec![of(5), of(105), persist(KEY)];
        assert_eq!(asked.at(WallTime(100)), Operation::Transact { items, name: None });
    }

    #[test]
    fn what_is_left_of_a_lifetime_is_never_too_much_and_not_below_zero() {
        let told = |of| lifetime(of, WallTime(100)).state;
        assert_eq!(told(Lifetime::Absent), Some(State::Absent(Absent {})));
        assert_eq!(told(Lifetime::Endless), Some(State::Endless(Endless {})));
        let until = |at| told(Lifetime::Until(WallTime(at)));
        assert_eq!([until(130), until(99)], [30, 0].map(|ms| Some(State::RemainingMs(ms))));
    }
}
