//! Many nodes with a roll each, faults and a judge, in the simulator's light world.
//!
//! The state machine is [`quorate_protocols::membership::Roll`]. No host is around it: work, syncs
//! and the network cost what [`costs`] says, and nobody restarts.
//!
//! | module | what it holds |
//! |---|---|
//! | [`alerts`] | members that hear of failures, without a network |
//! | [`costs`] | what work is assumed to cost |
//! | `node` | a roll as a lane of its own |
//! | `machines` | what nodes run on, what gets lost, and who looks on |
//! | [`cluster`] | the nodes, and what happens to them |

pub mod alerts;
pub mod cluster;
pub mod costs;
mod machines;
mod node;

pub use cluster::Cluster;
pub use machines::Loss;
