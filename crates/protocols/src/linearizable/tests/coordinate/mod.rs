//! What clients are told, and what a get does for a member that is behind.

mod answers;
mod behind;
