//! Engine: a tree of nodes with sessions and watches, replicated as a state machine.

pub mod tree;
