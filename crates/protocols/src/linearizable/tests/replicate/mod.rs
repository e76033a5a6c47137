//! What the members hold: deletes, the removal of their tombstones, and what each member missed.

mod comparisons;
mod fences;
mod outlived;
mod piles;
mod tombstones;
