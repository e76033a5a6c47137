//! Every protocol: pure, deterministic state machines over the kernel's contract.
//!
//! Building blocks come first, then the engines; an engine imports the kernel and building blocks,
//! never another engine.
//!
//! | module | what it is |
//! |---|---|
//! | [`quorum`] | consistent quorums as pure functions |
//! | [`gossip`] | random neighbours, and news of hosts that everybody hears |
//! | [`detector`] | the ping failure detector |
//! | [`ring`] | pointers to neighbours on the ring, and one ring again after a partition |
//! | [`overlay`] | the lane that composes these: who is there, and who is suspected |
//! | [`order`] | where keys lie on the ring |
//! | [`placement`] | which nodes should hold a range, and the next step there |
//! | [`catalog`] | the lane that knows which keyspaces there are: a chain of decrees |
//! | [`events`] | the lane that tells clients what happens to keyspaces and hosts |
//! | [`pacing`] | background work at the pace that clients leave it |
//! | [`reconfigure`] | consensus on the next view of a group |
//! | [`membership`] | the roll: who takes part, in numbered configurations that all agree on (Rapid) |
//! | [`roll`] | the lane that keeps it |
//! | [`vsr`] | one log on several nodes, for a state machine (Viewstamped Replication) |
//! | [`multicast`] | one order of commands over the logs of several partitions (Multi-Ring Paxos) |
//! | [`slices`] | nodes that divide themselves into groups, by position and hearsay (DataFlasks) |
//! | [`epto`] | one order of events among very many nodes, with high probability (EpTO) |
//! | [`dots`] | clocks, contexts and objects whose updates have names (DottedDB) |
//! | [`sealed`] | bytes that clients carry from host to host, signed |
//! | [`engines`] | the list of engines |
//! | [`linearizable`] | engine: every key an atomic register (CATS) |
//! | [`causal`] | engine: concurrent values are kept, nothing is lost (DottedDB) |
//! | [`epidemic`] | engine, not in the list yet: very many nodes, one probable order (DataFlagons) |
//! | [`serializable`] | engine, its heart so far: transactions over replicated groups (SCONEKV) |
#![no_std]

extern crate alloc;
#[cfg(any(test, feature = "testing"))]
extern crate std;

pub mod catalog;
pub mod causal;
pub mod coordination;
pub mod detector;
pub mod dots;
pub mod engines;
pub mod epidemic;
pub mod epto;
pub mod events;
pub mod gossip;
pub mod groups;
pub mod linearizable;
pub mod membership;
pub mod multicast;
pub mod order;
pub mod overlay;
pub(crate) mod pacing;
pub mod placement;
pub mod quorum;
pub(crate) mod recent;
pub mod reconfigure;
pub mod ring;
pub mod roll;
pub mod sealed;
pub mod serializable;
pub mod slices;
pub mod smr;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod vsr;
