//! What somebody writes to have it replicated.

use super::execution::Execution;
use core::fmt::Debug;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Data that goes into logs, stores and messages.
pub trait Plain: Clone + Debug + PartialEq + Serialize + DeserializeOwned {}

impl<T: Clone + Debug + PartialEq + Serialize + DeserializeOwned> Plain for T {}

/// A deterministic machine: what a command does depends on the objects, on the command and on the
/// entry's time, and on nothing else.
pub trait Machine: Debug + Sized {
    /// What is asked.
    type Command: Plain;
    /// What the state is made of.
    type Object: Plain;
    /// What is answered.
    type Output: Plain;
    /// What happens, for whoever follows it.
    type Change: Plain;

    /// The objects before the first command.
    fn begin() -> impl Iterator<Item = (bytes::Bytes, Self::Object)>;

    /// Executes a command. Everything that it writes takes effect when it ends.
    fn execute(command: &Self::Command, on: &mut Execution<'_, Self>) -> Self::Output;

    /// What the state keeps of an answer until its client has it, if that is less than the answer,
    /// and about how many bytes the whole has. That is told as long as a replica knows it, and what
    /// is kept where it knows it no more.
    fn kept(_command: &Self::Command, _answer: &Self::Output) -> Option<(Self::Output, usize)> {
        None
    }

    /// About how many bytes an object takes.
    fn bytes(object: &Self::Object) -> usize;

    /// About how many bytes a change takes: the same at each replica.
    fn change_bytes(change: &Self::Change) -> usize;

    /// Whether a command of a peer may be put into the log: one that this version cannot execute
    /// may not, nor one that no correct peer makes.
    fn is_sound(command: &Self::Command) -> bool;
}
