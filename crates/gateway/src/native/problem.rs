//! Why a call failed, in the words of the API: what was wrong, and what would be right.

use super::tree;
use quorate_api::v1::{Coordinator, Error, Kind};
use quorate_kernel::keyspace::CatalogRefusal;
use quorate_kernel::lacking::Lacking;
use quorate_kernel::operation::Refusal;

/// Why a call failed. Nothing was changed, unless it says that something may have been.
pub type Problem = Box<Error>;

/// What to do about an order of which nobody can say what became of it.
const LOOK: &str = "look with Admin.ShowKeyspace what became of it before you give it again";
/// What is told about an error that is nobody's doing but ours.
const REPORT: &str = "this is a defect of the server; please report it";

/// The longest text that is told of an order: names in it may be long, and it travels in headers.
const TEXT_CHARS_MAX: usize = 400;

pub(super) fn problem(kind: Kind, what: impl Into<String>, right: impl Into<String>) -> Problem {
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

/// The host has not heard of any keyspace yet. That says nothing of what a write that is sent again
/// has done the first time, as no quorum would.
pub fn not_learnt() -> Problem {
    let what = "the host has not learnt yet which keyspaces there are";
    problem(Kind::Overloaded, what, "send it again after a moment, or to another host")
}

/// Something is over its limit.
pub fn too_large(field: &str, length: usize, limit: usize, right: &str) -> Problem {
    let what = format!("the {field} of {length} bytes is over the limit of {limit}");
    Box::new(Error { field: field.to_owned(), ..*problem(Kind::TooLarge, what, right) })
}

/// A batch has too many keys.
pub fn too_many_keys(count: usize, limit: usize) -> Problem {
    let right = format!("ask for at most {limit} keys at a time");
    invalid("keys", format!("{count} keys in one batch"), right)
}

/// An answer would be over its limit.
pub fn answer_too_large(limit: usize, right: &str) -> Problem {
    problem(Kind::TooLarge, format!("the answer would be over {limit} bytes"), right)
}

/// The engine of a keyspace cannot do what was asked.
pub fn lacking(lacking: &Lacking) -> Problem {
    unsupported(lacking.what(), lacking.right())
}

/// The keyspace cannot do what was asked.
pub fn unsupported(what: impl Into<String>, right: impl Into<String>) -> Problem {
    problem(Kind::Unsupported, what, right)
}

/// The doors have too much in memory.
pub fn overloaded() -> Problem {
    let what = "the host has too many bytes of requests and answers in memory";
    problem(Kind::Overloaded, what, "send it again after a pause, or to another host")
}

/// The door has as many connections as it takes.
pub fn full() -> Problem {
    let what = "the host has as many connections as it takes";
    problem(Kind::Overloaded, what, "close one, or ask another host")
}

/// A host did not say in time what only its core thread knows.
pub fn no_answer() -> Problem {
    problem(Kind::Overloaded, "the host did not answer in time", "ask again, or ask another host")
}

/// A host did not say in time what has become of what it was asked.
pub fn unanswered() -> Problem {
    let what = "the host did not answer in time; what was asked may have been done, or be done yet";
    problem(Kind::OutcomeUnknown, what, "look what has become of it before you ask again")
}

/// The host is going away.
pub fn stopping() -> Problem {
    problem(Kind::Stopping, "the host is stopping", "ask another host")
}

/// An order may have been taken, but the host did not say so.
pub fn order_unknown(why: &str) -> Problem {
    let what = format!("{why}, after the order was given; it may be carried out yet");
    problem(Kind::OutcomeUnknown, what, LOOK)
}

/// An order names a host that is not there.
pub fn no_host(what: String) -> Problem {
    invalid("host", shortened(what), "name a host of the ring; Admin.Ring lists them")
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

/// A transaction was done whose answer has no room.
pub fn untold() -> Problem {
    let what = "the transaction was done, but the host has no room in memory for its answer";
    let right = "send it again with its request_id, or read the keys";
    problem(Kind::OutcomeUnknown, what, right)
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

/// The token of a question how a transaction ended is none of the keyspace.
pub fn token(what: String) -> Problem {
    let right = "give the outcome_token of the error as it was, to the keyspace that gave it";
    let field = String::from("token");
    Box::new(Error { field, ..*problem(Kind::BadContext, what, right) })
}

/// The host answered something else than was asked.
pub fn mismatch() -> Problem {
    problem(Kind::Internal, "the engine answered another question", REPORT)
}

/// Too few replicas were reached of those that are needed.
fn no_quorum(what: String, view: u64, (reached, needed): (u32, u32)) -> Problem {
    let right = "send it again when more hosts can be reached, or to another host";
    let (replicas_reached, replicas_needed) = (reached, needed);
    let why = *problem(Kind::NoQuorum, what, right);
    Box::new(Error { view, replicas_reached, replicas_needed, ..why })
}

/// An operation was refused by its engine.
pub fn refused(refusal: &Refusal) -> Problem {
    let what = refusal.to_string();
    match refusal {
        Refusal::NoQuorum { reached, needed } => {
            let replicas = (u32::from(*reached), u32::from(*needed));
            no_quorum(what, 0, replicas)
        }
        Refusal::Minority { view, suspected, members } => {
            let reached = u32::from(members.saturating_sub(*suspected));
            no_quorum(what, *view, (reached, u32::from(members / 2 + 1)))
        }
        Refusal::NoRoute => {
            problem(Kind::NoQuorum, what, "send it again after a moment, or to another host")
        }
        Refusal::OutcomeUnknown | Refusal::NameForgotten | Refusal::OutcomeForgotten => {
            unknown(what)
        }
        Refusal::OutcomeOpen { token } => {
            let right = "ask with the outcome_token how it ended: Kv.HowEnded";
            let outcome_token = token.clone();
            Box::new(Error { outcome_token, ..*problem(Kind::OutcomeUnknown, what, right) })
        }
        Refusal::CatalogUnknown => problem(Kind::OutcomeUnknown, what, LOOK),
        Refusal::Overloaded => problem(Kind::Overloaded, what, "send it again after a pause"),
        Refusal::Node(failure) => tree::failure(*failure),
        Refusal::NoSession => tree::not_here(),
        Refusal::TooSlow => problem(Kind::Overloaded, what, "take what comes, or watch less"),
        Refusal::Stopping => problem(Kind::Stopping, what, "send it to another host"),
        Refusal::TooLarge { what: field, length, limit } => {
            too_large(field, *length, *limit, "split what is to be stored")
        }
        Refusal::TooMany { limit, .. } => {
            invalid("items", what, format!("send at most {limit} items at a time"))
        }
        Refusal::Unmet { item } => {
            let right = "read the keys again, and decide anew";
            let field = format!("items[{item}]");
            Box::new(Error { field, ..*problem(Kind::Conflict, what, right) })
        }
        Refusal::Value { expected } => invalid("value", what, format!("send {expected}")),
        Refusal::Lacking(why) => lacking(why),
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
        Refusal::Token(_) => {
            let right = "give the token of the last answer of this keyspace, as it was, or none";
            let field = String::from("place.after");
            Box::new(Error { field, ..*problem(Kind::BadContext, what, right) })
        }
        Refusal::Siblings { .. } => unsupported(what, "read the key with its context"),
        Refusal::Membership { .. } => {
            problem(Kind::Conflict, shortened(what), "Admin.Ring tells of the hosts")
        }
        Refusal::Catalog(why) => of_catalog(why),
    }
}

/// An order was refused by the catalog.
fn of_catalog(why: &CatalogRefusal) -> Problem {
    let what = shortened(why.to_string());
    let at = |field: &str, kind: Kind, right: &str| {
        let field = shortened(field.to_owned());
        Box::new(Error { field, ..*problem(kind, what.clone(), shortened(right.to_owned())) })
    };
    let setting = |name: &str| format!("settings.{name}");
    match why {
        CatalogRefusal::Exists { .. } => {
            at("name", Kind::Exists, "choose another name, or drop that one first")
        }
        CatalogRefusal::Unknown { .. } => {
            at("name", Kind::NoKeyspace, "Admin.Keyspaces lists those there are")
        }
        CatalogRefusal::Name { .. } => at("name", Kind::Invalid, "choose a name of that form"),
        CatalogRefusal::Engine { known, .. } => {
            at("engine", Kind::Invalid, &format!("choose one of: {known}"))
        }
        CatalogRefusal::Setting { name, known, .. } => {
            at(&setting(name), Kind::Invalid, &format!("set any of: {known}"))
        }
        CatalogRefusal::Unset { name, .. } => {
            let right = "alter the keyspace so that it says this, or make it anew and copy it";
            at(&setting(name), Kind::Conflict, right)
        }
        CatalogRefusal::Value { name, expected, .. } => {
            at(&setting(name), Kind::Invalid, &format!("use {expected}"))
        }
        CatalogRefusal::Fixed { name, .. } => {
            let right = "leave it as it is; Admin.ShowKeyspace says what may be altered";
            at(&setting(name), Kind::Conflict, right)
        }
        CatalogRefusal::Hosts { needed, there } => {
            let count = |hosts: &usize| u32::try_from(*hosts).unwrap_or(u32::MAX);
            let right = "order it again when more hosts can be reached, or add hosts";
            let (replicas_reached, replicas_needed) = (count(there), count(needed));
            let told = problem(Kind::NoQuorum, what, right);
            Box::new(Error { replicas_reached, replicas_needed, ..*told })
        }
        CatalogRefusal::Partitions { .. } => {
            problem(Kind::Conflict, what, "Admin.ShowKeyspace and Admin.Ring tell who holds what")
        }
        CatalogRefusal::Full { .. } => problem(Kind::Conflict, what, "drop what is not needed"),
        CatalogRefusal::NotLearnt => not_learnt(),
    }
}

fn shortened(text: String) -> String {
    match text.char_indices().nth(TEXT_CHARS_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
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
    use quorate_kernel::keyspace::CatalogRefusal;
    use quorate_kernel::receipt::TokenError;
    use quorate_kernel::write::ContextError;

    #[test]
    fn only_an_unknown_outcome_may_have_applied() {
        let table = [
            (Refusal::NoQuorum { reached: 1, needed: 2 }, Kind::NoQuorum),
            (Refusal::Minority { view: 7, suspected: 2, members: 3 }, Kind::NoQuorum),
            (Refusal::NoRoute, Kind::NoQuorum),
            (Refusal::OutcomeUnknown, Kind::OutcomeUnknown),
            (Refusal::NameForgotten, Kind::OutcomeUnknown),
            (Refusal::OutcomeForgotten, Kind::OutcomeUnknown),
            (Refusal::OutcomeOpen { token: "t".into() }, Kind::OutcomeUnknown),
            (Refusal::Overloaded, Kind::Overloaded),
            (Refusal::Stopping, Kind::Stopping),
            (Refusal::TooLarge { what: "value", length: 9, limit: 8 }, Kind::TooLarge),
            (Refusal::Value { expected: "a number" }, Kind::Invalid),
            (Refusal::TooMany { count: 9, limit: 8 }, Kind::Invalid),
            (Refusal::Unmet { item: 1 }, Kind::Conflict),
            (Refusal::Unsupported, Kind::Unsupported),
            (Refusal::Context(ContextError::Forged), Kind::BadContext),
            (Refusal::Token(TokenError::Forged), Kind::BadContext),
            (Refusal::Siblings { count: 2 }, Kind::Unsupported),
            (Refusal::NotOpen, Kind::NoKeyspace),
            (Refusal::CatalogUnknown, Kind::OutcomeUnknown),
            (Refusal::Catalog(CatalogRefusal::NotLearnt), Kind::Overloaded),
            (Refusal::Membership { why: String::from("it is the last") }, Kind::Conflict),
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

    #[test]
    fn an_order_is_refused_with_what_it_named() {
        let (name, known) = (String::from("x"), String::from("value, replicas"));
        let (engine, value) = (String::from("linearizable"), String::from("7"));
        let expected = String::from("hash or key");
        let why = String::from("keys would move");
        let table = [
            (CatalogRefusal::Exists { name: name.clone() }, Kind::Exists, "name", "another name"),
            (CatalogRefusal::Unknown { name: name.clone() }, Kind::NoKeyspace, "name", "lists"),
            (CatalogRefusal::Name { name: name.clone() }, Kind::Invalid, "name", "form"),
            (
                CatalogRefusal::Engine { name: name.clone(), known: known.clone() },
                Kind::Invalid,
                "engine",
                "choose one of: value, replicas",
            ),
            (
                CatalogRefusal::Setting { engine, name: name.clone(), known },
                Kind::Invalid,
                "settings.x",
                "set any of: value, replicas",
            ),
            (
                CatalogRefusal::Value { name: name.clone(), value, expected },
                Kind::Invalid,
                "settings.x",
                "use hash or key",
            ),
            (CatalogRefusal::Fixed { name, why: why.clone() }, Kind::Conflict, "settings.x", "may"),
            (CatalogRefusal::Partitions { why: why.clone() }, Kind::Conflict, "", "who holds"),
            (CatalogRefusal::Full { what: why, limit: 9 }, Kind::Conflict, "", "drop"),
        ];
        for (refusal, kind, field, right) in table {
            let told = refused(&Refusal::Catalog(refusal));
            assert_eq!((told.kind(), told.field.as_str()), (kind, field), "{told:?}");
            assert!(told.right.contains(right) && !told.may_have_applied, "{told:?}");
        }
        let few = refused(&Refusal::Catalog(CatalogRefusal::Hosts { needed: 3, there: 2 }));
        assert_eq!((few.kind(), few.replicas_reached, few.replicas_needed), (Kind::NoQuorum, 2, 3));
    }

    #[test]
    fn what_is_told_of_an_order_fits_into_a_header() {
        let name = "\u{1f600}".repeat(60_000);
        let long = |why: CatalogRefusal| {
            let told = refused(&Refusal::Catalog(why));
            told.what.len() + told.right.len() + told.field.len()
        };
        assert!(long(CatalogRefusal::Name { name: name.clone() }) < 4_000);
        assert!(long(CatalogRefusal::Fixed { name: name.clone(), why: name.clone() }) < 4_000);
        assert!(no_host(name).what.len() < 2_000);
    }
}
