//! What one entry of the log carries: the commands that one turn of the primary brought.

use super::machine::Machine;
use super::sized::sized;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::Incarnation;
use serde::{Deserialize, Serialize};

/// The first byte of an entry: which version has written it.
const VERSION: u8 = 1;
/// The most commands of one entry.
pub const COMMANDS_MAX: usize = 4096;

/// The commands of one turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Entry<M: Machine> {
    /// The primary's wall clock in milliseconds since 1970. Executed as the latest so far.
    pub at_ms: u64,
    /// Whose, and which. In this order they are executed.
    pub parts: Vec<Part<M>>,
}

/// Commands of one client, or of the primary itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Part<M: Machine> {
    /// Whose they are. None are the primary's own: nobody waits for them, and to execute them twice
    /// must do no harm.
    pub from: Option<Origin>,
    /// The commands. None at all say only which answers the client has, or waits for no more.
    pub commands: Vec<M::Command>,
}

/// A client's place in its own order of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The client: a host in one of its starts. Later starts take the place of earlier ones.
    pub client: Incarnation,
    /// The number of the first command; those of a client count from 1.
    pub first: u64,
    /// The client has the answers of all commands up to here.
    pub acked: u64,
}

impl<M: Machine> Entry<M> {
    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        sized(&[VERSION], self)
    }

    /// Reads an entry of a peer's log, or of the own one; none if it is none.
    #[must_use]
    pub fn of(bytes: &Bytes) -> Option<Entry<M>> {
        let (&VERSION, rest) = bytes.split_first()? else { return None };
        let (entry, rest) = postcard::take_from_bytes::<Entry<M>>(rest).ok()?;
        let count: usize = entry.parts.iter().map(|part| part.commands.len()).sum();
        let commands = || entry.parts.iter().flat_map(|part| &part.commands);
        let is_sound = rest.is_empty() && count <= COMMANDS_MAX && commands().all(M::is_sound);
        is_sound.then_some(entry)
    }
}
