//! What hosts say to each other.
//!
//! | file | what it judges |
//! |---|---|
//! | `frames.rs`, `frames.txt` | the bytes of messages, and what is none |
//! | `hears.rs` | what a gateway hears late, twice, or of somebody else |
//! | `asked.rs` | what a primary hears late, and what it proposes once |
//! | `bounds.rs` | how much goes at once |

mod asked;
mod bounds;
mod frames;
mod hears;
