//! The tree as a deterministic machine.

mod command;

pub use command::{Answer, Change, Command, Question, Who};
