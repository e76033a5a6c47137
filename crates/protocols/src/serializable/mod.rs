//! Engine: strictly serializable transactions over replicated groups.
//!
//! From J. Gonçalves, M. Matos, R. Rodrigues, "SCONEKV: a Scalable, Strongly Consistent Key-Value
//! Store"; sections, figures and algorithms are those of that paper unless another is named.
//!
//! What is here is the heart of the engine, pure state machines for one group and what groups say
//! to each other; and its lane (`lane/`), the process that a keyspace runs.
//!
//! # Promise
//! Committed transactions, strict reads, and commits of transactions that only read are as if done
//! one after the other, in an order in which whoever had ended before another began comes first.
//! Without opacity (§4.2): what is read before the commit need not fit together, and a transaction
//! that aborts may have seen what never was at one moment. A transaction commits in all its groups
//! or in none; its client is told the same however often it asks, until it has said that it knows.
//!
//! # Roles
//! A **group** (the paper's bucket) keeps its keys in a [`State`] that a replicated log
//! ([`crate::vsr`]) carries to all its members. What a **primary** adds is in [`Member`], is
//! volatile, and is lost with its view by design. Of the groups of a transaction the lowest is the
//! **coordinator**: it decides. **Clients** read keys with their versions, and commit by naming
//! them.
//!
//! # One group
//! ```text
//! Commit ─▶ primary: locks and versions are looked at, the acts evaluated, as if the tail of the
//!           log were committed
//!           logs DecidedApplied ── committed, executed: answered
//! ```
//! # Several groups (Fig. 2)
//! ```text
//! Commit ─▶ each primary: logs Prepared: it holds its locks, or says no            4, 5
//!           participant ── Vote ─────▶ coordinator                                 6
//!           all are ready: coordinator logs Decided, its own share is done with it 7
//!           coordinator ── Decision ─▶ participants, and the client is answered    9
//!           participant logs Applied: its share is done, its locks are free        8
//!           participant ── Applied ──▶ coordinator: it is told no more
//! ```
//! # Who gives way (§4.4, Fig. 4)
//! ```text
//! an older transaction waits for a younger one that has voted here and is not decided
//!           participant ── RevokeVote ────▶ coordinator: logs Revoked
//!           participant ◀─ RevokeGranted ── it counts that vote no more
//!           participant logs Reverted: its locks are free; it waits, and votes again
//! ```
//! Lower ranks go first; nobody overtakes one that waits, but readers beside readers. So whoever
//! waits, waits for an older one, or for a younger one that gives way or is decided: the oldest
//! goes on. All this ends after 2 s without all votes, by a logged decision.
//!
//! # What leaves when
//! | message or answer | rests on |
//! |---|---|
//! | Vote | `Prepared` is committed |
//! | Decision, the client's answer | `Decided` or `DecidedApplied` is committed |
//! | RevokeGranted | `Revoked` is committed |
//! | Applied | `Applied` is committed |
//! | RevokeVote | nothing: a question |
//! | what is read | the replica has led after the question, and no decision can be unapplied |
//! | what `ReadAny` asks for | nothing: it was committed, and may be old |
//! | an outcome that is known, or forgotten | it was executed, and no later entry takes it back; what is under way is not forgotten |
//!
//! Committed entries rest on a majority, so nothing of it waits for this node's disk.
//!
//! # Why it is right
//! - Every group holds a transaction's locks from before its vote until it does what was decided,
//!   and the decision needs all votes: at some moment between, all locks are held and all versions
//!   are current. That moment is its place in the order.
//! - Whoever comes to a group that has not done yet what is decided meets a lock there, and waits:
//!   so do strict reads, and a commit that only reads fails.
//! - An entry may rest on entries before it that are not committed: if they are not, it is not.
//! - Versions only grow: over removals, and over purges of tombstones, after which an absent key
//!   has the floor's version. What does not fit now never will, also under a lock.
//! - What an entry does depends on nothing but entries before it.
//!
//! # Invariants
//! - A transaction ends once in a group, and the same way in all its groups.
//! - A commit rests on a vote of each group, the last one, which was not taken back.
//! - The versions of a key grow with every change.
//! - A transaction holds all its locks in a group, or none; locks follow from logged votes alone.
//! - A primary serves when it has executed the whole log.
//! - No replica looks at a clock: a primary proposes the removal of what has expired, guarded by
//!   its version, and by its own clock, which is logged and runs backwards over no view, unless one
//!   was wrong by more than a minute (`timer.rs`).
//! - What a group has forgotten never commits any more: whoever asks is told so without an entry.
//! - A head fits one message: a primary votes on no more than that has room for, hears from other
//!   groups of no more that is new, and lets go of no more decisions at a time; what is remembered
//!   for clients is dropped from the oldest on, and apart from that, what is ahead of time from the
//!   furthest on (`execute/head.rs`, `primary/room.rs`).
//! - A horizon passes nothing that is as old as what may be under way, if clients count with time
//!   ([`TxId`]).
//! - A bucket is of one group at a time: between the entry that hands it over and the one that
//!   takes it nobody serves it (`moves/`).
//! - What is proposed is in the log, in its order, or handed to it again; nothing else is executed
//!   while its primary leads.
//!
//! # Departures from the paper
//! - Algorithm 2 sends GLOBALDECISION when the last vote has come, and replicates it after. A
//!   coordinator that dies between may have told what its successor decides otherwise. Here the
//!   decision is logged first (J. Gray, L. Lamport, "Consensus on Transaction Commit", have their
//!   transaction manager do so).
//! - Algorithm 2 counts answers, also repeated ones and later refusals. Here votes are kept by
//!   group, with a number, and a vote that was taken back never counts again.
//! - Taking a vote back is logged by the coordinator too, before it is granted: the grant outlives
//!   the primary that gave it.
//! - §4.4 asks younger owners to give way only if all owners are younger. Here each is asked.
//! - §4.2 has each write rest on a version, so that two blind writes of one key abort each other.
//!   Here a client says which versions it rests on. Acts, such as adding, are evaluated under the
//!   lock, and what is logged is the value that they leave.
//! - §4.2 removes a deleted pair, whose versions begin again at 0. Here they go on.
//! - §4.5 has a new primary ask the coordinator. Here the vote, which is sent again until it is
//!   answered, is that question.
//! - Algorithm 1 takes a repeated request for a new one. Here outcomes, votes and what was received
//!   are looked at first; also a refusal is logged, so no late request commits what its client was
//!   told has failed.
//! - §6.1 has transactions that only read run the whole protocol. Here each primary looks once more
//!   at what was read, and logs nothing.
//! - A new client counts from the highest counter that it has seen, and a transaction that is tried
//!   again keeps the rank of its first attempt: newcomers do not go before those that wait.
//!
//! # Known limits
//! - An append logs the whole value.
//! - Outcomes are kept until their client's mark passes them, or the lane says that it is gone, or
//!   there are too many: then the oldest of all, and the oldest marks, are dropped. Age is the
//!   counter. So clients count with time ([`TxId`]); one that is below what was dropped is told
//!   that nobody knows how its transaction ended, and must count on. What is of the last seconds is
//!   not dropped: where that is too much, clients are refused as long.
//! - Of clients that have counted ahead of time, marks stay until time has come there. Where these
//!   alone are too many, no more such clients are taken, also where other groups ask; whoever has
//!   voted on a transaction of such a client holds its keys as long. So no client is made anew for
//!   each transaction. Others go on, but that decisions which wait for that room are not let go of:
//!   many of those keep out all transactions of several groups.
//! - Ahead of time are all clients where the primary's clock is behind, or where a clock that was
//!   ahead has moved the horizon, or what they count on from. All of them share that smaller room
//!   then, those that have counted furthest are forgotten first, which may be who is active now,
//!   and whoever finds no room is refused, until time has come there.
//! - A head is encoded, sent and stored in one turn: at most some tens of megabytes, and mostly
//!   little.
//! - If a group has lost its data, what it had decided or voted is unknown. A transaction of
//!   several groups may then have changed some of them alone; who asks the group that has lost its
//!   vote is told that nobody knows. Who asks a coordinator that has lost its decision is told that
//!   it has failed, though others may have changed. A lane counts such losses; its clients are told
//!   nothing else.
//! - A primary whose clock is ahead removes early what expires, as long as it leads.
//! - A name that has ended is not compared with what it was used for: who uses one twice is
//!   answered how the first ended. Nor can groups compare what each of them was asked for under one
//!   name, but by the names of all groups.
//! - An upgrade goes from member to member, and what a version adds to entries and heads is written
//!   when all members can read it. A member of an earlier version takes no entry into its log that
//!   it cannot read, and no head: it lags until it is upgraded, and with a majority of such members
//!   the group stands still. Back to an earlier version goes only who has nothing in its log that
//!   this one cannot read: it stops at that entry, rather than go on without.
//! - Counters that a clock let in which was far ahead stay the highest: where such ones are many
//!   enough that a horizon passes them, clients count on from there, and other groups may refuse
//!   them until time has come there.
//! - What waits is tried again one by one when a key is free: with very many that wait for one key
//!   that is work for each of them.
//! - A copy that begins drops all keys in one turn.
//!
//! | file | what it holds |
//! |---|---|
//! | `state.rs` | what a log makes of a group; what must hold |
//! | `execute/` | entries, and executing them: acts, locks, items |
//! | `recover.rs`, `keys.rs` | copies, and what is stored |
//! | `sound.rs` | what no correct peer says |
//! | `engine.rs` | inputs |
//! | `primary/` | what a primary has in hand |
//! | `commit/` | commits, votes, decisions, and reads |
//! | `message.rs`, `number.rs`, `raw.rs`, `timer.rs`, `rules.rs` | words, numbers, times, limits |
//! | `settings.rs` | what a keyspace can be set to |
//! | `moves/` | buckets that move from group to group |
//! | `lane/` | the process: frames, restarts, clients |

mod commit;
mod engine;
mod execute;
mod keys;
pub mod lane;
mod message;
mod moves;
mod number;
mod primary;
mod raw;
mod recover;
mod rules;
mod settings;
mod sound;
mod state;
#[cfg(test)]
mod tests;
mod timer;

pub use commit::optimizations::Optimizations;
pub use engine::{Action, Context, Input, Member};
pub use execute::act::{
    Act, ActError, Condition, Done, Effect, Expiry, PASSED, Results, WallMs, When,
};
pub use execute::apply::{Executed, What};
pub use execute::entry::{Change, Counted, Dropped, Entry, Prepared, Share};
pub use execute::evaluate::{Content, Evaluated, evaluate};
pub use execute::head::{Head, Recorded, Revoked, Sizes, TakenBack};
pub use execute::items::Stored;
pub use execute::locks::{Locks, Mode};
pub use message::{Cause, Commit, Item, Message, Outcome, Refused, Reply, Request};
pub use moves::{Arrival, Moved, Moves, Said, Step, bucket_of};
pub use number::{Client, Rank, Token, TxId, Version, VoteSeq};
pub use raw::Raw;
pub use rules::{ENGINE, Transaction};
pub use state::State;
