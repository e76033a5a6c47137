//! An error in the details of a gRPC status.
//!
//! Details travel as a `google.rpc.Status`: the code and the text once more, and any number of
//! messages of any type, each with the name of its type. Ours has one, the [`Error`].

use crate::v1::{Error, Kind};
use bytes::Bytes;
use prost::Message;
use prost_types::Any;
use tonic::{Code, Status};

/// The name by which the details say that they are an [`Error`].
const TYPE_URL: &str = "type.googleapis.com/quorate.v1.Error";

/// `google.rpc.Status`.
#[derive(Clone, PartialEq, Message)]
struct Details {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

/// The gRPC code of a sort of failures.
#[must_use]
pub fn code(kind: Kind) -> Code {
    match kind {
        Kind::Invalid | Kind::BadContext => Code::InvalidArgument,
        Kind::NoKeyspace | Kind::NoNode => Code::NotFound,
        Kind::Denied => Code::PermissionDenied,
        Kind::TooLarge => Code::OutOfRange,
        Kind::Unsupported => Code::Unimplemented,
        Kind::NoQuorum | Kind::Stopping => Code::Unavailable,
        Kind::Overloaded => Code::ResourceExhausted,
        Kind::OutcomeUnknown => Code::Unknown,
        Kind::Exists => Code::AlreadyExists,
        Kind::Conflict => Code::FailedPrecondition,
        Kind::Unspecified | Kind::Internal => Code::Internal,
    }
}

/// The status of a call that failed so.
#[must_use]
pub fn status(error: &Error) -> Status {
    let code = code(error.kind());
    let message = format!("{}; {}", error.what, error.right);
    let any = Any { type_url: String::from(TYPE_URL), value: error.encode_to_vec() };
    let details = Details { code: code.into(), message: message.clone(), details: vec![any] };
    Status::with_details(code, message, Bytes::from(details.encode_to_vec()))
}

/// The error that a status carries, if it carries one.
#[must_use]
pub fn error(status: &Status) -> Option<Error> {
    let details = Details::decode(status.details()).ok()?;
    let ours = details.details.iter().find(|any| any.type_url == TYPE_URL)?;
    Error::decode(&ours.value[..]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_crosses_in_a_status() {
        let sent = Error {
            kind: Kind::NoQuorum.into(),
            what: String::from("1 of 2 replicas answered"),
            right: String::from("send it again"),
            replicas_reached: 1,
            replicas_needed: 2,
            ..Error::default()
        };
        let status = status(&sent);
        assert_eq!(status.code(), Code::Unavailable);
        assert_eq!(status.message(), "1 of 2 replicas answered; send it again");
        assert_eq!(error(&status), Some(sent));
    }

    #[test]
    fn a_status_of_others_carries_no_error() {
        assert_eq!(error(&Status::internal("no details")), None);
        let nonsense = Status::with_details(Code::Internal, "", Bytes::from_static(b"\xff\xff"));
        assert_eq!(error(&nonsense), None);
    }

    #[test]
    fn only_an_unknown_outcome_has_the_code_of_one() {
        let kinds = (0..=14).map(|number| Kind::try_from(number).expect("a kind"));
        let unknown: Vec<Kind> = kinds.filter(|kind| code(*kind) == Code::Unknown).collect();
        assert_eq!(unknown, [Kind::OutcomeUnknown]);
    }
}
