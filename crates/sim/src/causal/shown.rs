//! Operations and outcomes in words, and as they enter the hash of a trace.

use bytes::Bytes;
use quorate_kernel::causal::{Ask, Told};
use quorate_kernel::operation::Outcome;
use quorate_kernel::time::Span;

pub(super) fn shown(ask: &Ask) -> String {
    let basis = |context: &Bytes| if context.is_empty() { " blind" } else { "" };
    match ask {
        Ask::Get { key, .. } => format!("get {}", key.escape_ascii()),
        Ask::Put { key, value, context, id } => {
            let again = id.filter(|name| name.age > Span(0)).map_or("", |_| " again");
            let (key, value) = (key.escape_ascii(), value.escape_ascii());
            format!("put {key}={value}{}{again}", basis(context))
        }
        Ask::Delete { key, .. } => format!("delete {}", key.escape_ascii()),
    }
}

pub(super) fn told(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Causal(Told::Siblings { values, .. }) => format!("{values:?}"),
        Outcome::Causal(Told::Stored { .. }) => "stored".to_owned(),
        Outcome::Refused(refusal) => refusal.to_string(),
        other => format!("{other:?}"),
    }
}

/// An outcome as it enters the hash of a trace.
pub(super) fn word(outcome: &Outcome) -> u64 {
    match outcome {
        Outcome::Causal(Told::Siblings { values, context }) => {
            let bytes = values.iter().chain([context]).flatten();
            bytes.fold(1, |word: u64, byte| word.rotate_left(5) ^ u64::from(*byte))
        }
        Outcome::Causal(Told::Stored { .. }) => 2,
        _ => 3,
    }
}
