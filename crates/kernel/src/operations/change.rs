//! Changes of a value where it stands: what a key has afterwards follows from what it had.
//!
//! Numbers, ranges and lengths are as in Redis, which most clients of such changes are made for.

use crate::expiry::Expiry;
use alloc::string::{String, ToString};
use bytes::{Bytes, BytesMut};
use core::{fmt, str};

/// The longest decimal integer of 64 bits, with its sign.
const INTEGER_BYTES_MAX: usize = 20;
/// What is longer is no number, whatever it says: values may have millions of digits, and nobody is
/// to wait until they are read. The longest number that is written here has fewer than 350.
const FLOAT_BYTES_MAX: usize = 512;

/// What is made of the value that a key has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A value is put if the key has one, or if it has none.
    PutIf {
        /// Whether the key must have a value.
        exists: bool,
        /// What it has then.
        value: Bytes,
        /// What becomes of its end then.
        expiry: Expiry,
    },
    /// A number is added to a decimal integer of 64 bits; an absent key counts as 0.
    Add(i64),
    /// A decimal number is added to one, as floating point of 64 bits; an absent key counts as 0.
    AddFloat(Bytes),
    /// Bytes are appended; an absent key counts as empty.
    Append(Bytes),
    /// A part is overwritten. What is too short is filled up with zero bytes before; an empty part
    /// changes nothing.
    SetRange {
        /// Where the part begins, in bytes.
        offset: u64,
        /// What it becomes.
        bytes: Bytes,
    },
}

/// What a change that was done is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    /// The value was put.
    Put,
    /// The integer that the key has now.
    Integer(i64),
    /// The number that the key has now, as its value says it.
    Float(Bytes),
    /// How many bytes the value has now.
    Length(u64),
}

/// Why a change was not done. The key has what it had; other items of a transaction are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unchanged {
    /// The key has a value, or has none, and should not.
    Condition,
    /// The value is no decimal integer of 64 bits.
    NotAnInteger,
    /// The value, or what shall be added, is no decimal number.
    NotAFloat,
    /// The sum does not fit 64 bits.
    Overflow,
    /// The sum would be infinite.
    NotFinite,
    /// The value would be longer than a value may be.
    TooLong,
}

impl fmt::Display for Unchanged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unchanged::Condition => "the key has a value, or has none, against what was asked",
            Unchanged::NotAnInteger => "the value is no decimal integer of 64 bits",
            Unchanged::NotAFloat => "the value, or what shall be added, is no decimal number",
            Unchanged::Overflow => "the sum does not fit 64 bits",
            Unchanged::NotFinite => "the sum would not be finite",
            Unchanged::TooLong => "the value would be longer than a value may be",
        })
    }
}

impl Change {
    /// The bytes that it carries, if any.
    #[must_use]
    pub fn bytes(&self) -> Option<&Bytes> {
        match self {
            Change::PutIf { value, .. } => Some(value),
            Change::AddFloat(bytes) | Change::Append(bytes) | Change::SetRange { bytes, .. } => {
                Some(bytes)
            }
            Change::Add(_) => None,
        }
    }

    /// What becomes of the key's end, if it is done.
    #[must_use]
    pub fn expiry(&self) -> Expiry {
        match self {
            Change::PutIf { expiry, .. } => *expiry,
            _ => Expiry::Keep,
        }
    }

    /// Does it on a key that has this value, where values have at most so many bytes: what is told,
    /// and whether the key has another value now. What nobody else holds grows where it stands.
    ///
    /// # Errors
    /// It is not done.
    pub fn apply(
        &self,
        now: &mut Option<Bytes>,
        bytes_max: usize,
    ) -> Result<(Changed, bool), Unchanged> {
        let (told, after) = match self {
            Change::PutIf { exists, .. } if *exists != now.is_some() => {
                return Err(Unchanged::Condition);
            }
            Change::PutIf { value, .. } if value.len() > bytes_max => {
                return Err(Unchanged::TooLong);
            }
            Change::PutIf { value, .. } => (Changed::Put, value.clone()),
            Change::Add(number) => {
                let before = now.as_ref().map_or(Some(0), |value| integer(value));
                let before = before.ok_or(Unchanged::NotAnInteger)?;
                let after = before.checked_add(*number).ok_or(Unchanged::Overflow)?;
                (Changed::Integer(after), after.to_string().into())
            }
            Change::AddFloat(number) => {
                let before = now.as_ref().map_or(Some(0.0), |value| float(value));
                let sum = before.zip(float(number)).map(|(before, number)| before + number);
                let sum = sum.ok_or(Unchanged::NotAFloat)?;
                if !sum.is_finite() {
                    return Err(Unchanged::NotFinite);
                }
                // The shortest decimal that reads back as the same number, without an exponent.
                let text: String = if sum == 0.0 { "0".into() } else { sum.to_string() };
                let value = Bytes::from(text);
                (Changed::Float(value.clone()), value)
            }
            // An append makes a key even of nothing.
            Change::Append(bytes) if bytes.is_empty() && now.is_none() => {
                (Changed::Length(0), Bytes::new())
            }
            Change::Append(bytes) => {
                let end = now.as_ref().map_or(0, Bytes::len) as u64;
                return overwrite(end, bytes, now, bytes_max);
            }
            Change::SetRange { offset, bytes } => {
                return overwrite(*offset, bytes, now, bytes_max);
            }
        };
        *now = Some(after);
        Ok((told, true))
    }
}

/// A decimal integer in its one form: no sign of a positive one, no leading zeros, no spaces.
fn integer(bytes: &[u8]) -> Option<i64> {
    if bytes.len() > INTEGER_BYTES_MAX {
        return None;
    }
    let text = str::from_utf8(bytes).ok()?;
    let number: i64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

fn float(bytes: &[u8]) -> Option<f64> {
    if bytes.len() > FLOAT_BYTES_MAX {
        return None;
    }
    let number: f64 = str::from_utf8(bytes).ok()?.parse().ok()?;
    number.is_finite().then_some(number)
}

fn overwrite(
    offset: u64,
    bytes: &Bytes,
    now: &mut Option<Bytes>,
    bytes_max: usize,
) -> Result<(Changed, bool), Unchanged> {
    let length = now.as_ref().map_or(0, Bytes::len);
    if bytes.is_empty() {
        return Ok((Changed::Length(length as u64), false));
    }
    let end = offset.checked_add(bytes.len() as u64).ok_or(Unchanged::TooLong)?;
    if end > bytes_max as u64 {
        return Err(Unchanged::TooLong);
    }
    let (offset, end) = (offset as usize, end as usize);
    let after_length = end.max(length);
    let mut after = now.take().unwrap_or_default().try_into_mut().unwrap_or_else(|shared| {
        let mut copy = BytesMut::with_capacity(after_length);
        copy.extend_from_slice(&shared);
        copy
    });
    after.resize(after_length, 0);
    after[offset..end].copy_from_slice(bytes);
    *now = Some(after.freeze());
    Ok((Changed::Length(after_length as u64), true))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    #[test]
    fn changes_are_those_of_redis() {
        let some = |text| Some(of(text));
        let put = |exists| Change::PutIf { exists, value: of("v"), expiry: Expiry::Never };
        let float = |text| Change::AddFloat(of(text));
        let range = |offset, text| Change::SetRange { offset, bytes: of(text) };
        let long = |length| Changed::Length(length);
        let table = [
            (put(true), None, Err(Unchanged::Condition)),
            (put(true), some(""), Ok((Changed::Put, some("v")))),
            (put(false), None, Ok((Changed::Put, some("v")))),
            (put(false), some(""), Err(Unchanged::Condition)),
            (Change::Add(5), None, Ok((Changed::Integer(5), some("5")))),
            (Change::Add(-7), some("5"), Ok((Changed::Integer(-2), some("-2")))),
            (Change::Add(1), some("05"), Err(Unchanged::NotAnInteger)),
            (Change::Add(1), some(""), Err(Unchanged::NotAnInteger)),
            (Change::Add(1), some("9223372036854775807"), Err(Unchanged::Overflow)),
            (float("0.5"), some("1"), Ok((Changed::Float(of("1.5")), some("1.5")))),
            (float("-1"), some("1"), Ok((Changed::Float(of("0")), some("0")))),
            (float("x"), some("1"), Err(Unchanged::NotAFloat)),
            (float("1"), some("x"), Err(Unchanged::NotAFloat)),
            (float("1e308"), some("1.7e308"), Err(Unchanged::NotFinite)),
            (Change::Append(of("")), None, Ok((long(0), some("")))),
            (Change::Append(of("")), some("a"), Ok((long(1), None))),
            (Change::Append(of("bc")), some("a"), Ok((long(3), some("abc")))),
            (Change::Append(of("bcdefgh")), some("ab"), Err(Unchanged::TooLong)),
            (range(2, "x"), None, Ok((long(3), some("\0\0x")))),
            (range(1, "x"), some("abc"), Ok((long(3), some("axc")))),
            (range(9, ""), some("abc"), Ok((long(3), None))),
            (range(9, ""), None, Ok((long(0), None))),
            (range(8, "x"), some("abc"), Err(Unchanged::TooLong)),
            (range(u64::MAX, "x"), None, Err(Unchanged::TooLong)),
        ];
        for (change, now, expected) in table {
            let mut has = now.clone();
            let told = change.apply(&mut has, 8);
            let after = told.map(|(told, is_other)| (told, has.clone().filter(|_| is_other)));
            assert_eq!(after, expected, "{change:?} of {now:?}");
            assert!(now == has || expected.is_ok_and(|(_, after)| after.is_some()));
        }
        let zeros = |count| Some(Bytes::from("0".repeat(count)));
        let long = [
            (Change::Add(1), zeros(INTEGER_BYTES_MAX + 1), Err(Unchanged::NotAnInteger)),
            (float("1"), zeros(FLOAT_BYTES_MAX), Ok((Changed::Float(of("1")), true))),
            (float("1"), zeros(FLOAT_BYTES_MAX + 1), Err(Unchanged::NotAFloat)),
        ];
        for (change, mut now, expected) in long {
            assert_eq!(change.apply(&mut now, 1024), expected, "{change:?}");
        }
        let value = of("nine.....");
        let put = Change::PutIf { exists: false, value, expiry: Expiry::Never };
        assert_eq!(put.apply(&mut None, 8), Err(Unchanged::TooLong));
    }

    #[test]
    fn what_nobody_else_holds_grows_where_it_stands() {
        let (shared, append) = (of("a"), Change::Append(of("b")));
        let mut now = Some(shared.clone());
        let mut copies = 0;
        for length in 2..=4096 {
            let before = now.as_ref().map(|value| value.as_ptr());
            assert_eq!(append.apply(&mut now, 4096), Ok((Changed::Length(length), true)));
            copies += usize::from(before != now.as_ref().map(|value| value.as_ptr()));
        }
        assert!(copies < 16, "4095 appends have copied the value {copies} times");
        assert_eq!(shared, "a", "what others hold stays");
    }
}
