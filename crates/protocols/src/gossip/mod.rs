//! Gossip: random neighbours, and news of hosts that everybody hears.
//!
//! | file | what it is |
//! |---|---|
//! | [`cyclon`] | a random overlay: each node keeps a few random neighbours, always changing (Voulgaris et al., "Cyclon", 2005) |
//! | [`record`] | what is told of a host, and which of two tellings wins |
//! | [`hosts`] | all that is known of all hosts, with sums to compare it by |
//! | [`rumours`] | pushes what is new for a few rounds to a few random peers |
//! | [`digest`] | finds, with one random peer at a time, what pushing missed |
//! | [`doubts`] | suspicions of others, held back until the suspect could refute them |
//!
//! Each is a plain structure with methods; time and randomness are passed in. Gossip gives
//! "everybody hears, probably"; it never gives an order, and nothing that must be right may rest on
//! it.

pub mod cyclon;
pub mod digest;
pub mod doubts;
pub mod hosts;
pub mod record;
pub mod rumours;
#[cfg(test)]
mod tests;
