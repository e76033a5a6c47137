//! Entries of a group's log, and what executing them makes of its state.
//!
//! | file | what it holds |
//! |---|---|
//! | `entry.rs` | entries |
//! | `apply.rs` | executing them |
//! | `head.rs` | the small part of the state, and its size |
//! | `items.rs` | the items: in memory, or in the table |
//! | `locks.rs` | who holds which key |
//! | `act.rs` | what can be done to a key |
//! | `evaluate.rs` | what comes of it |

pub(super) mod act;
pub(super) mod apply;
pub(super) mod entry;
pub(super) mod evaluate;
pub(super) mod head;
pub(super) mod items;
pub(super) mod locks;
