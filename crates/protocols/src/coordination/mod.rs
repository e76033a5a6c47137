//! Engine: a linearizable tree of nodes with sessions, ephemeral nodes and watches.
//!
//! From C. E. Bezerra, F. Pedone, R. van Renesse, "Scalable State-Machine Replication" (DSN 2014):
//! its service Volery, with the words of ZooKeeper's clients. The tree is a deterministic machine
//! ([`tree`]) that the building block [`crate::smr`] replicates over one log ([`crate::vsr`]).
//!
//! ```text
//! client ─▶ host, its gateway ── Ask ──▶ primary     commands and questions of a turn, and that
//!                             ◀─ Told ──                    the host is there; changes and answers
//! primary ── Log ──▶ members                         one entry for all commands of a turn
//! members ◀─ Applied ── primary                      how far the tree is, for who reads here
//! host    ◀─ Leads ──                                a hint of where the primary is
//! ```
//!
//! # What it promises
//! - All that clients are told is as if it were done one after the other, and what had ended before
//!   something began comes first: also questions, whichever host is asked.
//! - What one session asks is done in the order in which it is asked.
//! - A client is told of a change that it follows before it is told anything that shows the change,
//!   and of each such change once, also when another host leads in between.
//! - Where that is so set, what sessions read may be older, in their order (`gateway/here.rs`).
//! - An ephemeral node is there as long as its session, and no longer.
//! - A command takes effect once. Who was told that its outcome is unknown may find either.
//!
//! # Sessions
//! A session is at one gateway, which knows when its client was last heard, and asks for its end
//! when it was silent for too long. If the gateway itself is silent for as long, the primary does.
//! Both are guarded by how often the session was attached: one that is at another gateway by then
//! goes on. A gateway that has not heard of the primary for two thirds of a session's time-out ends
//! its client's connection, so that the client looks elsewhere in time. What a client waits for
//! that looks elsewhere is withdrawn. Both judge silence as of the last tick: what had come by then
//! was heard, also where a host was halted. A gateway judges as of when its host had read all that
//! clients had sent, if that was earlier, and time in which nobody is read does not count.
//!
//! # When data is lost
//! Below durability `sync` members may lose what was acknowledged. The group goes on with what is
//! left, in another *life* of the tree. Whoever counts says in which life: a gateway that has asked
//! in an earlier one ends its connections, and begins anew behind what is left of its commands.
//! Changes of a later life have numbers above all of earlier ones, and sessions of earlier lives
//! are over.
//!
//! # Known limits
//! - One partition: the tree is one group of hosts.
//! - An answer of a read in front of a command is kept in memory alone if it is large. If it was
//!   lost on its way, and the primary has started or copied the tree since, it is not known any
//!   more, and its client's connection ends. So does it if a host takes such answers so slowly that
//!   changes behind them would be forgotten.
//! - Who is cut off from the primary's majority is served nothing, not even old state, but what
//!   sessions read where that is so set.
//! - A host whose clock is ahead moves the tree's time ahead, for as long as it leads and after:
//!   nodes with a time to live end early.
//!
//! # Departures from the paper
//! - One partition: commands need no other partition's variables, so no signals are exchanged.
//! - Reads are no commands: they are answered by who leads when a majority has confirmed it after
//!   they were asked (read index). They cost no entry of the log and are linearizable all the same.
//!   Those in front of a command of their session are commands, so that it need not wait for their
//!   answers (`gateway/ahead.rs`).
//! - Clients do not multicast: the host that a client is connected to numbers its commands, so that
//!   each takes effect once whoever leads.
//!
//! | file | what it holds |
//! |---|---|
//! | `tree/` | the tree as a deterministic machine |
//! | `partitioned/` | the same over several partitions, on which the engine does not stand yet |
//! | `gateway/` | sessions, what clients of a host have asked, and what they follow |
//! | `primary/` | what gateways ask, and are told |
//! | `hosted.rs`, `seat.rs` | the group here: its log, its machine, its seat |
//! | `state.rs`, `recover.rs` | what a host holds of a keyspace; how it starts |
//! | `message.rs`, `engine.rs`, `timer.rs` | frames and inputs |
//! | `keys.rs` | what is stored |
//! | `values.rs` | keys of clients as paths |
//! | `parts.rs` | who holds what, for operators |

mod engine;
mod gateway;
mod hosted;
pub mod keys;
mod message;
pub mod partitioned;
mod parts;
mod primary;
mod recover;
mod rules;
mod seat;
mod state;
#[cfg(test)]
mod tests;
mod timer;
pub mod tree;
mod values;

pub use message::{GatewayAsks, GatewayNews, Message, News};
pub use rules::{ENGINE, NODE_BYTES_MAX};
use state::{Context, GROUP};
pub use state::{Coordination, Settings, lane};
