//! What a world begins with.

use std::string::String;
use std::vec::Vec;

/// How a world is set up.
#[derive(Clone, Default)]
pub struct Setup {
    /// How many nodes the first view has.
    pub members: u64,
    /// How many nodes know the first view and are not in it.
    pub spares: u64,
    /// Whether data is kept in memory alone.
    pub is_memory: bool,
    /// Whether data is synced later than it is acknowledged. A node that forgot has what was
    /// synced.
    pub is_periodic: bool,
    /// The first token of the one group's range. Without it the group has the whole ring; with
    /// it there is room below for the hosts' tokens, so that the ring asks for no split.
    pub first: Option<u64>,
    /// For the engine.
    pub options: Vec<String>,
}
