//! What somebody writes to have it partitioned and replicated.

use super::execution::{Execution, Wait};
use super::partitions::Partitions;
use super::placement::{Bucket, Placement};
use crate::smr::machine::Plain;
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt::Debug;

/// A deterministic machine whose objects are spread over partitions: what a command does depends on
/// the objects and on the command, and on nothing else. The type is a name only: one without values
/// will do, with the traits derived.
pub trait Machine: Clone + Debug + PartialEq {
    /// What is asked.
    type Command: Plain;
    /// What the state is made of.
    type Object: Plain;
    /// What is answered.
    type Output: Plain;

    /// The bucket of an object, always the same for the same key: buckets are what partitions have,
    /// and what is moved between them. None if all partitions have the object.
    fn bucket(key: &[u8]) -> Option<Bucket>;

    /// The objects before the first command, of all partitions.
    fn begin() -> impl Iterator<Item = (Bytes, Self::Object)>;

    /// The oracle (the paper's `getDestinations`): the partitions of all objects that the command
    /// may read or write; all of them if it may write an object that all hold. More than are needed
    /// cost time; one too few, and the command does nothing and is answered
    /// [`super::Answered::Outside`].
    fn destinations(_command: &Self::Command, placement: &Placement) -> Partitions {
        placement.partitions()
    }

    /// Objects that the command will read, as far as that is known before it is executed (the
    /// paper's `getLocalObjects`): their holders send them at once.
    fn early(_command: &Self::Command) -> Vec<Bytes> {
        Vec::new()
    }

    /// Whether a command changes nothing, whatever it finds: such a one need not be ordered where
    /// somebody knows what it must show.
    fn is_question(_command: &Self::Command) -> bool {
        false
    }

    /// Executes a command, as if all objects were here. Where `?` hands back a [`Wait`] it ends,
    /// and begins anew when the object has come; so what it does is done to `on` alone.
    fn execute(command: &Self::Command, on: &mut Execution<'_, Self>)
    -> Result<Self::Output, Wait>;

    /// About how many bytes an object takes.
    fn bytes(object: &Self::Object) -> usize;

    /// Whether a command of a peer may be put into a log: one that this version cannot execute may
    /// not, nor one that no correct peer makes.
    fn is_sound(command: &Self::Command) -> bool;
}
