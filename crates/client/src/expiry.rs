//! When keys expire, and how long they are there.

use crate::error::ClientError;
use quorate_api::v1::{self, expire, expiry, lifetime};
use std::time::{Duration, SystemTime};

/// When a key that is put expires: it is removed at that time or later. Times are in milliseconds
/// where they are sent; parts of one are rounded up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// When it would have expired anyway, or never.
    Keep,
    /// So long after a host has read the request, by its clock.
    After(Duration),
    /// At this time. If it has passed, the key has no value afterwards.
    At(SystemTime),
}

/// How long a key has its value if nobody writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// It has no value.
    Absent,
    /// It does not expire.
    Endless,
    /// So long from the answer of the host on, by its clock.
    Remaining(Duration),
}

impl From<Expiry> for v1::Expiry {
    fn from(expiry: Expiry) -> v1::Expiry {
        let end = match expiry {
            Expiry::Keep => expiry::End::Keep(v1::Keep {}),
            Expiry::After(after) => expiry::End::AfterMs(whole_ms(after)),
            Expiry::At(at) => expiry::End::AtMs(unix_ms(at)),
        };
        v1::Expiry { end: Some(end) }
    }
}

/// So long after the host has read the request.
pub(crate) fn after(after: Duration) -> expire::End {
    expire::End::AfterMs(whole_ms(after))
}

/// At this time.
pub(crate) fn at(at: SystemTime) -> expire::End {
    expire::End::AtMs(unix_ms(at))
}

/// Never less than the duration: a key may expire late, but not early.
fn whole_ms(duration: Duration) -> u64 {
    let ms = duration.as_nanos().div_ceil(1_000_000);
    u64::try_from(ms).unwrap_or(u64::MAX)
}

/// A time before 1970 is 0, which hosts refuse.
fn unix_ms(at: SystemTime) -> u64 {
    at.duration_since(SystemTime::UNIX_EPOCH).map_or(0, whole_ms)
}

/// A lifetime as a host told it.
pub(crate) fn lifetime(told: Option<v1::Lifetime>) -> Result<Lifetime, ClientError> {
    match told.and_then(|told| told.state) {
        Some(lifetime::State::Absent(_)) => Ok(Lifetime::Absent),
        Some(lifetime::State::Endless(_)) => Ok(Lifetime::Endless),
        Some(lifetime::State::RemainingMs(ms)) => {
            Ok(Lifetime::Remaining(Duration::from_millis(ms)))
        }
        None => Err(ClientError::Nonsense("a lifetime without a state")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_whole_milliseconds_and_never_early() {
        let end = |expiry: Expiry| v1::Expiry::from(expiry).end.expect("it says when");
        let after = |nanos| end(Expiry::After(Duration::from_nanos(nanos)));
        assert_eq!(end(Expiry::Keep), expiry::End::Keep(v1::Keep {}));
        assert_eq!(after(1), expiry::End::AfterMs(1));
        assert_eq!(after(2_000_000), expiry::End::AfterMs(2));
        assert_eq!(after(0), expiry::End::AfterMs(0), "a host says what is wrong with it");
        assert_eq!(end(Expiry::After(Duration::MAX)), expiry::End::AfterMs(u64::MAX));
        let at = SystemTime::UNIX_EPOCH + Duration::from_micros(1_500);
        assert_eq!(end(Expiry::At(at)), expiry::End::AtMs(2));
        let before = SystemTime::UNIX_EPOCH - Duration::from_secs(1);
        assert_eq!(end(Expiry::At(before)), expiry::End::AtMs(0));
    }

    #[test]
    fn a_lifetime_has_a_state() {
        let of = |state| lifetime(Some(v1::Lifetime { state }));
        let ms = Some(lifetime::State::RemainingMs(7));
        assert_eq!(of(ms), Ok(Lifetime::Remaining(Duration::from_millis(7))));
        assert_eq!(of(Some(lifetime::State::Absent(v1::Absent {}))), Ok(Lifetime::Absent));
        assert_eq!(of(Some(lifetime::State::Endless(v1::Endless {}))), Ok(Lifetime::Endless));
        assert!(matches!(of(None), Err(ClientError::Nonsense(_))));
    }
}
