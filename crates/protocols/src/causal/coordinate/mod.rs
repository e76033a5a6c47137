//! What a node does for the clients that ask it: gets, puts and deletes, with and without a
//! context, and what it asks of replicas for them.

mod forward;
pub(crate) mod get;
mod merged;
pub(crate) mod operations;
pub(crate) mod plain;
mod put;
pub(crate) mod remembered;
mod repair;
pub(crate) mod seen;
