//! Load over ZooKeeper's wire, for this product's servers and for ZooKeeper's in turn.

pub(crate) mod args;
pub(crate) mod ensemble;
pub(crate) mod failover;
pub(crate) mod frames;
pub(crate) mod idle;
pub(crate) mod nodes;
pub(crate) mod table;
