//! A machine whose objects are spread over partitions, each replicated by nodes of its own.
//!
//! From C. E. Bezerra, F. Pedone, R. van Renesse, "Scalable State-Machine Replication" (DSN 2014),
//! §IV and §V-A: S-SMR and its library Eyrie. Commands are ordered by [`crate::multicast`]. Each is
//! executed by all partitions that it touches. They exchange what it reads, and none ends it before
//! all of them have come to it; so all partitions together are linearizable, although no order of
//! all commands is ever made by anybody.
//!
//! # Promise
//! - Replicas of a partition have the same objects after the same commands.
//! - A command takes effect at all of its partitions or at none, and once, however often it is sent
//!   (numbers of a client are [`OUTSTANDING_MAX`] apart at most).
//! - Execution atomicity (§IV-A): when a command ends at one partition, some replica of each other
//!   one has executed all that comes before it there. What clients see is linearizable.
//! - As long as one replica of each partition goes on, and the rings do, nothing is stuck, whatever
//!   messages are lost. If all of a partition are down, commands of it wait, and what comes behind
//!   them.
//!
//! # Roles
//! A [`Machine`] is what somebody writes; `examples/accounts` is one, and `docs/eyrie.md` goes
//! through it. The host of a [`Replica`] feeds it positions of two logs,
//! that of its partition and that of all ([`Replica::learn`]), and messages of replicas of other
//! partitions; it does what the [`Effect`]s say, and stores a [`Snapshot`] now and then. Signals
//! are no part of the logs: a replica that waits for one inside a command could not read it behind
//! that command.
//!
//! ```text
//!  log of P ──┐              ┌── signal, variables ──► other partitions of the command
//!             ├─ merge ─ head┤◄─ signal, variables ─── their designated replicas, or any one asked
//!  log of all ┘              └── answer ─────────────► client
//! ```
//!
//! # A command of several partitions
//! 1. At the head of P's order P signals it to its other partitions, with objects that the machine
//!    knows early. A command that P has executed already, or that is of an earlier start of its
//!    client, is refused in the signal; what one partition refuses none executes.
//! 2. P runs it. Of its own objects those that are read go to the others. At an object of another
//!    partition that is not here the run ends, and begins anew when it is.
//! 3. When all of its partitions have signalled, P applies what the command wrote of P's objects.
//!
//! The designated replica sends. Whoever waits asks all replicas of a partition
//! ([`Message::Needs`]), each of which keeps what it has signalled until all replicas of the others
//! say that they have it durably ([`Message::Released`]), each for the start that it is in.
//!
//! # Moved objects
//! Which partition has what is a table that all have ([`Placement`]). A [`Switch`] in the log of
//! all changes it; partitions come and go by it. A command that was addressed by another table does
//! nothing and is answered so ([`Answered::Retry`]).
//!
//! # Caches
//! A replica may keep copies of what it has read of others ([`Caching`], §IV-C). A copy counts if
//! the holder says so, within the command: so what clients see is the same with them.
//!
//! # Invariants
//! - What a partition signals of a command follows from what was delivered: all its replicas would
//!   say the same. With speculation one may send more than is needed, and that is as true.
//! - No command ends, and is answered, on a copy that its holder has not validated for it.
//! - An object is sent as the command finds it, also when it is asked for later.
//! - No effect of a command is there before it ends, and all of them are then.
//! - What a replica has released it has durably, or has executed into a snapshot that is; a copy of
//!   it is not behind that. So nothing that a copy needs is gone, unless an earlier start of who
//!   takes it, or nobody that others knew of, was thought to have it.
//! - What waits behind a command is bounded ([`WAITING_BYTES_MAX`]); the ring whose turn it is has
//!   room always.
//!
//! # Known limits
//! - No engine stands on it yet: [`crate::coordination`] serves one partition. Its tree is a
//!   machine here ([`crate::coordination::partitioned`]). What hosts need of rings, disks and
//!   messages is in [`crate::smr::hosted`].
//! - Objects move with the switch itself, while commands of its partitions wait: nothing is copied
//!   before. So few buckets are moved at a time, no more than others keep ([`OUTBOX_BYTES_MAX`]).
//! - An object is held by one partition or by all of them, none by some.
//! - A partition that has nothing any more goes on until its clients are answered, it keeps nothing
//!   for the others, which may have what it gave away nowhere else, and they keep nothing for it.
//!   Whose replicas these are is for others to decide, as is what moves.
//! - A replica that is down, and is still one ([`Replica::set_layout`]), is waited for when others
//!   have kept [`OUTBOX_BYTES_MAX`] for it.
//! - A node that has lost what it stored goes on from a copy ([`Replica::copy`]), and takes a later
//!   one if what it needs is gone ([`Effect::Lost`]).
//! - No parts of objects (§V-A1, `getDiff`): what is not cached is brought whole.
//! - No time, no changes that are told, no scans but of what all partitions have: a command reads
//!   and writes objects by their keys.
//! - Reads are ordered as all commands are, but for what a host asks of one partition when it knows
//!   what the answer must show ([`Replica::look`]).
//! - Snapshots are whole, and objects in memory.
//! - Replicas of a partition compare hashes of their states ([`COMPARED_EVERY`]), and halt if they
//!   differ. Which of them is right nobody finds out; when all have halted the partition is down.
//!
//! | file | what it holds |
//! |---|---|
//! | `machine.rs` | what somebody writes |
//! | `partitions.rs` | partitions, and who replicates them |
//! | `placement.rs` | which partition has what, and how that changes |
//! | `command.rs` | what logs carry |
//! | `execution.rs` | what a command sees, and leaves |
//! | `head.rs` | how a command is executed |
//! | `look.rs` | questions that are not ordered |
//! | `replica.rs` | what a replica learns, and asks for |
//! | `peers.rs` | what others say to it |
//! | `exchange.rs` | what partitions say to each other |
//! | `outbox.rs` | what they may be asked again |
//! | `caches.rs` | copies of others' objects |
//! | `digest.rs` | what replicas of a partition compare |
//! | `clients.rs` | each command once |
//! | `state.rs` | what is stored |

mod caches;
mod clients;
mod command;
mod digest;
mod exchange;
mod execution;
mod head;
mod machine;
mod outbox;
mod partitions;
mod peers;
mod placement;
mod replica;
mod state;
#[cfg(test)]
pub(crate) mod tests;

pub use caches::{CACHE_BYTES_MAX, Cached, Caching, Version};
pub use clients::OUTSTANDING_MAX;
pub use command::{Addressed, Answered, Batch, CommandId, Ordered, Place, may_order};
pub use digest::{COMPARED_EVERY, Differs, StateHash};
pub use exchange::{ANSWER_BYTES_MAX, EARLY_BYTES_MAX, Message, NEEDS_MAX, Signal};
pub use execution::{Execution, Variables, Wait};
pub use machine::Machine;
pub use outbox::OUTBOX_BYTES_MAX;
pub use partitions::{Holder, Layout, PARTITIONS_MAX, PartitionId, Partitions, ReplicaId};
pub use placement::{BUCKETS, Bucket, Placement, Switch};
pub use replica::{Effect, Replica, WAITING_BYTES_MAX};
pub use state::{Kept, Snapshot};
