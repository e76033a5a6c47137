//! Operations and outcomes in words, and as they enter the hash of a trace.

use quorate_kernel::operation::{Operation, Outcome, Which};
use quorate_kernel::receipt::Receipt;
use quorate_kernel::time::Span;
use quorate_kernel::write::Replaces;

pub(super) fn shown(ask: &Operation) -> String {
    let after = |is_after: bool| if is_after { " after what was seen" } else { "" };
    match ask {
        Operation::Get { key, which, .. } => {
            format!("get {}{}", key.escape_ascii(), after(*which != Which::One))
        }
        Operation::Put { key, value, replaces, name } => {
            let again = name.filter(|name| name.age > Span(0)).map_or("", |_| " again");
            let after = after(*replaces != Replaces::Whatever);
            let (key, value) = (key.escape_ascii(), value.escape_ascii());
            format!("put {key}={value}{after}{again}")
        }
        Operation::Delete { key, replaces } => {
            format!("delete {}{}", key.escape_ascii(), after(*replaces != Replaces::Whatever))
        }
        Operation::Scan { from, limit } => format!("scan {from} {limit}"),
        Operation::Transact { .. } | Operation::Tree(_) | Operation::HowEnded { .. } => {
            unreachable!("these clients ask for one key at a time")
        }
    }
}

pub(super) fn told(outcome: &Outcome) -> String {
    let receipt = |context| match Receipt::of_context(context) {
        Some(Receipt { token, acks, is_degraded }) => {
            let degraded = if is_degraded { ", degraded" } else { "" };
            let place: String = token.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("at {place} by {acks}{degraded}")
        }
        None => "without a receipt".to_owned(),
    };
    match outcome {
        Outcome::Values { values, context } => {
            format!("{:?} {}", values.iter().next(), receipt(context))
        }
        Outcome::Written { context } | Outcome::Deleted { context, .. } => {
            format!("stored {}", receipt(context))
        }
        Outcome::Page { keys, next } => format!("{keys:?}, then {next:?}"),
        Outcome::Refused(refusal) => refusal.to_string(),
        other => format!("{other:?}"),
    }
}

/// An outcome as it enters the hash of a trace.
pub(super) fn word(outcome: &Outcome) -> u64 {
    let fold = |bytes: &[u8], first: u64| {
        bytes.iter().fold(first, |word, byte| word.rotate_left(5) ^ u64::from(*byte))
    };
    match outcome {
        Outcome::Values { values, context } => {
            fold(context, values.iter().fold(1, |word, value| fold(value, word)))
        }
        Outcome::Written { context } => fold(context, 2),
        Outcome::Deleted { existed, context } => fold(context, 3 + u64::from(*existed)),
        Outcome::Page { keys, next } => {
            let end = next.as_ref().map_or(6, |next| next.token);
            keys.iter().fold(end, |word, key| fold(key, word))
        }
        _ => 5,
    }
}
