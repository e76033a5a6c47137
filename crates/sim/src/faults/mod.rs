//! What goes wrong: faults as data and how a seed draws them, forged frames, and planted bugs.

pub mod fault;
pub mod forger;
pub mod nemesis;
pub mod plant;
