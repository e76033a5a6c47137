//! Building block: a group decides, one after the other, the views that it goes through.
//!
//! From C. Arad, T. M. Shafaat, S. Haridi, "CATS: Linearizability and Partition Tolerance in
//! Scalable and Self-Organizing Key-Value Stores" (SICS T2012:04), §4.1: Paxos with consistent
//! quorums. Everything here is pure; sending, storing, timers and the transfer of data are the
//! engine's.
//!
//! # Promise
//! What follows a view is decided once, whoever proposes and whatever is lost: of two nodes that
//! installed something after the same view, both installed the same. While a majority of the view's
//! members can be reached and proposers do not interrupt each other for ever, a proposal ends.
//!
//! # Roles
//! **Proposer**: any node that knows the view and wants a [`Change`](quorate_kernel::view::Change);
//! usually the one that the ring makes responsible, but two are harmless. **Acceptor**: each member
//! of the view. Each view is an instance of its own: "what follows this view", open at a node only
//! while that view is the one it has installed. After a split, each part is a group of its own.
//!
//! ```text
//! proposer ── P1A(view, ballot) ──────────▶ members   promise to accept nothing lower
//!          ◀── P1B(promise, accepted) ─────           durable first
//!          ── P2A(view, ballot, change) ──▶           the change of the highest ballot found,
//!          ◀── P2B(accepted) ──────────────           else the wanted one; durable first
//! decided: ── P3A(view, change) ──────────▶           install, after all that comes before
//!          ◀── P3B(installed) ─────────────           durable first; a majority of the OLD view
//! ```
//!
//! # What can be decided
//! A group that holds data decides changes of its view. Whatever implements [`Value`] can be
//! decided the same way; each decision makes a view of the next version, be its members others or
//! the same, so a group's decisions are one chain.
//!
//! # Use
//! The engine keeps one [`Rounds`] per start, one [`Acceptor`] per group in the group's durable
//! record, one [`InstallQueue`] per group, and a [`Proposer`] while it proposes.
//!
//! - On `P1A` and `P2A` it asks [`Acceptor::on_prepare`] or [`Acceptor::on_accept`] with its
//!   installed view, stores the record if the flag is set, and replies once all it has written is
//!   durable. If the view asked for is newer than its own, it also fetches what it lacks.
//! - On `P1B`, `P2B` and `P3B` it calls the proposer and follows the [`Step`].
//! - On `P3A` it calls [`InstallQueue::push`] and installs what [`InstallQueue::next`] gives, until
//!   nothing comes. It replies `P3B` once that is durable, if it has then left the view named. If
//!   [`InstallQueue::is_missing`], it fetches what follows its installed view.
//! - When a wait of [`backoff`] is over it sends what [`Proposer::retry`] says.
//!
//! To install a change is to store, in one step, the next view and a fresh acceptor. A node that is
//! no member of its installed view keeps silent about it; asked for an older one, it answers like
//! everybody, and the reply points to the newer. So does a node whose view was split: `installed`
//! is then a view of either part, whose version is higher.
//!
//! # Invariants
//! - For one view, at most one change is ever decided (I2; asserted in [`InstallQueue::push`], and
//!   over all nodes in the random test).
//! - What is accepted was promised (I5, [`Acceptor::check`]).
//! - Counted replies of phases 1 and 2 come from members of the view and are stamped with that very
//!   view: a consistent quorum (CATS §4, Definition 1).
//! - No two proposals share a ballot ([`Rounds`]).
//! - A node never answers for a view older than one it has answered for (I1): it installs durably
//!   before it answers, and never goes back.
//!
//! # Departures from the paper
//! - Algorithm 2 line 7 accepts only *above* the promise, but line 3 has raised the promise to the
//!   proposal's own ballot: literally, nothing is ever accepted. Here an equal ballot is accepted.
//! - Line 2 promises equal ballots too. Here that is safe, and makes repeated messages harmless,
//!   because ballots are unique: they carry the proposer's start, and a round is used once.
//! - "Installing at every node of both views" makes removed members hold the new view, and with
//!   them two disjoint majorities. A reply counts only if its sender is a *member* of the view.
//! - Algorithm 1 line 20 compares the stamps of phase 3 with the old view, but Algorithm 2 line 14
//!   stamps with the new one. Meant is: a majority of the old view's members has installed the next
//!   view or a later one. A removed member counts there, and only there.
//! - Replies are kept by sender: `p2Acks ∪ {v}` would merge equal ones, and an all-equal quorum
//!   would have size one.
//! - P4A, which tells the newcomer, is not tied to the proposer, which may have died: any old
//!   member that installed the change may send it, for the newcomer itself counts the old members
//!   whose data it has received. P4A and the transfer are the engine's.
//! - Decisions are installed strictly in order; one that comes early waits ([`InstallQueue`]).
//! - A change may also be a split, which moves no data and changes no member.
//! - A change that does not fit the view is refused by acceptors and ignored by proposers.
//!
//! # Known limits
//! Acceptors must not forget: a member that lost its record needs a new name, even where data may
//! be lost. A proposer that finds another's change completes that one and leaves its own to the
//! caller. Whether a change is wise (a newcomer that has no data yet, say) is the caller's to know.

mod acceptor;
mod ballot;
mod message;
mod proposer;
mod queue;
mod step;
#[cfg(test)]
mod tests;
mod value;

pub use acceptor::Acceptor;
pub use ballot::{Ballot, PROPOSAL_RETRY, PROPOSAL_RETRY_MAX, ROUND_MAX, Rounds, backoff};
pub use message::{Accepted, Message, Promise};
pub use proposer::Proposer;
pub use queue::InstallQueue;
pub use step::Step;
pub use value::{Ground, Value};
