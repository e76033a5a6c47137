//! The engine in a small pure world: nodes, messages that take time, faults, and a judge.

mod calm;
mod changes;
mod copies;
mod entry;
mod far;
mod faults;
mod golden;
mod growth;
mod holes;
mod joining;
mod judge;
mod listings;
mod names;
mod tokens;
mod traps;
mod wire;
mod world;
