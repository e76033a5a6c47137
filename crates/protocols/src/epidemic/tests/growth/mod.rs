//! Traps of taking over a range.

mod counted;
