//! The birth of a cluster: ids, the secret, keyspaces with their first views, one directory a host.
//!
//! | module | what it holds |
//! |---|---|
//! | [`plan`] | [`Plan`]: what is asked for, drawn and written as directories |
//! | [`keyspace`] | a keyspace in one word |
//! | [`invitation`] | [`Invitation`]: what a host that joins is told, and makes of it |
//! | [`secret`] | the cluster's secret as text, and the file of it |
//! | [`doors`] | [`Doors`]: where a host listens, and the file that says so |
//! | [`error`] | why a cluster was not written |

pub mod doors;
pub mod error;
pub mod invitation;
pub mod keyspace;
pub mod plan;
pub mod secret;

pub use doors::{Doors, doors_of, write_addresses};
pub use error::ProvisionError;
pub use invitation::{Invitation, Newcomer, context_key};
pub use plan::{Plan, host_directory, write};
