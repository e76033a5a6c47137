//! What operators do: to hosts, to keyspaces, and to the whole cluster.
//!
//! | file | what it holds |
//! |---|---|
//! | `hosts.rs` | what they do to hosts |
//! | `retire.rs` | hosts that end because their drain is done |
//! | `changes.rs` | what they do to keyspaces |
//! | `closing.rs` | a cluster that is shut down |

pub(super) mod changes;
mod closing;
mod hosts;
pub(super) mod retire;
