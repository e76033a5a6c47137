//! Verbs about a running cluster: what it has, who takes part, and how it is.

pub mod keyspace;
pub mod membership;
pub mod ring;
pub mod secret;
pub mod shutdown;
pub mod status;
