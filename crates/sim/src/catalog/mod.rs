//! The world of one seed of a cluster whose keyspaces come and go.
//!
//! The machines are those of [`crate::world`], and what faults do to them. A host runs the overlay
//! and the catalog, and no keyspace: what is judged is who may decide which there are.
//!
//! | module | what it holds |
//! |---|---|
//! | `world` | the event loop, and how it is told that all know the same |
//! | `hosts` | what runs on a host |
//! | `faults` | which faults are borne |
//! | `clients` | what operators order, and the history |
//! | `watch` | what hosts know of the chain, for the judge |
//! | `section` | what a scenario says of the orders |

mod clients;
mod faults;
mod hosts;
mod section;
mod watch;
mod world;

pub use section::CatalogSection;
pub use world::World;
