//! Scenarios: worlds as data, the engines that they can name, and those that ship.

pub mod keyspace;
pub mod prepared;
pub mod scenario;
pub mod shipped;
