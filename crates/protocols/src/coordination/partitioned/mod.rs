//! The tree over several partitions, as a machine on [`crate::smr::partitioned`]: the paper's
//! Volery (§V-B).
//!
//! What nodes are there, and all that decides whether a node may be made or removed, is *tree*: all
//! partitions have it, and change it together. What a node has is *content*: the one partition that
//! has the node's slot holds it, and changes it alone. So what is read and set of one node costs
//! one partition, and what makes or removes nodes costs all.
//!
//! | of a node, or of all | where |
//! |---|---|
//! | names, children, access lists, kinds, counts of creates, `czxid`, `ctime`, `pzxid`, `cversion`, `aversion` | tree |
//! | sessions, and which nodes end with them | tree |
//! | data, `version`, `mzxid`, `mtime` | content |
//! | the newest change of a slot, and its time | content, a [`Clock`] for each slot |
//!
//! | command | partitions |
//! |---|---|
//! | a get, an exists, a set, a check, a list of children or of who may do what | that of the path |
//! | several of these | those of their paths |
//! | a create, a delete, a list that is set; sessions; what is reaped; a put, as it may create | all |
//!
//! A command is done by the code of the tree of one partition ([`super::tree`]): what it looks at
//! is put together before it ([`Found`]), and what it has changed is taken apart behind it. So
//! checks, errors and versions are the same, whatever partitions there are.
//!
//! # Promise
//! That of the [tree](super::tree) and of [`crate::smr::partitioned`] together: one tree, whose
//! commands take effect one after the other, each at one moment at all of its partitions.
//! - A create fails or not by the tree alone, so at all partitions alike. A delete, and the end of
//!   a session, look at versions, which their owners send with their signals.
//! - The number of a sequential node counts creates, which all partitions have seen.
//! - With a session end its nodes, at all partitions by one command.
//!
//! # Numbers of changes
//! No order of all changes is ever made by anybody, so nobody can count them. The number of a
//! change is above all that it has to do with: the last change of the tree, that of the slots where
//! it sets something, those of the nodes that it removes and of the parents whose children it makes
//! or removes, and what its session has seen. So numbers grow along each session, at each node, and
//! at the tree; none is given twice. They do not say which of two changes was first if neither knew
//! of the other. ZooKeeper's do. So who comes again cannot tell by the newest number that it has
//! seen what it has missed of other nodes (`Refollow`, ZooKeeper's `setWatches`): that is refused.
//! Times are kept from running back by the same rule.
//!
//! # Invariants
//! - Each node has a content, at the partition of its slot, and each content has a node.
//! - The tree is the same at all partitions that have executed the same commands of all.
//! - No content is changed later than its slot's clock, or than the tree, says.
//!
//! [`check()`] asserts them.
//!
//! # Departures from the paper
//! - Slots are 1,024, by CRC32 of the path, and move between partitions; the paper's partition is
//!   the CRC32 modulo their number.
//! - A delete that asks for no version needs no content, by the paper. Here its owner sends the
//!   version with the signal all the same: the number of the change must be above that of the last
//!   set. It is a message that is sent anyway.
//!
//! # Known limits
//! - The [engine](super) does not stand on it yet: it serves one partition. Hosts with real logs
//!   and disks do in tests ([`crate::smr::hosted`]).
//! - Nobody is told of changes (watches).
//! - There are no quotas: nobody may make anything in `/zookeeper/quota`.
//! - What is lost is not noticed, so there is no other life of the tree (`Begin`).
//! - The bytes of what nodes have are bounded for each node, and not for the whole tree.
//! - Answers of questions are kept as those of commands are, however large, until their clients
//!   have them.
//! - A put of a node that is there is a command of all, as a create is.
//!
//! | file | what it holds |
//! |---|---|
//! | `command.rs` | what is asked, and of which partitions |
//! | `slots.rs` | slots of paths, and numbers of changes |
//! | `part.rs` | what of a node is tree, and what content |
//! | `found.rs` | what a command looks at, put together |
//! | `machine.rs` | all of it, as what logs replicate |
//! | `check.rs` | what holds for all partitions together |

mod check;
mod command;
mod found;
mod machine;
mod part;
mod slots;
#[cfg(test)]
pub(crate) mod tests;

pub use check::check;
pub use command::Command;
pub use machine::Volery;
pub use part::{Clock, Content, Part};
pub use slots::{SEEN_MAX, slot};
