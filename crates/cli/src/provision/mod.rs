//! The birth of a cluster: ids, the secret, keyspaces with their first views, one directory a host.
//!
//! | module | what it holds |
//! |---|---|
//! | [`plan`] | [`Plan`]: what is asked for, drawn and written as directories |
//! | [`keyspace`] | a keyspace in one word |
//! | [`newcomer`] | [`Newcomer`]: a host that joins, and what it makes of what it is told |
//! | [`doors`] | [`Doors`]: where a host listens, and the file that says so |
//! | [`error`] | why a cluster was not written |

pub mod doors;
pub mod error;
pub mod keyspace;
pub mod newcomer;
pub mod plan;

pub use doors::{Doors, doors_of, write_addresses};
pub use error::ProvisionError;
pub use newcomer::Newcomer;
pub use plan::{Plan, host_directory, write};
