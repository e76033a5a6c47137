//! Agreement on the change that follows a configuration: Fast Paxos, once for each (paper §4.3;
//! L. Lamport, "Fast Paxos", 2006).
//!
//! | file | what it holds |
//! |---|---|
//! | `acceptor.rs` | what a member has promised and voted for |
//! | `choose.rs` | the rule by which a coordinator chooses the value of its round |
//! | `instance.rs` | what a member has heard of the votes of all |
//! | `fast.rs` | the fast round: everybody votes for what it has found itself |
//! | `classic.rs` | the classic rounds, where the fast one does not decide |

mod acceptor;
mod choose;
mod classic;
mod fast;
mod instance;

pub(super) use acceptor::Acceptor;
pub(super) use instance::Instance;
