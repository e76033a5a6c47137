//! Building block: one order of events among very many nodes, with high probability.
//!
//! From M. Matos, H. Mercier, P. Felber, R. Oliveira, J. Pereira, "EpTO: An Epidemic Total Order
//! Algorithm for Large-Scale Distributed Systems" (Middleware 2015), as J. Ribeiro, N. Machado, F.
//! Maia, M. Matos, "Totally Ordered Replication for Massive Scale Key-Value Stores" (DAIS 2018),
//! §2.3, uses it. Nobody knows everybody, nobody leads, and nothing is agreed on: each node relays
//! for TTL rounds what it hears, and delivers an event when it is so old that everybody has it.
//!
//! # Promise
//! - *Order*, always: each node delivers events in the order of their keys, each at most once. So
//!   any two nodes deliver what both deliver in the same order.
//! - *Integrity*, always: what is delivered was broadcast, with that payload.
//! - *Agreement*, with high probability: what one node delivers all do. A node that misses an event
//!   has a *hole*. It never fills it by itself, but it says so: [`Action::Hole`], [`Action::Late`]
//!   and [`Action::Gap`].
//!
//! # The algorithm
//! ```text
//! broadcast:  clock += 1;  event (clock, me) with ttl 0 goes into the next ball
//! on a ball:  clock = max;  copies with ttl < TTL go into the next ball, and wait to be delivered
//! each round: all ttl += 1;  the ball goes to K random peers;
//!             events with ttl > TTL + 1 are delivered, up to the first that is younger
//! ```
//! # Departures
//! - Keys are compared as a whole, everywhere. By time alone, as published, two events of one time
//!   may be delivered in different orders at different nodes.
//! - A ttl counts rounds, never hops: the round in which a copy came does not count. As published,
//!   each hop adds one and the highest wins, so where balls are much faster than rounds an event is
//!   old at once, and delivered long before TTL rounds have passed.
//! - A copy with ttl ≥ TTL moves the clock and does nothing else: whoever knows the event has no
//!   use for it, and for others it comes too late.
//! - TTL travels in each event. Nodes whose parameters differ still agree on when it is stable.
//! - Payloads travel apart. Balls name them by a digest, and each node pulls each of them once, of
//!   a peer that has it. An event whose payload is missing when its turn comes holds the others
//!   back for some rounds; then it is a hole.
//! - A clock that is far ahead is not followed (`clock.rs`).
//! - Who has stood still for more than three quarters of TTL rounds has lost its place. So has
//!   every node that starts: it relays, listens, and takes over somebody's state before it
//!   delivers.
//!
//! # Known limits
//! - Latency is TTL + 2 rounds at least, whatever the load. A round must be longer than nearly all
//!   balls take.
//! - While the network is divided both sides go on, each in an order of its own. When it heals,
//!   what the other side has ordered comes late: nothing is delivered twice or out of order, but
//!   each side has holes. A node that was cut off alone cannot tell that from silence.
//! - Nodes are believed, but for their clocks. There is no defence against lies.
//! - What a node broadcasts in its last round before it stops may be lost, or delivered everywhere.
//!
//! | file | what it holds |
//! |---|---|
//! | `node.rs` | one node: what it broadcasts, and does in each round |
//! | `hear.rs` | what it does with what it hears |
//! | `place.rs` | whether it has a place in the order |
//! | `key.rs`, `event.rs` | names of events and their order; events, balls |
//! | `parameters.rs` | K and TTL for a cluster of some size |
//! | `clock.rs` | the logical clock, and what it does not believe |
//! | `relay.rs` | what goes into the next ball |
//! | `order.rs` | what waits, and when it is delivered |
//! | `sources.rs` | each source's count of its events, which shows holes |
//! | `payloads.rs` | what is pulled, held, and kept for others |
//! | `message.rs`, `action.rs` | what nodes say to each other; what the caller is asked and told |

mod action;
mod clock;
mod event;
mod hear;
mod key;
mod message;
mod node;
mod order;
mod parameters;
mod payloads;
mod place;
mod relay;
mod sources;
#[cfg(test)]
mod tests;

pub use action::{Action, BroadcastError, Counters, Horizon, ResumeError};
pub use event::{Ball, Copied, Digest, Event};
pub use key::{EventKey, LogicalTime, Sequence};
pub use message::{Message, Payloads};
pub use node::Epto;
pub use order::STABLE_AFTER;
pub use parameters::{Parameters, Scale};
