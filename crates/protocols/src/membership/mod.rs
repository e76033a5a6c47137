//! Building block: the roll. Who takes part, in numbered configurations that all agree on.
//!
//! From L. Suresh et al., "Stable and Consistent Membership at Scale with Rapid" (USENIX ATC 2018),
//! with L. Lamport, "Fast Paxos" (2006), for the agreement. A pure struct without a lane of its
//! own: a lane keeps one [`Roll`], gives it messages and ticks, and carries out its actions.
//!
//! # Promise
//! All members go through one chain of configurations. Two nodes that know one of the same number
//! know the same one: the same ids, addresses and metadata. A node id comes in once and goes out
//! once. Members that fail together go out together, nodes that come together come in together, and
//! one that only some cannot reach, or that a few wrongly suspect, stays. While a majority of the
//! members can talk to each other, changes go on.
//!
//! # What it is not
//! Who is on the roll is who shall take part, not who holds data, and not who is alive. A removed
//! node may be the last to hold something: it is told that it is out ([`Event::Kicked`]), and goes
//! on serving what it holds to whoever needs it. Nobody may count members of the roll and take that
//! for a quorum of a group: that is the group's own members' to decide (ADR 38).
//!
//! # Who observes whom
//! ```text
//! K rings, in each an order of its own; a member is observed by the one behind it in each ring
//! observer ── Probe ──────▶ subject      every second
//!          ◀─ ProbeAck ───
//! 4 of the last 10 unanswered: observer ── Alerts ─▶ all, gathered for 100 ms, told until decided
//! ```
//! Each counts what all observers report of a subject. With H reports it is stable, with L to H − 1
//! in flux. When somebody is stable and nobody in flux, all that are stable are one change.
//!
//! # Agreement
//! ```text
//! member ── FastVote(change) ─▶ all         durable; N − F equal ones decide, F = ⌊(N − 1) / 4⌋
//! not decided in about a second: the next in line coordinates a classic round, the highest yet
//!   coordinator ── Phase1a ─▶ all, ◀─ Phase1b(last vote) ── a majority
//!   coordinator ── Phase2a(change that may be decided, or any) ─▶ all
//!   member ── Phase2b ─▶ all                durable; a majority decides
//! decided: all install the next configuration; who lacks the change asks (Ask, Value)
//! ```
//!
//! # Coming and going
//! ```text
//! joiner ── PreJoin ─▶ contact, ◀─ Observers(one for each ring)
//! joiner ── Join ─▶ observers, which report it as they would a failure; all agree
//! observers ── Here ─▶ joiner ── Ask ─▶ one of them ── Whole ─▶ joiner
//! leave(), kick(): ── Depart ─▶ the node's observers, which report it at once
//! who missed decisions hears a later number: ── Ask ─▶ ◀─ Decisions, or Whole, or Kicked
//! ```
//!
//! # What leaves when
//! | message | rests on |
//! |---|---|
//! | Probe, Alerts, Ask, PreJoin, Join, Depart | nothing: questions, wishes, and what was found |
//! | ProbeAck | all that was written: a node whose disk stands still does not say that it is well |
//! | FastVote, Phase1b, Phase2b, Phase1a | the promise or the vote, and its configuration |
//! | Phase2a, Value, Decisions, Whole, Here, Outside, Kicked | what a quorum has made durable |
//!
//! # Why it is safe
//! - A change that was decided in the fast round has the votes of all but F members. Of any
//!   majority all but F have then voted for it, and for nothing else can so many have: a
//!   coordinator that hears a majority chooses it again (`agree/choose.rs`). A change that a
//!   classic round has decided is in every later majority, as in Paxos.
//! - Who has promised to a classic round votes in the fast one no more, and says nothing of a vote
//!   that it did not register.
//! - A round has one coordinator, which begins no round twice, also after a restart: its own
//!   promise is durable before anybody hears of it.
//! - Promises and votes are kept with their configuration. A restart goes on with both; a node that
//!   installs a configuration it is told of has not voted in it.
//! - A configuration is made of the one before and the decided change alone, which has all of the
//!   joiners in it, in one order.
//! - Every message is stamped with the number of its sender's configuration and the digest of the
//!   whole chain up to it. Votes and alerts count in their own configuration alone.
//!
//! # Departures from the paper and its implementation
//! - Configurations are numbered; the digest beside the number only tells chains apart.
//! - Rings order node ids, not addresses, and one that joins has the observers that it will have as
//!   a member: the successors in each ring, for both.
//! - Votes name changes by their digests (§4.3 has bitmaps); a change itself travels in classic
//!   rounds and to those who ask. It holds addresses and metadata, not names alone.
//! - A restart is neither a leave nor a join.
//! - Classic rounds rise without end. Who is next in line is hashed, not drawn.
//! - A subject with fewer than L reports for five seconds counts as suspected where edges are
//!   implied: of many that fail at once, some have fewer than L observers left (`observe/cut.rs`).
//! - Alerts and edges go on after a proposal, and what still holds is reported to the next
//!   configuration at once.
//! - An observer that stood still for more than a second starts its windows anew.
//! - A fast vote goes to each member: N² small messages for a change. The paper's gossip of bitmaps
//!   is for thousands of nodes.
//!
//! # Known limits
//! - Without a majority no change is decided, and [`Status::Waiting`] says how many are needed.
//!   Data groups have quorums of their own: for them it means that nobody is replaced.
//! - The last member cannot leave. Of two, one alone can remove nobody.
//! - Ids of those that left are remembered as far as [`Configuration::left`] reaches. A node that
//!   was out knows it by itself, unless it never heard.
//! - A member's address is as of its join. Where it is now, rumours say.
//! - One that joins asks the contacts that it was given until one answers; [`Roll::set_contacts`]
//!   gives it others.
//!
//! | file | what it holds |
//! |---|---|
//! | `roll.rs` | the state, and the one match on messages |
//! | `configuration.rs`, `change.rs` | who takes part, and what changes it |
//! | `observe/`, `alerts.rs` | rings, edges, cuts; what is found and reported |
//! | `agree/` | the fast round and the classic ones |
//! | `install.rs` | decisions, and those who missed them |
//! | `join.rs`, `admit.rs`, `depart.rs` | coming and going |
//! | `message.rs`, `codec.rs`, `keys.rs`, `number.rs`, `timer.rs` | what is sent, stored, counted |

mod action;
mod admit;
mod agree;
mod change;
mod codec;
mod configuration;
mod depart;
mod install;
mod join;
mod keys;
mod message;
mod number;
mod observe;
pub mod prime;
mod roll;
#[cfg(test)]
mod tests;
mod timer;

pub use action::{Action, Context, Denied, Event, carry_out};
pub use change::Change;
pub use configuration::{Configuration, Member, Shape};
pub(crate) use keys::KEYS;
pub use message::{Alert, Body, Message, Refusal};
pub use number::{Digest, Number, RollId, Round};
pub use roll::{Roll, Status};
pub use timer::{
    FAILED, PROBE, REINFORCE, ROUND_STEP, ROUND_WAIT, STALL, TICK, WAITING_SHOWN, WINDOW,
};
