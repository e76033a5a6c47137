//! Histories as files: JSON lines, easy to write from any language.
//!
//! Every line is one JSON object. The first says what the file is; each other one is an event.
//!
//! ```json
//! {"format":"quorate-history","version":1}
//! {"event":"invoke","id":1,"client":3,"at_ns":1000,"operation":"put","key":"k","value":"v"}
//! {"event":"complete","id":1,"at_ns":2000,"outcome":"written"}
//! {"event":"heal","at_ns":5000}
//! {"event":"invoke","id":2,"client":3,"at_ns":6000,"operation":"get","key":"k"}
//! {"event":"complete","id":2,"at_ns":7000,"outcome":"value","value":"v"}
//! ```
//!
//! - `at_ns`: nanoseconds of one clock for the whole file, 0 or more. Lines need not be sorted by
//!   time, but an operation's `invoke` stands before its `complete`. Of two events with equal times
//!   the one on the earlier line came first; who does not know writes the invocation first.
//! - `id`: names an operation within the file; any number, used once. `client`: any number up to
//!   4294967295.
//! - `operation`: `get` and `delete` with `key`; `put` with `key` and `value`; `scan` with `from`,
//!   a cursor, 0 for the first page; `transact` with `items`, a list of objects with `item` (`get`,
//!   `put`, `delete`, as above, or `check`) and `key`; a `check` has one of `is` (`absent` or
//!   `present`) and `value`, what the key must have. A put may say when the key ends, in `ends`, or
//!   that it ends as before, with `keeps_end`; `expire` has `ends` (null: never) and `when`;
//!   `lifetime` reads that. Times are milliseconds since 1970.
//! - `outcome`: for a get `value`, with `value` (null: the key is absent); for a put `written`; for
//!   a delete `deleted`, with `existed` (true or false; not judged); for a scan `page`, with `keys`
//!   and `next`, the cursor to continue at (null: the end); for a transaction `transacted`, with
//!   `items`, a list of objects with the `outcome` of each (`checked` of a check), or `unmet`, with
//!   the number of the `item` that did not hold, from 0, so that nothing was changed; for any
//!   `refused` (surely nothing was changed) or `unknown` (a write may apply at any later time). An
//!   operation that is never completed is unknown. No judge judges transactions yet: a history that
//!   has any is read, and its verdict is unknown.
//! - `heal`: all faults have ended, every host serves; the gets after it are final, and the
//!   durability judge looks at them. The last one counts.
//! - A cursor is a token, or `[token, key]` for the first key from this one on there.
//! - A key or value is a string, meaning its UTF-8 bytes, or `{"hex":"00ff"}` for any bytes.
//!
//! Empty lines are skipped. Unknown fields are errors, so that a misspelt one is noticed.

mod changes;
mod expiry;
mod items;
mod read;
mod write;

pub use read::{Reader, read};
pub use write::write;

use alloc::string::String;
use quorate_kernel::operation::Operation;
use thiserror::Error;

/// The first line of a file.
const HEADER: &str = r#"{"format":"quorate-history","version":1}"#;

/// A line that cannot be read. Nothing of the file was judged.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {problem}")]
pub struct RecordedError {
    /// The line's number, from 1.
    pub line: usize,
    /// What is wrong with it, and what would be right.
    pub problem: String,
}

fn name_of(operation: &Operation) -> &'static str {
    match operation {
        Operation::Get { .. } => "get",
        Operation::Put { .. } => "put",
        Operation::Delete { .. } => "delete",
        Operation::Scan { .. } => "scan",
        Operation::Transact { .. } => "transact",
        Operation::Tree(_) => "tree",
        Operation::HowEnded { .. } => unreachable!("it completes another operation"),
    }
}

#[cfg(test)]
mod tests;
