//! What a host has of a machine over partitions: members of rings, and replicas of partitions.
//!
//! [`crate::smr::partitioned`] says how a partition executes what its rings decide, and
//! [`crate::multicast`] in which order; both are fed by hand. Here the rings are logs of
//! [`crate::vsr`], hosts send what replicas say, and all that must be is stored. A pure state
//! machine as those are: a lane of an engine calls [`Hosted`], and hands on what it asks for
//! ([`carry_out`]).
//!
//! # Promise
//! That of [`crate::smr::partitioned`]: all partitions together are linearizable, and each command
//! takes effect once. It is there as long as a majority of each ring's members keeps what it has
//! stored; a majority of each ring, and one replica of each partition that a command touches, can
//! be reached for it to go on; and no replica stays away for long (see the limits).
//! - What is answered was decided durably by a majority of its ring's members. What it read of
//!   other partitions rests on their majorities: the same is found whoever executes it again.
//! - That a replica has released what others keep for it leaves after what it has received is
//!   durable here ([`Kept`](crate::smr::partitioned::Kept)), with the command that it was for.
//! - A ring's log lets go of nothing that a replica would have to ask for and would find nowhere.
//!
//! # Roles
//! ```text
//!  client's host ── Order ─▶ primary of the command's ring ─▶ log of the ring (vsr)
//!                                                                    │ decided
//!        log of the partition's ring, here ──┐                       ▼
//!        log of the ring of all ─────────────┴▶ replica of a partition ◀─ Peers ─▶ other ones
//!            here, or: ── Follow ─▶ a member           │
//!                      ◀─ Decided ──                   └─ Answered ─▶ client's host
//! ```
//! - Members of a partition's ring are the replicas of that partition. The ring of all has members
//!   of its own; a replica whose host is none of them follows one.
//! - The primary of a partition's ring is its designated replica: it signals, and it answers. Who
//!   waits for another's signal asks all replicas of that partition after 50 ms.
//! - A ring that has nothing to decide skips by demand ([`crate::multicast::Pace::Demand`]): a
//!   replica says what it lacks ([`Message::Lacks`]).
//! - A question of one partition is answered by its primary by read index, and goes into no log
//!   (`reads.rs` says why that is linearizable).
//! - Commands are sent again until they are answered: what was lost with a primary, or left out as
//!   there was no room, comes again, and is executed once.
//!
//! # What leaves when
//! | message | rests on |
//! |---|---|
//! | `Log` | what [`crate::vsr`] says of each |
//! | `Order`, `Lacks`, `Follow`, `GetCopy`, `Leads` | nothing |
//! | `Decided`, `Copy`, `Answered`, signals and hashes | what majorities of rings have decided |
//! | `Holds`, `Released` | all that was written before |
//!
//! # What logs let go of
//! A member of a partition's ring forgets positions that its own replica has stored: each member
//! has a replica, so it is as if the log had stored the state itself. A member of the ring of all
//! forgets what a majority of the replicas of *each* partition has stored (`Holds`). Whoever lacks
//! what is gone copies the state of another replica of its partition, one that has come to what is
//! left ([`Message::GetCopy`]). With less than a majority that one could be lost, and nothing would
//! bring its partition past the gap.
//!
//! # Invariants
//! - What a replica has learned of a ring is a prefix of the ring's log.
//! - Head and objects of a partition are stored in one batch, and are of one moment.
//! - Nobody goes back by a copy.
//!
//! # Known limits
//! - No engine stands on it yet.
//! - Who replicates a partition, and who the members of the ring of all are, does not change. If it
//!   did, a replica that leaves would have to keep its state until a majority of those that come
//!   has stored as much of the ring of all as it has said to hold: the log may have let go of that.
//! - Data is durable before it is acknowledged (`sync`): a node that forgets is none of these.
//! - Objects do not move between partitions: a [`Switch`](crate::smr::partitioned::Switch) is put
//!   into no log.
//! - What a replica that stays down has not released is kept for it, up to a bound; from there on
//!   no command of several partitions begins, anywhere.
//! - A command that waits for long is decided again each time that it is sent again, and nothing of
//!   that is let go of meanwhile: logs grow while a partition is blocked, by each open command six
//!   times a minute.
//! - Questions of several partitions are ordered as commands are.
//! - A copy is in memory whole, at both ends; so is the head of what is stored, without objects.
//! - The primary alone answers, so a command waits for it; if it fails its client asks again.
//!
//! | file | what it holds |
//! |---|---|
//! | `host.rs` | a host, and its turns |
//! | `hears.rs` | the one match on messages |
//! | `ring.rs`, `slots.rs`, `decided.rs` | a ring's log: its primary, what it makes of it, its entries |
//! | `partition.rs` | a replica: what it learns and stores |
//! | `copy.rs` | copies for who lacks what is gone |
//! | `reads.rs` | questions that are not ordered |
//! | `orders.rs` | commands of a host's clients, until they are answered |
//! | `letters.rs`, `frames.rs` | what replicas say in a turn, put together |
//! | `message.rs`, `action.rs`, `keys.rs` | what is sent, asked for and stored |

mod action;
mod copy;
mod decided;
mod frames;
mod hears;
mod host;
mod keys;
mod letters;
mod message;
mod orders;
mod partition;
mod reads;
mod ring;
mod slots;
#[cfg(test)]
mod tests;

pub use action::{Action, Context, Left, carry_out};
pub use host::{Hosted, Settings};
pub use keys::OBJECT_KEY_BYTES_MAX;
pub use message::{Message, Wants};
