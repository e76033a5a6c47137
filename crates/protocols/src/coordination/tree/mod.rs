//! The tree as a deterministic machine: what ZooKeeper's clients know, on [`crate::smr`].
//!
//! From the paper's §V-B (Volery), which has nodes with children and data; what it leaves out is
//! that of ZooKeeper: versions, lists of who may do what, sessions and nodes that end with them,
//! sequential names, containers, times to live, several things at one moment.
//!
//! # Promise
//! - Each command that changes something is one change: all that it does happens at one moment, and
//!   has one zxid, one more than the last. One that fails changes nothing.
//! - The number of a sequential node is how many children its parent was ever given: it is never
//!   given twice, whatever is removed between (until 32 bits wrap).
//! - With a session end its nodes, and nothing of it is done behind that. What it asks through a
//!   gateway that it has left is not done either.
//! - Sessions and nodes end by commands, never by a clock here; whoever proposes such an end says
//!   what it has seen, and nothing ends that has changed since.
//! - What is left when something was lost goes on in another life: its changes have greater numbers
//!   than any before, and no session of an earlier life is served.
//!
//! # Invariants
//! - Each node but the root has a parent, which ends with no session.
//! - A node counts its children, and was given at least as many.
//! - A session finds each of its nodes, and nothing else; each of these has a session.
//! - Each container, and each node with a time to live, is found to be reaped.
//! - Each quota has a node with its limits, counts what is there, and shows what it counts.
//!
//! [`check()`] asserts them.
//!
//! # Departures from ZooKeeper
//! - The stat of containers, and of nodes with a time to live, has no owner. ZooKeeper hides in the
//!   field what kind of node it is.
//! - What is in `/zookeeper` everybody may read, and nobody change, but quotas: `quota.rs` says in
//!   what they differ.
//! - Paths and lists have limits of their own, and the whole tree has; no more than some nodes are
//!   counted, and no longer list is told than fits one message.
//!
//! | file | what it holds |
//! |---|---|
//! | `command.rs` | what is asked, answered and told |
//! | `object.rs` | what the tree is made of |
//! | `acl.rs` | who may do what with a node |
//! | `step.rs` | one change, and what goes with it |
//! | `write.rs` | what changes nodes |
//! | `sessions.rs` | sessions: made, moved and ended |
//! | `life.rs` | what follows when something was lost |
//! | `reap.rs` | nodes that end by themselves |
//! | `quota.rs` | limits of parts of the tree |
//! | `ask.rs` | what changes nothing |
//! | `bytes.rs` | how much is asked and answered |
//! | `machine.rs` | all of it, as what a log replicates |
//! | `check.rs` | what holds between two commands |

mod acl;
mod ask;
mod bytes;
mod check;
mod command;
mod life;
mod machine;
mod object;
mod quota;
mod reap;
mod sessions;
mod step;
#[cfg(test)]
pub(crate) mod tests;
mod write;

pub use acl::grants;
pub use ask::{ask, nodes, whole};
pub use check::check;
pub use command::{Answer, Change, Command, Question, Who};
pub use life::{LIFE_MAX, may_change_members};
pub use machine::{Tree, without_quotas};
pub use object::{Life, Meta, Node, Object, Session};
pub use quota::{Most, Quota, exceeded};
pub use reap::{Found, reapable};
pub use sessions::sessions;
