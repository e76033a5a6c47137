//! The doors of clients on the core thread: where they listen, whom they let in, and what is kept
//! of each connection.
//!
//! | file | what it holds |
//! |---|---|
//! | `admission.rs` | where doors listen, and whom they let in |
//! | `listener.rs` | who waits at a door |
//! | `clients.rs` | connections |
//! | `budget.rs` | the memory that they may take |
//! | `facts.rs` | what doors know of the host |

pub(super) mod admission;
mod budget;
pub(super) mod clients;
pub(super) mod facts;
pub(super) mod listener;
