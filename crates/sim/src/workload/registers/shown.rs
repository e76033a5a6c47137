//! Operations and their ends as traces show them.

use quorate_check::history::Completion;
use quorate_kernel::operation::{Operation, Outcome};

/// An outcome as it enters the hash of a trace.
pub(super) fn outcome_word(outcome: &Outcome) -> u64 {
    match outcome {
        Outcome::Values { values, .. } => match values.iter().next() {
            None => 1,
            Some(value) => {
                let last = value
                    .iter()
                    .take(12)
                    .fold(0u64, |word, byte| word.rotate_left(5) ^ u64::from(*byte));
                2 ^ last << 8
            }
        },
        Outcome::Written { .. } => 3,
        Outcome::Deleted { existed, .. } => 4 + u64::from(*existed),
        Outcome::Page { keys, .. } => 6 ^ (keys.len() as u64) << 8,
        Outcome::Refused(_) => 7,
        Outcome::Explained(_) => 8,
        Outcome::Noted => 9,
        Outcome::Closed { .. } => 10,
        Outcome::Examined(_) => 11,
        Outcome::More(events) => 12 ^ (events.len() as u64) << 8,
        Outcome::Transacted(items) => 13 ^ (items.len() as u64) << 8,
        Outcome::Ended(ended) => 15 + (*ended as u64),
        Outcome::Tree(reply) => 14 ^ reply.zxid.0 << 8,
    }
}

/// An operation as a trace shows it.
pub(super) struct Shown<'a>(pub &'a Operation);

impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Operation::Get { key, .. } => write!(f, "get {}", key.escape_ascii()),
            Operation::Put { key, value, .. } => {
                let value = &value[..value.len().min(16)];
                write!(f, "put {}={}", key.escape_ascii(), value.escape_ascii())
            }
            Operation::Delete { key, .. } => write!(f, "delete {}", key.escape_ascii()),
            Operation::Scan { from, limit } => {
                let key = from.key.escape_ascii();
                write!(f, "scan {limit} from {:016x}{key}", from.token)
            }
            Operation::Transact { items, .. } => write!(f, "transact {} items", items.len()),
            Operation::HowEnded { .. } => f.write_str("how it ended"),
            Operation::Tree(ask) => write!(f, "{:?}", ask.act),
        }
    }
}

/// The end of an operation as a trace shows it.
pub(super) struct ShownEnd<'a>(pub &'a Completion);

impl std::fmt::Display for ShownEnd<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Completion::Value(None) => f.write_str("nothing"),
            Completion::Value(Some(value)) => {
                write!(f, "value {}", value[..value.len().min(16)].escape_ascii())
            }
            Completion::Written => f.write_str("written"),
            Completion::Deleted { existed } => write!(f, "deleted, existed: {existed}"),
            Completion::Page { keys, next: Some(next) } => {
                let key = next.key.escape_ascii();
                write!(f, "{} keys, more from {:016x}{key}", keys.len(), next.token)
            }
            Completion::Page { keys, next: None } => write!(f, "{} keys, no more", keys.len()),
            Completion::Transacted(items) => write!(f, "{} items done", items.len()),
            Completion::Committed => f.write_str("committed"),
            Completion::Unmet { item } => write!(f, "item {item} does not hold"),
            Completion::Tree(reply) => write!(f, "{:?} at {}", reply.told, reply.zxid.0),
            Completion::Refused => f.write_str("refused"),
            Completion::Unknown => f.write_str("unknown"),
        }
    }
}
