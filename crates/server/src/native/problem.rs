//! Why a call failed, in the words of the API: what was wrong, and what would be right.

use quorate_api::v1::{Coordinator, Error, Kind};
use quorate_kernel::operation::Refusal;

/// Why a call failed. Nothing was changed, unless it says that something may have been.
pub type Problem = Box<Error>;

/// What is told about an error that is nobody's doing but ours.
const REPORT: &str = "this is a defect of the server; please report it";

fn problem(kind: Kind, what: impl Into<String>, right: impl Into<String>) -> Problem {
    let (what, right) = (what.into(), right.into());
    let may_have_applied = kind == Kind::OutcomeUnknown;
    Box::new(Error { kind: kind.into(), what, right, may_have_applied, ..Error::default() })
}

/// A field of the request breaks a rule.
pub fn invalid(field: &str, what: impl Into<String>, right: impl Into<String>) -> Problem {
    Box::new(Error { field: field.to_owned(), ..*problem(Kind::Invalid, what, right) })
}

/// No keyspace has this name.
pub fn no_keyspace(name: &str, known: &[&str]) -> Problem {
    let shown: String = name.chars().take(64).collect();
    let what = format!("no keyspace is named '{shown}'");
    let right = format!("there are: {}", known.join(", "));
    Box::new(Error { field: String::from("keyspace"), ..*problem(Kind::NoKeyspace, what, right) })
}

/// The host has not heard of any keyspace yet.
pub fn not_learnt() -> Problem {
    let what = "the host has not learnt yet which keyspaces there are";
    problem(Kind::NoQuorum, what, "send it again after a moment, or to another host")
}

/// Something is over its limit.
pub fn too_large(field: &str, length: usize, limit: usize, right: &str) -> Problem {
    let what = format!("the {field} of {length} bytes is over the limit of {limit}");
    Box::new(Error { field: field.to_owned(), ..*problem(Kind::TooLarge, what, right) })
}

/// An answer would be over its limit.
pub fn answer_too_large(limit: usize, right: &str) -> Problem {
    problem(Kind::TooLarge, format!("the answer would be over {limit} bytes"), right)
}

/// The engine of a keyspace cannot do what was asked.
pub fn unsupported(what: impl Into<String>, right: impl Into<String>) -> Problem {
    problem(Kind::Unsupported, what, right)
}

/// The doors have too much in memory.
pub fn overloaded() -> Problem {
    let what = "the host has too many bytes of requests and answers in memory";
    problem(Kind::Overloaded, what, "send it again after a pause, or to another host")
}

/// A host did not say in time what only its core thread knows.
pub fn no_answer() -> Problem {
    problem(Kind::Overloaded, "the host did not answer in time", "ask again, or ask another host")
}

/// The host is going away.
pub fn stopping() -> Problem {
    problem(Kind::Stopping, "the host is stopping", "ask another host")
}

/// A write was sent again to a coordinator that cannot know what became of it.
pub fn elsewhere(me: Coordinator) -> Problem {
    let what = format!(
        "the request was first sent to another coordinator or start, and only that one could tell \
         what became of it; this is node {:016x} in start {}",
        me.node, me.start
    );
    unknown(what)
}

/// A write was sent again so late that it may have been forgotten.
pub fn forgotten() -> Problem {
    unknown("the request was first sent so long ago that what became of it may be forgotten")
}

fn unknown(what: impl Into<String>) -> Problem {
    let right = "read the key to see what it holds; a new write, if it may be done twice, needs a \
                 new request_id";
    problem(Kind::OutcomeUnknown, what, right)
}

/// Another write has the same request id.
pub fn reused() -> Problem {
    let what = "another write was sent with this request_id";
    let right = "draw 16 random bytes for every write, and keep them only when it is sent again";
    invalid("options.request_id", what, right)
}

/// The host answered something else than was asked.
pub fn mismatch() -> Problem {
    problem(Kind::Internal, "the engine answered another question", REPORT)
}

/// An operation was refused by its engine.
pub fn refused(refusal: &Refusal) -> Problem {
    let what = refusal.to_string();
    match refusal {
        Refusal::NoQuorum { reached, needed } => {
            let right = "send it again when more hosts can be reached, or to another host";
            Box::new(Error {
                replicas_reached: u32::from(*reached),
                replicas_needed: u32::from(*needed),
                ..*problem(Kind::NoQuorum, what, right)
            })
        }
        Refusal::Minority { view, suspected, members } => {
            let right = "send it again when more hosts can be reached, or to another host";
            Box::new(Error {
                view: *view,
                replicas_reached: u32::from(members.saturating_sub(*suspected)),
                replicas_needed: u32::from(members / 2 + 1),
                ..*problem(Kind::NoQuorum, what, right)
            })
        }
        Refusal::NoRoute => {
            problem(Kind::NoQuorum, what, "send it again after a moment, or to another host")
        }
        Refusal::OutcomeUnknown | Refusal::CatalogUnknown => unknown(what),
        Refusal::Overloaded => problem(Kind::Overloaded, what, "send it again after a pause"),
        Refusal::Stopping => problem(Kind::Stopping, what, "send it to another host"),
        Refusal::TooLarge { what: field, length, limit } => {
            too_large(field, *length, *limit, "split what is to be stored")
        }
        Refusal::Unsupported => {
            unsupported(what, "use a keyspace whose engine does; Admin.Keyspaces lists them")
        }
        Refusal::NotOpen => {
            let right = "Admin.Keyspaces lists those there are; one made anew under this name is \
                         another one";
            let field = String::from("keyspace");
            Box::new(Error { field, ..*problem(Kind::NoKeyspace, what, right) })
        }
        Refusal::Context(_) => {
            let right = "give the context of an earlier answer for this very key, as it was";
            let field = String::from("context");
            Box::new(Error { field, ..*problem(Kind::BadContext, what, right) })
        }
        Refusal::Siblings { .. } => unsupported(what, "read the key with its context"),
        // Orders of operators do not come this way.
        Refusal::Membership { .. } | Refusal::Catalog(_) => problem(Kind::Internal, what, REPORT),
    }
}

/// The word for a sort of failures, as it stands in JSON.
#[must_use]
pub fn word(kind: Kind) -> String {
    kind.as_str_name().trim_start_matches("KIND_").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_kernel::causal::ContextError;
    use quorate_kernel::keyspace::CatalogRefusal;

    #[test]
    fn only_an_unknown_outcome_may_have_applied() {
        let table = [
            (Refusal::NoQuorum { reached: 1, needed: 2 }, Kind::NoQuorum),
            (Refusal::Minority { view: 7, suspected: 2, members: 3 }, Kind::NoQuorum),
            (Refusal::NoRoute, Kind::NoQuorum),
            (Refusal::OutcomeUnknown, Kind::OutcomeUnknown),
            (Refusal::Overloaded, Kind::Overloaded),
            (Refusal::Stopping, Kind::Stopping),
            (Refusal::TooLarge { what: "value", length: 9, limit: 8 }, Kind::TooLarge),
            (Refusal::Unsupported, Kind::Unsupported),
            (Refusal::Context(ContextError::Forged), Kind::BadContext),
            (Refusal::Siblings { count: 2 }, Kind::Unsupported),
            (Refusal::NotOpen, Kind::NoKeyspace),
            (Refusal::CatalogUnknown, Kind::OutcomeUnknown),
            (Refusal::Catalog(CatalogRefusal::NotLearnt), Kind::Internal),
        ];
        for (refusal, kind) in table {
            let problem = refused(&refusal);
            assert_eq!(problem.kind(), kind);
            assert_eq!(problem.may_have_applied, refusal.may_have_applied());
            assert!(!problem.what.is_empty() && !problem.right.is_empty(), "{refusal}");
        }
    }

    #[test]
    fn what_was_seen_is_told() {
        let minority = refused(&Refusal::Minority { view: 7, suspected: 2, members: 3 });
        let seen = (minority.view, minority.replicas_reached, minority.replicas_needed);
        assert_eq!(seen, (7, 1, 2));
        let large = refused(&Refusal::TooLarge { what: "value", length: 9, limit: 8 });
        assert_eq!((large.field.as_str(), word(large.kind())), ("value", "too_large".to_owned()));
    }
}
