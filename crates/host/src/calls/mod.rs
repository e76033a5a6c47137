//! Operations that other threads of this process ask for: the doors that are not on the core
//! thread.
//!
//! | file | what it holds |
//! |---|---|
//! | `queues.rs` | the queues between the threads |
//! | `overflow.rs` | what passes where a queue is full |
//! | `callers.rs` | calls on the core thread |
//! | `remembered.rs` | writes that callers numbered |
//! | `watches.rs` | what those threads follow |

pub(super) mod callers;
mod overflow;
pub(super) mod queues;
pub(super) mod remembered;
pub(super) mod watches;
