//! What a primary has in hand: what it hands to the log, and what it drops when that is too much.
//!
//! | file | what it holds |
//! |---|---|
//! | `in_hand.rs` | all that is lost with the view |
//! | `hand.rs` | what is handed to the log, in one order |
//! | `round.rs` | votes, at the group that decides |
//! | `tail.rs` | what is in the log and not executed |
//! | `room.rs` | what is taken on, and what is dropped |
//! | `ahead.rs` | what is remembered ahead of time |

mod ahead;
mod hand;
pub(super) mod in_hand;
mod room;
pub(super) mod round;
mod tail;
