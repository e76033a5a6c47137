//! Operations and outcomes in words, and as they enter the hash of a trace.

use bytes::Bytes;
use quorate_kernel::operation::{Operation, Outcome};
use quorate_kernel::time::Span;
use quorate_kernel::write::Replaces;

pub(super) fn shown(ask: &Operation) -> String {
    match ask {
        Operation::Get { key, .. } => format!("get {}", key.escape_ascii()),
        Operation::Put { key, value, replaces, name } => {
            let basis = if *replaces == Replaces::Seen(Bytes::new()) { " blind" } else { "" };
            let again = name.filter(|name| name.age > Span(0)).map_or("", |_| " again");
            let (key, value) = (key.escape_ascii(), value.escape_ascii());
            format!("put {key}={value}{basis}{again}")
        }
        Operation::Delete { key, .. } => format!("delete {}", key.escape_ascii()),
        Operation::Scan { .. }
        | Operation::Transact { .. }
        | Operation::Tree(_)
        | Operation::HowEnded { .. } => {
            unreachable!("these clients ask for one key at a time")
        }
    }
}

pub(super) fn told(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Values { values, .. } => format!("{:?}", values.iter().collect::<Vec<_>>()),
        Outcome::Written { .. } | Outcome::Deleted { .. } => "stored".to_owned(),
        Outcome::Refused(refusal) => refusal.to_string(),
        other => format!("{other:?}"),
    }
}

/// An outcome as it enters the hash of a trace.
pub(super) fn word(outcome: &Outcome) -> u64 {
    match outcome {
        Outcome::Values { values, context } => {
            let bytes = values.iter().chain([context]).flatten();
            bytes.fold(1, |word: u64, byte| word.rotate_left(5) ^ u64::from(*byte))
        }
        Outcome::Written { .. } | Outcome::Deleted { .. } => 2,
        _ => 3,
    }
}
