//! Building block: one log on several nodes, for a deterministic state machine.
//!
//! From B. Liskov, J. Cowling, "Viewstamped Replication Revisited" (MIT-CSAIL-TR-2012-021). Pure
//! structs without a lane of their own: an engine keeps one [`Replica`] for each of its groups, and
//! its [`Machine`] is what the group replicates. Nothing of an engine is in here.
//!
//! # Promise
//! The machines of all members execute the same entries in the same order, each once. What was
//! executed anywhere stays, whatever fails, as long as no more than a minority of the members is
//! lost for good; durability below `sync` weakens that as `losses.rs` says. While a majority of the
//! members can be reached, the log goes on: after a primary has stopped, in less than half a
//! second.
//!
//! # Roles
//! The **members** of a group, in an **epoch**, are who holds it now; nothing but a committed entry
//! of the log changes them. Each **view** of the epoch has one **primary**, the member of rank
//! `view mod n` in an order hashed from group and node. Only it puts entries into the log. A
//! **learner** is no member: it copies what is committed, to become one, or because it was one.
//!
//! # The normal case
//! ```text
//! propose() ─▶ primary ── Prepare ─────────▶ members   early: it promises nothing
//!                      ◀─ PrepareOk(end) ──            the log up to there is durable; the primary
//!                                                      asks its own disk the same way
//! a majority has it: committed, executed in order; others hear with the next Prepare or Beat,
//!                                                     or at once: tell_commit()
//! read()    ─▶ primary ── Beat(round) ─────▶ members
//!                      ◀─ BeatOk(round) ───            a majority still follows: the state may be
//!                                                      shown once all from before is executed
//! ```
//! All entries and reads of a turn share one message of each kind.
//!
//! # The view change
//! ```text
//! a member hears no primary: ── StartViewChange ─▶ members      it would begin this view
//! a majority would:          ── DoViewChange ────▶ new primary  which log it has; durable
//! a majority has voted:      new primary chooses the log of the latest normal view, the longest of
//!                            those; fetches what it lacks (GetState, NewState)
//!                            ── StartView(last) ─▶ members      who has that entry has the log
//! ```
//!
//! # Epochs
//! ```text
//! wish() ─▶ primary ── Beat ─▶ newcomers ── GetState, GetCheckpoint ─▶ ... ── Learned ─▶ primary
//! all have copied: Entry::members, the last entry of its epoch, is committed by the old members
//! who executes it is in the next epoch; its first primary waits until that is durable
//! removed ── StartEpoch ─▶ members ── EpochStarted ─▶ removed: a majority has it, Event::Released
//! ```
//!
//! # What leaves when
//! | message | rests on |
//! |---|---|
//! | Prepare, Beat, StartViewChange, questions | nothing |
//! | BeatOk | nothing stored: it says where its sender is now |
//! | NewState, Checkpoint, StartEpoch | what is committed rests on a majority already; in an epoch that a loss has made, the sender's head |
//! | EpochWithoutLog | the sender's head |
//! | PrepareOk, DoViewChange, StartView, EpochStarted, Learned, Recovery and its answer | all that was written before: log, view, last normal view |
//!
//! # Why it is safe
//! - An entry is committed when a majority has it durably *in this view's log*, and a later view's
//!   log is chosen among those of a majority. One of them has the entry. What is chosen before its
//!   log is longer in the same view, or is of a later one, whose log began with the entry in it.
//! - The log of a view is one log: its primary alone appends, and never leads the same view twice.
//!   A restarted primary begins the next view; one leads only when its own vote has come back,
//!   that is when the view is durable here; the first of an epoch likewise.
//! - Two logs whose entries at a place are of one view are equal up to it ([`Position`]): one
//!   comparison says whether entries fit.
//! - Nothing is cut off before what takes its place is here, and then in one batch.
//! - Two epochs never decide side by side: the entry between them is the last that the old members
//!   commit, and the new ones begin with the log up to it.
//! - A state that a copy has brought is right when the newest entry that may be in it was executed;
//!   nobody is served or copied before (`checkpoint.rs`). A primary that must copy leads no more:
//!   it lacks nothing of its epoch, so another one has begun.
//! - Nothing is put into a log that the machine here cannot read, so no member executes less than
//!   another of a later version.
//!
//! # Departures from the paper
//! - §4.2 sends whole logs in DOVIEWCHANGE and STARTVIEW. Here they tell where logs end, and
//!   entries are fetched: mostly the new primary has the log already.
//! - §4.3 recovers without a disk, by a nonce and a majority. Views are durable here, also where
//!   data is not: so the primary of a view no earlier than its own tells a member all that it can
//!   have acknowledged, and who has not forgotten takes part at once. (E. Michael et al.,
//!   "Recovering Shared Objects Without Stable Storage", DISC 2017, show what goes wrong without
//!   such a view.) A wiped disk makes another node, which joins by a change of members.
//! - §5.2 cuts the log back to the commit number when a later view is heard of, and asks then. A
//!   view change in between loses what was acknowledged; here the old log, and the view that it is
//!   of, stay.
//! - §4.2 lets whoever times out begin a view. Here a majority must doubt, so that one deaf member
//!   disturbs nobody; a lost connection, or a primary that hears no majority, is doubt at once.
//! - §4.1's client table is the machine's: it is state like other state, and in its copies.
//! - §7 has the new members fetch the log after the change, and may warm them up. Here newcomers
//!   must copy before, so that a group does not wait for one that never answers. An epoch may have
//!   an even number of members.
//! - §6.3 reads without an entry by leases, which rest on clocks. Here a majority confirms a round
//!   of beats.
//! - A PREPARE leaves before it is durable at the primary; its own acknowledgement counts like
//!   others'.
//!
//! # Known limits
//! - Nodes are trusted not to lie: who names a later epoch is asked for it, and believed what is
//!   committed, as a newcomer cannot know the members. What is checked of messages protects from
//!   nodes that are confused or late, not from malicious ones.
//! - Below a majority of its members a group stands still, and [`Replica::waits_for`] says for
//!   whom. In `memory` a member that has forgotten counts like one that is gone, unless the primary
//!   has not. Two of three that forget at once, the primary among them, make the group wait for
//!   good: the third may lack what they alone had acknowledged, and to go on would lose it unseen.
//!   It ends when the third is restarted too, or has left the cluster, which gives the data up
//!   (`losses.rs`).
//! - If most members were removed, and all of the next epoch forget in `memory` before a majority
//!   of them has told who was removed that it had begun, they wait for one of those. If these have
//!   forgotten too, the data is gone, and the keyspace can be made anew.
//! - The same if another change of members follows before a majority has told: they wait for those
//!   only who were removed by the last one.
//! - If all members forget while an entry that makes others the members was in a log, they do not
//!   go on by themselves: the next epoch may have begun elsewhere. Nor do members that never had it
//!   go on with what is left, beside one that has lost it. With `memory` the data is gone then
//!   anyway, and the keyspace can be made anew. With `periodic`, after a loss of power during a
//!   copy, it may be there: they wait until they are told of the next epoch.
//! - If all forget again when some have begun the epoch that a loss has made, they meet there if
//!   none of the others has anything left (`views/lost_begin.rs`). Where one has, they wait until
//!   it is restarted in `memory`, or until those have left that have begun it.
//! - A member that lacks much of a view's log holds it in memory until it is whole.
//! - A wish is forgotten with its view: whoever wishes repeats it.
//!
//! | file | what it holds |
//! |---|---|
//! | `replica.rs` | the one match on messages, and what a lane calls |
//! | `prepare.rs`, `execute.rs`, `read_index.rs` | the normal case |
//! | `pulse.rs`, `view_change.rs` | doubt, and what follows it |
//! | `lost_begin.rs` | an epoch of which nobody has the begin |
//! | `transfer.rs`, `checkpoint.rs` | who lacks entries, and who lacks more |
//! | `epoch.rs`, `configuration.rs` | who the members are |
//! | `bounds.rs` | what no correct peer says |
//! | `recover.rs`, `losses.rs` | restarts; members that forget, alone and together |
//! | `log.rs`, `entry.rs`, `keys.rs` | what is stored |
//! | `state.rs` | what a replica holds, and what must hold of it |

mod action;
mod bounds;
mod configuration;
mod keys;
mod log;
mod losses;
mod machine;
mod message;
mod normal;
mod number;
mod recover;
mod replica;
mod state;
#[cfg(test)]
mod tests;
mod timer;
mod views;

pub use action::{Action, Context, Event, Proposed, Refused, carry_out};
pub use configuration::{Configuration, are_members};
pub use keys::{Head, is_known};
pub use log::entry::{Entry, Kind};
pub use log::stored::Log;
pub use machine::{Machine, Page, Store, Stored};
pub use message::Message;
pub use number::{Epoch, Op, Position, ViewNumber};
pub use state::{Kept, Replica, Settings, Status};
pub use timer::{DOUBT, DOUBT_MAX, DOUBT_STEP, TICK};
