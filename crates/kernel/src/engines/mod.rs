//! Engines as values, and the keyspaces that they serve: what each can do, and what can be set.

pub mod engine;
pub mod keyspace;
pub mod lacking;
pub mod rules;
