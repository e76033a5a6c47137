//! Changes of a value where it stands, as the API says them.

use quorate_api::v1;
use quorate_api::v1::change::Change as Asked;
use quorate_api::v1::changed::Told;
use quorate_kernel::change::{Change, Changed, Unchanged};
use quorate_kernel::expiry::Expiry;

/// A change as it came through the API; what it puts expires so.
pub fn asked(change: Asked, expiry: Expiry) -> Change {
    match change {
        Asked::PutIf(v1::PutIf { exists, value }) => Change::PutIf { exists, value, expiry },
        Asked::Add(number) => Change::Add(number),
        Asked::AddFloat(number) => Change::AddFloat(number),
        Asked::Append(bytes) => Change::Append(bytes),
        Asked::SetRange(v1::SetRange { offset, bytes }) => Change::SetRange { offset, bytes },
    }
}

/// What a change that was done is told.
pub fn changed(changed: Changed) -> Told {
    match changed {
        Changed::Put => Told::Put(true),
        Changed::Integer(number) => Told::Integer(number),
        Changed::Float(number) => Told::Number(number),
        Changed::Length(length) => Told::Length(length),
    }
}

/// What a change that was not done is told.
pub fn unchanged(why: Unchanged) -> Told {
    let why = match why {
        Unchanged::Condition => v1::Unchanged::Condition,
        Unchanged::NotAnInteger => v1::Unchanged::NotAnInteger,
        Unchanged::NotAFloat => v1::Unchanged::NotAFloat,
        Unchanged::Overflow => v1::Unchanged::Overflow,
        Unchanged::NotFinite => v1::Unchanged::NotFinite,
        Unchanged::TooLong => v1::Unchanged::TooLong,
    };
    Told::Unchanged(why.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn changes_and_what_they_are_told_keep_their_meaning() {
        let of = || Bytes::from_static(b"v");
        for (said, meant) in [
            (
                Asked::PutIf(v1::PutIf { exists: true, value: of() }),
                Change::PutIf { exists: true, value: of(), expiry: Expiry::Keep },
            ),
            (Asked::Add(-3), Change::Add(-3)),
            (Asked::AddFloat(of()), Change::AddFloat(of())),
            (Asked::Append(of()), Change::Append(of())),
            (
                Asked::SetRange(v1::SetRange { offset: 7, bytes: of() }),
                Change::SetRange { offset: 7, bytes: of() },
            ),
        ] {
            assert_eq!(asked(said, Expiry::Keep), meant);
        }
        assert_eq!(changed(Changed::Put), Told::Put(true));
        assert_eq!(changed(Changed::Integer(-1)), Told::Integer(-1));
        assert_eq!(changed(Changed::Float(of())), Told::Number(of()));
        assert_eq!(changed(Changed::Length(4)), Told::Length(4));
        let Told::Unchanged(why) = unchanged(Unchanged::Overflow) else {
            panic!("it was not done")
        };
        assert_eq!(v1::Unchanged::try_from(why), Ok(v1::Unchanged::Overflow));
    }
}
