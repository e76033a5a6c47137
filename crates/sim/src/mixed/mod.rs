//! The world of one seed of a cluster with keyspaces of both engines.
//!
//! The machines are those of [`crate::world`], and what faults do to them. A host runs what the
//! server runs: the overlay, the catalog, and the lanes that the catalog opens: `registers`, of the
//! engine `linearizable`, and `siblings`, of the engine `causal`. Positions move as the catalog
//! decides. Clients of both kinds work at once, both judges judge, and both keyspaces must come to
//! rest.
//!
//! | module | what it holds |
//! |---|---|
//! | `world` | the event loop |
//! | `hosts` | what runs on a host, and whose a request or an answer is |
//! | `faults` | which faults both keyspaces bear |
//! | `keyspace` | the keyspace of siblings is created, and what hosts were told of it |
//! | `rest` | how it is told that all is quiet, and what must hold then |
//! | `ledger` | what was asked of whom, when, and how it ended |
//! | `section` | what a scenario says of the keyspaces |

mod faults;
mod hosts;
mod keyspace;
mod ledger;
mod rest;
mod section;
mod world;

pub use ledger::{Asked, End, Ledger};
pub use section::{MixedSection, REGISTERS, SIBLINGS};
pub use world::{World, Wraps};
