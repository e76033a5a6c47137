//! Building block: the roll by reports in one order, for comparison with Rapid.
//!
//! PRIME is F. Santos's (Master's thesis, Instituto Superior Técnico, 2018), which we could not
//! find. This is as described by J. Gonçalves, M. Matos, R. Rodrigues, "SCONEKV: a Scalable,
//! Strongly Consistent Key-Value Store", §2: each node is observed by K others, several of them
//! must report it, failures are handled one by one, and what changes is broadcast in one order,
//! with high probability ([`crate::epto`]). Constants are ours, and so is all that is said below of
//! holes, of joining and of leaving.
//!
//! # Promise
//! A view is a configuration of the roll ([`super::Configuration`]) and changes by one node at a
//! time. It follows from the reports that were delivered and their order. So with high probability
//! all members go through the same views; those that do not differ by a hole, never by order, and
//! find out. Nobody may rest anything on it that must hold for sure: that is what
//! [`super::Roll`] is for.
//!
//! # How it goes
//! ```text
//! observer ── Probe ─▶ subject, ◀─ ProbeAck ──       K rings, as of Rapid; once a second
//! 4 of the last 10 unanswered: the observer broadcasts Down; when it answers again, Well
//! joiner ── Join ─▶ its observers to be, which broadcast Joins;  who leaves broadcasts Leaves
//! delivered: the observer's rings are marked; more than half of all are: the next view
//! ```
//! # Holes
//! A view's name has a hash of its whole history. It is in each report and each probe. Who hears
//! another name for a number, finds a report of a later view than its own delivered, or is told by
//! the order that something is missing, is in doubt: it asks all members which views they went
//! through. Of those that went through the newest view that a majority went through it fetches the
//! state of the one that has come furthest, and takes in on it what was delivered since. What that
//! one has taken in behind that view a majority may not have: then there is doubt again.
//!
//! # Divisions
//! A network that is divided for longer than failures take to be found has two rolls, each without
//! the other's members. When it heals they meet, and the smaller one gives way: its members go on
//! from the other's state, or come again under other ids (`sides.rs`). What each side has changed
//! meanwhile is lost with it.
//!
//! # Restarts
//! A restart is another incarnation, with the same id. It has no place in the order: it listens,
//! takes over a state, and is a member all along if it is back before the others have found it
//! silent. If nobody has a place, because all were started again or stood still together, the
//! member that was furthest takes its own back (`rest.rs`). So the caller stores what
//! [`Prime::stored`] says before anything is sent that comes of it.
//!
//! # Known limits
//! - A majority with the same hole is believed.
//! - Of another's views only the newest 32 are known.
//! - If all are started again at once, a majority of the newest view's members must come back.
//! - The caller draws the targets of each round. It has to draw newcomers as well, which are no
//!   members yet.
//!
//! | file | what it holds |
//! |---|---|
//! | `node.rs` | one node: rounds, probes, reports |
//! | `ledger.rs` | what ordered reports amount to |
//! | `repair.rs` | doubt, and how it ends |
//! | `sides.rs` | two rolls after a division |
//! | `come.rs` | joining, and coming back |
//! | `rest.rs`, `stored.rs` | what restarts go on from |
//! | `message.rs` | what nodes say to each other |

mod come;
mod ledger;
mod message;
mod node;
mod repair;
mod rest;
mod sides;
mod stored;
#[cfg(test)]
mod tests;

pub use ledger::{Report, Step};
pub use message::{Message, Whole};
pub use node::{Action, Prime};
