//! Many nodes of DataFlagons with clients, faults and judges, in the simulator's light world.
//!
//! The engine is the one that hosts run. No host is around it: disks are maps, work takes no time,
//! and links lose and delay messages, but never divide the network. Nothing here grows with the
//! square of the nodes.
//!
//! | module | what it holds |
//! |---|---|
//! | [`shape`] | how large, with which parameters, under which faults |
//! | [`cluster`] | the nodes, and what happens to them |
//! | [`clients`] | who asks what, and what came of it |
//! | `content` | whether replicas have the same |
//! | `nodes` | what nodes store, and what gets lost |
//! | [`traffic`] | what they send, by kind |
//! | [`order`] | what each node delivers, and misses |
//! | [`reads`] | what reads should have returned |
//! | [`shown`] | what nodes show of themselves |

pub mod clients;
pub mod cluster;
mod content;
mod nodes;
pub mod order;
pub mod reads;
pub mod shape;
pub mod shown;
pub mod traffic;

pub use cluster::Cluster;
pub use shape::{Network, Shape};
