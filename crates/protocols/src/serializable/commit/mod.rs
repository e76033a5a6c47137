//! Transactions at a primary: how they are prepared, voted on and decided, and those that only
//! read.
//!
//! | file | what it holds |
//! |---|---|
//! | `prepare.rs` | commits at a primary |
//! | `participate.rs` | the group that votes |
//! | `coordinate.rs` | the group that decides |
//! | `load.rs` | what keys have, read once |
//! | `optimizations.rs` | what can be left out, to measure it |
//! | `read.rs` | strict reads, commits that only read, expiry and purge |

mod coordinate;
pub(super) mod load;
pub mod optimizations;
mod participate;
mod prepare;
pub(super) mod read;
