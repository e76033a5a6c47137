//! Commands of Redis that are known here so that their error says why they cannot be done.
//!
//! | file | what it holds |
//! |---|---|
//! | `refused.rs` | what this server does not offer, and the reason that a client is told |
//! | `types.rs` | commands on values that are no byte strings |

pub(super) mod refused;
pub(super) mod types;
