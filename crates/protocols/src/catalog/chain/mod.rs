//! The chain of decrees: what it is made of and comes to, and how a decree is decided and learned.

pub(super) mod decree;
pub(super) mod fold;
mod learn;
mod propose;
