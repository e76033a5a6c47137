//! Traps of taking over a range: who counts for it, and what is written meanwhile.

mod counted;
mod deferred;
mod lost;
mod slow;
