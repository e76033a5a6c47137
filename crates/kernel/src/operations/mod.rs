//! Operations: what clients ask, what they are told, and what they can follow.

pub mod change;
pub mod cursor;
pub mod evaluate;
pub mod expiry;
pub mod explanation;
pub mod operation;
pub mod path;
pub mod receipt;
pub mod refusal;
pub mod transaction;
pub mod tree;
pub mod values;
pub mod watch;
pub mod write;
