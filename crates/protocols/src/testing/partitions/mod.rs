//! A small world of machines over partitions: rings, replicas on hosts with disks, clients, and a
//! network that loses, doubles and delays what it carries. Faults are drawn from a seed, and end
//! before the world does.
//!
//! A [`Load`] says what clients ask. What clients saw comes back, and who wants to know more asks
//! the [`Witness`], which has seen what each partition has executed.
//!
//! | file | what it holds |
//! |---|---|
//! | `world.rs` | all there is, and how it goes on |
//! | `ring.rs` | a log that is agreed on, and its coordinator |
//! | `host.rs` | a replica and its disk |
//! | `client.rs` | commands in hand, each sent again until it is answered |
//! | `faults.rs` | what goes wrong, and who mends it |
//! | `met.rs` | what has happened |
//! | `witness.rs` | what was executed, and in which order that is one place's |

mod client;
mod faults;
mod host;
mod met;
mod ring;
mod witness;
mod world;

use crate::smr::partitioned::{Bucket, CommandId, Machine};
pub use met::Met;
use quorate_kernel::rng::Rng;
use std::vec::Vec;
pub use witness::{Key, Witness};
pub use world::World;

/// What clients ask.
pub trait Load<M: Machine> {
    /// What a client asks next; clients are counted from 0.
    fn asks(&mut self, client: usize, now_ms: u64, rng: &mut Rng) -> M::Command;

    /// A client is answered.
    fn hears(&mut self, _client: usize, _command: &M::Command, _output: &M::Output) {}

    /// What the first client asks when all else is answered: it changes nothing.
    fn last(&mut self, now_ms: u64) -> M::Command;

    /// Buckets that clients ask for: they move.
    fn buckets(&self) -> Vec<Bucket>;
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended<M: Machine> {
    /// It was answered.
    Answered {
        /// When.
        at: u64,
        /// What.
        output: M::Output,
    },
    /// Its client does not know: it was executed some time, or never.
    Unknown,
}

/// A command as its client saw it. No two times are the same.
#[derive(Clone, Debug)]
pub struct Seen<M: Machine> {
    /// Which: of several that were addressed one after the other, as objects had moved, the last.
    pub id: CommandId,
    /// What was asked.
    pub command: M::Command,
    /// When.
    pub asked: u64,
    /// How it ended.
    pub ended: Ended<M>,
}
