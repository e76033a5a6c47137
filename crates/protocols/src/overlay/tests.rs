//! Tests of the overlay as a whole.
//!
//! | file | what it holds |
//! |---|---|
//! | [`world`] | many overlays with latencies, loss, partitions, crashes |
//! | [`members`] | joins, crashes, restarts, departures |
//! | [`partitions`] | false suspicions, pauses, one ring of two |
//! | [`orders`] | what operators ask, and what is refused |
//! | [`shutdown`] | the whole cluster ends at one time |
//! | [`random`] | random faults of every kind |
//! | [`wire`] | every message's bytes, and that any other bytes are survived |
//! | [`tokens`] | where tokens are put |
//! | [`balance`] | what is decided about uneven load |

mod balance;
mod members;
mod orders;
mod partitions;
mod random;
mod shutdown;
mod tokens;
mod wire;
mod world;
