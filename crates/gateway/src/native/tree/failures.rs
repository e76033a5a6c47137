//! What a tree does not allow, in the words of the API.

use crate::native::problem::{self, Problem};
use quorate_api::v1::{Error, Kind, NodeFailure};
use quorate_kernel::operation::Refusal;
use quorate_kernel::tree::Failure;

/// Why a tree does not allow it. Nothing was changed.
pub fn problem(failure: Failure) -> Problem {
    let (kind, node_failure) = words(failure);
    let right = match failure {
        Failure::NoNode => "make it, or its parents, first",
        Failure::Exists => "choose another path, or set what the node has",
        Failure::NotEmpty => "delete its children first",
        Failure::NoChildrenForEphemerals => "make it below a node that stays",
        Failure::NoAuth | Failure::AuthFailed => {
            "show who you are in a session, by Tree.Authenticate or a client of ZooKeeper"
        }
        Failure::BadArguments => "name nodes by paths: names between slashes, none of them empty",
        Failure::InvalidAcl => "give permissions from 1 to 31, and world, ip, digest or auth",
        Failure::SessionExpired => "open another session, and make its nodes anew",
        Failure::SessionMoved => RESUME,
        Failure::Quota => {
            "make room, or use another keyspace; set limits of a part of the tree while it is \
             small, and one after the other"
        }
        _ => "read the node again, and decide anew",
    };
    let field = match failure {
        Failure::BadArguments => "path",
        Failure::InvalidAcl => "acl",
        Failure::SessionExpired | Failure::SessionMoved | Failure::AuthFailed => "session",
        _ => "",
    };
    let what = Refusal::Node(failure).to_string();
    Box::new(Error {
        field: field.to_owned(),
        node_failure: node_failure.into(),
        ..*problem::problem(kind, what, right)
    })
}

/// What to do about a session that is elsewhere.
const RESUME: &str = "go on with it here by Tree.OpenSession, or ask the host where it is open";

/// A session that is not open here: its client may have lost it to another host, or to time.
pub fn not_here() -> Problem {
    let what = Refusal::NoSession.to_string();
    Box::new(Error {
        field: String::from("session"),
        node_failure: NodeFailure::SessionMoved.into(),
        ..*problem::problem(Kind::Conflict, what, RESUME)
    })
}

fn words(failure: Failure) -> (Kind, NodeFailure) {
    match failure {
        Failure::NoNode => (Kind::NoNode, NodeFailure::NoNode),
        Failure::Exists => (Kind::Exists, NodeFailure::Exists),
        Failure::BadVersion => (Kind::Conflict, NodeFailure::BadVersion),
        Failure::NotEmpty => (Kind::Conflict, NodeFailure::NotEmpty),
        Failure::NoChildrenForEphemerals => (Kind::Conflict, NodeFailure::NoChildrenForEphemerals),
        Failure::NoAuth => (Kind::Denied, NodeFailure::NoAuth),
        Failure::AuthFailed => (Kind::Denied, NodeFailure::AuthFailed),
        Failure::InvalidAcl => (Kind::Invalid, NodeFailure::InvalidAcl),
        Failure::BadArguments => (Kind::Invalid, NodeFailure::BadArguments),
        Failure::SessionExpired => (Kind::Conflict, NodeFailure::SessionExpired),
        Failure::SessionMoved => (Kind::Conflict, NodeFailure::SessionMoved),
        Failure::Quota => (Kind::Conflict, NodeFailure::Quota),
        Failure::NotFollowed | Failure::Unimplemented | Failure::NotDone | Failure::NotTried => {
            (Kind::Conflict, NodeFailure::Other)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_has_a_kind_by_which_programs_decide_and_a_word_of_its_own() {
        for (failure, kind, word) in [
            (Failure::NoNode, Kind::NoNode, NodeFailure::NoNode),
            (Failure::Exists, Kind::Exists, NodeFailure::Exists),
            (Failure::BadVersion, Kind::Conflict, NodeFailure::BadVersion),
            (Failure::NotEmpty, Kind::Conflict, NodeFailure::NotEmpty),
            (Failure::NoAuth, Kind::Denied, NodeFailure::NoAuth),
            (Failure::BadArguments, Kind::Invalid, NodeFailure::BadArguments),
            (Failure::SessionExpired, Kind::Conflict, NodeFailure::SessionExpired),
        ] {
            let told = problem(failure);
            assert_eq!((told.kind(), told.node_failure()), (kind, word), "{failure:?}");
            assert!(!told.may_have_applied && told.what.ends_with("nothing was changed"));
        }
        assert_eq!(not_here().node_failure(), NodeFailure::SessionMoved);
    }
}
