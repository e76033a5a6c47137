//! Traps: what is easily done wrong, each with a test of its own, named by what must hold.
//!
//! | trap | where |
//! |---|---|
//! | R1 a vote after a promise, R2 one classic round, R3 promises in a list | `rounds.rs` |
//! | R4 failures that never pass, R8 a minority, R10 small clusters | `edges.rs`; `../small.rs` |
//! | R5 unordered configurations, R6 nothing stored, R7 removal is death, R9 ids for ever | `chain.rs` |
//! | R11 mixed cuts, R12 alerts that stop, R13 proposals of names only, R14 observers of joiners | `cuts.rs` |

mod chain;
mod cuts;
mod edges;
mod rounds;
