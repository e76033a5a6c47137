//! The world of one seed of a keyspace of the engine `causal`.
//!
//! The machines are those of [`crate::world`], and what faults do to them; so is the node with its
//! gate. There is no overlay: a **catalog** outside of the hosts decides who holds which position,
//! tells some hosts, and lets the others hear of it. Clients keep contexts, old ones too, and carry
//! them from host to host.
//!
//! | module | what it holds |
//! |---|---|
//! | `world` | the event loop |
//! | `hosts` | what runs on a host |
//! | `engines` | which engine it is |
//! | `faults` | which faults are borne, and the catalog that replaces hosts |
//! | `clients` | what clients ask, and the history |
//! | `section` | what a scenario says of the keyspace |
//! | `shown` | operations and outcomes in words |
//! | `rest` | how it is told that all is quiet, and what must hold then |

pub(crate) mod clients;
mod engines;
mod faults;
mod hosts;
pub(crate) mod rest;
mod section;
mod shown;
mod world;

pub use section::{AntiEntropy, CausalSection};
pub use world::World;
