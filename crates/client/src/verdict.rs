//! What a failed call means for what is done next.

use quorate_api::details;
use quorate_api::v1::{Error, Kind};
use std::error::Error as _;
use tonic::{ConnectError, Status};

/// What a failed call means.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// This call changed nothing, and may be made again, best at another host.
    Again(Box<Error>),
    /// It will not go better: nothing was changed.
    Refused(Box<Error>),
    /// Nobody can say what became of the write.
    Unknown(Box<Error>),
    /// No answer came: the connection broke, or the time ran out.
    Lost(String),
    /// There was no connection, so nothing was sent.
    Unsent(String),
}

impl Verdict {
    pub(crate) fn of(status: &Status) -> Verdict {
        let Some(error) = details::error(status) else {
            let code = status.code();
            return match code {
                // Said by gRPC itself before anything was begun.
                tonic::Code::OutOfRange | tonic::Code::Unimplemented => {
                    let (what, right) = (status.message().to_owned(), String::from("send less"));
                    let kind = match code {
                        tonic::Code::OutOfRange => Kind::TooLarge,
                        _ => Kind::Unsupported,
                    };
                    Verdict::Refused(Box::new(Error {
                        kind: kind.into(),
                        what,
                        right,
                        ..Error::default()
                    }))
                }
                _ if is_unsent(status) => Verdict::Unsent(status.message().to_owned()),
                _ => Verdict::Lost(format!("{code:?}: {}", status.message())),
            };
        };
        match error.kind() {
            Kind::NoQuorum | Kind::Overloaded | Kind::Stopping => Verdict::Again(Box::new(error)),
            Kind::OutcomeUnknown => Verdict::Unknown(Box::new(error)),
            _ => Verdict::Refused(Box::new(error)),
        }
    }

    /// Whether this failure of a write that was sent again says what became of the first time: one
    /// that was turned away at the door says nothing of it.
    pub(crate) fn is_of_the_write(error: &Error) -> bool {
        error.kind() == Kind::NoQuorum
    }
}

/// Whether a call failed because no connection could be made.
fn is_unsent(status: &Status) -> bool {
    let mut source = status.source();
    while let Some(error) = source {
        if error.is::<ConnectError>() {
            return true;
        }
        source = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changed_nothing_is_sent_again() {
        let of = |kind: Kind| {
            Verdict::of(&details::status(&Error { kind: kind.into(), ..Error::default() }))
        };
        for kind in [Kind::NoQuorum, Kind::Overloaded, Kind::Stopping] {
            assert!(matches!(of(kind), Verdict::Again(_)), "{kind:?}");
        }
        for kind in [Kind::Invalid, Kind::NoKeyspace, Kind::TooLarge, Kind::Unsupported] {
            assert!(matches!(of(kind), Verdict::Refused(_)), "{kind:?}");
        }
        assert!(matches!(of(Kind::OutcomeUnknown), Verdict::Unknown(_)));
        for status in [Status::unavailable("reset"), Status::cancelled(""), Status::unknown("")] {
            assert!(matches!(Verdict::of(&status), Verdict::Lost(_)), "{status:?}");
        }
        assert!(matches!(Verdict::of(&Status::out_of_range("x")), Verdict::Refused(_)));
    }
}
