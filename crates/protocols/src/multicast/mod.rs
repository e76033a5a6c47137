//! Building block: one order of commands over the logs of several partitions.
//!
//! From P. Marandi, M. Primi, F. Pedone, "Multi-Ring Paxos" (DSN 2012), as C. E. Bezerra, F.
//! Pedone, R. van Renesse, "Scalable State-Machine Replication" (DSN 2014), §V-A4, uses it: each
//! partition has a *ring*, any log that is agreed on, and there is one more ring for the commands
//! of several partitions. A replica learns the ring of its partition and that common one, and
//! merges them.
//!
//! # Promise
//! Atomic multicast (the second paper's §II). What is decided in a ring is delivered once by each
//! replica that learns the ring, and any two replicas deliver what both of them deliver in the
//! same order. There is one order of all that is ever decided, so no cycle either.
//!
//! # The order
//! Each decision takes one *slot* of its ring, whatever it carries, or skips some. An entry that a
//! log makes for itself, such as a change of its members, takes one too: positions have no holes,
//! and slots follow from them. Decisions are
//! delivered by slot, and those of one slot by ring, that of all partitions last. Both follow from
//! the rings alone: when a replica learns something, or how fast, changes nothing.
//!
//! # Pacing
//! A ring without commands holds the others back, as nothing says that its next slots are empty.
//! So its coordinator decides *skips* ([`Pacer`]; it counts what the log has taken, so what the log
//! refuses is asked for again), in one of two ways ([`Pace`]):
//! - by time, as the first paper has it: each period Δ it skips up to what a rate λ would have
//!   filled by now. A command waits for Δ at most, and never less when other rings are idle. A ring
//!   that is far behind skips up to what waits in others.
//! - by demand: a replica that something waits in asks the ring for which it waits
//!   ([`Merge::lacking`]). The common ring stays far ahead of the others, so that nothing waits for
//!   it; where it decides commands, the others skip up to them.
//!
//! Skips are for progress alone. However wrong a clock, a rate or a question is, the order is one.
//!
//! # Known limits
//! - Rings are given. Who is in them, and how coordinators change, is [`crate::vsr`]'s.
//! - The rings that a replica learns do not change.
//! - The merge takes all that it is fed. Whoever feeds it one ring while another one lacks slots
//!   bounds how much waits; [`crate::smr::partitioned`] does.
//! - Which positions of a ring's log may be forgotten is the log's business: those before the
//!   cursor that a replica has stored ([`Merge::cursor`]) it never asks for again.
//!
//! | file | what it holds |
//! |---|---|
//! | `decision.rs` | what one position of a ring's log is |
//! | `merge.rs` | the order, at one replica |
//! | `pacing.rs` | when a ring's coordinator skips |

mod decision;
mod merge;
mod pacing;
#[cfg(test)]
mod tests;

pub use decision::{Decision, RingId, SKIP_MAX, Slot};
pub use merge::{Cursor, Delivered, Lacking, Merge, Reached};
pub use pacing::{AHEAD, Pace, Pacer};
