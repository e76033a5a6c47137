//! Normal operation: entries are proposed, committed and executed, and reads need no entry.

mod execute;
mod prepare;
pub(super) mod read_index;
