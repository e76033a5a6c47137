//! Tests of the parts together, in a small world of nodes, and of one node alone.

mod golden;
mod judge;
mod large;
mod limits;
mod nemesis;
mod node;
mod random;
mod small;
mod solo;
mod traps;
mod wire;
mod world;
