//! What nodes of a group say to each other. New variants are only appended.

use super::group::Generation;
use super::record::Ts;
use super::wire::cursor;
pub use super::wire::parts::{Basis, Beat, Bounds, Known, Said, Stamp, Want};
use crate::reconfigure;
use alloc::boxed::Box;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::operation::Cursor;
use quorate_kernel::view::{Change, View, ViewId};
use serde::{Deserialize, Serialize};

/// One message. `op` names the asker's operation and is echoed; keys begin with their token.
/// Of a cursor the head has the token; its key, if it has one, stands in the second raw part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// Coordinator to members, phase 1 of every operation on a key.
    ReadA {
        /// The asker's operation.
        op: u64,
        /// The view the asker aims at.
        view: ViewId,
        /// What is wanted.
        want: Want,
        /// The key.
        #[serde(skip)]
        key: Bytes,
    },
    /// Member to coordinator: its newest timestamp for the key, and the record if it was wanted.
    /// For a `Counter` it may leave before that timestamp is durable, and is never below the
    /// group's floor; otherwise what it shows is durable.
    ReadB {
        /// Echoed.
        op: u64,
        /// The sender's stamp.
        stamp: Stamp,
        /// The newest timestamp.
        ts: Ts,
        /// Whether the key has a value.
        live: bool,
        /// The record; empty if it was not wanted or there is none.
        #[serde(skip)]
        record: Bytes,
    },
    /// Coordinator to members, phase 2: store this record unless a newer one is there.
    WriteA {
        /// The asker's operation.
        op: u64,
        /// The view the write is for.
        view: ViewId,
        /// What the record rests on.
        basis: Basis,
        /// The key.
        #[serde(skip)]
        key: Bytes,
        /// The record.
        #[serde(skip)]
        record: Bytes,
    },
    /// Member to coordinator. `ok`: the sender was in `view` and holds the record or a newer one,
    /// as durably as the keyspace promises. Not `ok`: it did not store it.
    WriteB {
        /// Echoed.
        op: u64,
        /// Echoed: the view the write was for.
        view: ViewId,
        /// Whether this acknowledges.
        ok: bool,
        /// The sender's stamp.
        stamp: Stamp,
    },
    /// Coordinator to members: one page of a scan.
    PageA {
        /// The asker's operation.
        op: u64,
        /// The view the asker aims at.
        view: ViewId,
        /// Where to begin; it lies in the view's range.
        #[serde(with = "cursor")]
        from: Cursor,
        /// About how many entries.
        limit: u32,
    },
    /// Member to coordinator: every key from the asked cursor up to, not including, `next`, each
    /// with its record's head; all of it durable.
    PageB {
        /// Echoed.
        op: u64,
        /// The sender's stamp.
        stamp: Stamp,
        /// Where the page ends; `None` at the end of the interval of the view's range.
        #[serde(with = "cursor::optional")]
        next: Option<Cursor>,
        /// The entries.
        #[serde(skip)]
        page: Bytes,
    },
    /// A node that lacks data, to a source: list keys and timestamps from this cursor on. That the
    /// asker forgot, and its epoch, are durable at the source before it answers.
    ListA {
        /// The asker's round; a later round asks anew whether the others lack data too.
        round: u64,
        /// What the source must have installed before what it says counts.
        since: ViewId,
        /// The asker's epoch, to which the source comes.
        epoch: u64,
        /// Whether the asker forgot in its present start; else it is new in the group.
        forgot: bool,
        /// Where to begin.
        #[serde(with = "cursor")]
        from: Cursor,
    },
    /// Source to a node that lacks data: every key within the bounds, with its record's head. It
    /// says something about the data only if `is_source`.
    ListB {
        /// Echoed.
        round: u64,
        /// Echoed.
        since: ViewId,
        /// The sender's stamp.
        stamp: Stamp,
        /// Whether the sender's data is complete.
        is_source: bool,
        /// What the page covers.
        bounds: Box<Bounds>,
        /// If nobody was left to have the data from: who was there ([`super::refill::loss`]).
        lost: Vec<Incarnation>,
        /// The entries.
        #[serde(skip)]
        page: Bytes,
    },
    /// A node that lacks data, to a source that listed newer records: send them.
    FetchA {
        /// Names the question in the answer.
        round: u64,
        /// Which group.
        since: ViewId,
        /// The keys, each with an empty record's head in place of its record.
        #[serde(skip)]
        page: Bytes,
    },
    /// Source to a node that lacks data: the records of the asked keys, as many as fit, in their
    /// order; the asker asks again for the rest.
    FetchB {
        /// Echoed.
        round: u64,
        /// Echoed.
        since: ViewId,
        /// The records.
        #[serde(skip)]
        page: Bytes,
    },
    /// A node that knows no view of a token, to one that may.
    LocateA {
        /// The token.
        token: u64,
    },
    /// The newest view that the sender knows of the asked token, or of a group that has gone on
    /// beyond the decisions it still knows; a hint.
    LocateB {
        /// The view.
        view: View,
    },
    /// Reconfigurations of several groups in one frame (CATS §4.1, Algorithms 1 and 2).
    Reconfigure(
        /// Their messages.
        Vec<reconfigure::Message>,
    ),
    /// Member of the old view that has left it, to the newcomer of the next one (CATS: P4A), who
    /// installs the view when so many of the old members say so that the others are no majority.
    Invite {
        /// The view the newcomer is new in.
        next: View,
        /// The view before.
        old: View,
        /// What the sender knows beside them.
        known: Known,
    },
    /// Proposer to a node that it wants as a member: copy the data first, so that little is left
    /// to move once it is one.
    Learn {
        /// The installed view.
        view: View,
        /// What the sender knows beside it.
        known: Known,
    },
    /// What a node is in groups of the receiver; sent now and then, and when it changes.
    Beats(
        /// One for each group.
        Vec<Beat>,
    ),
    /// A node that is behind asks for the decisions that follow the view it has installed.
    DecisionsA {
        /// The view it has installed.
        view: ViewId,
    },
    /// Decisions of a group, in order.
    DecisionsB {
        /// The view that the first of them follows.
        view: ViewId,
        /// The decisions.
        changes: Vec<Change>,
    },
    /// The member that removes tombstones, to all members: raise the generation by one.
    FloorA {
        /// The installed view.
        view: ViewId,
        /// The generation to be.
        generation: Generation,
    },
    /// Member to the one that removes tombstones: it is, durably, in this generation.
    FloorB {
        /// Echoed.
        view: ViewId,
        /// The sender's generation.
        generation: Generation,
    },
    /// Sent no more, nor answered: it names no generation.
    TombsA {
        /// The installed view.
        view: ViewId,
        /// The token to begin at.
        from: u64,
    },
    /// The answer to [`Message::TombsA`], sent no more.
    TombsB {
        /// The view that was asked for.
        view: ViewId,
        /// The token that was asked for.
        from: u64,
        /// Where the page ends; `None` at the end of the interval of the view's range.
        next: Option<u64>,
        /// The entries.
        #[serde(skip)]
        page: Bytes,
    },
    /// The member that removes tombstones, to all members: every member held these before it came
    /// to this generation; delete those that are still the newest.
    DropA {
        /// The installed view.
        view: ViewId,
        /// The generation in which they may be deleted.
        generation: Generation,
        /// The entries.
        #[serde(skip)]
        page: Bytes,
    },
    /// The member that removes tombstones, to all members: list tombstones up to the floor that was
    /// announced in this generation, if that is still the one the receiver is in.
    TombstonesA {
        /// The installed view.
        view: ViewId,
        /// The number of the announced generation.
        generation: u64,
        /// Where to begin.
        #[serde(with = "cursor")]
        from: Cursor,
    },
    /// Member to the one that removes tombstones: its tombstones from `from` up to, not including,
    /// `next`, that are not above the floor; all of them durable. It held them in the generation
    /// that was asked for, so before it comes to the next one.
    TombstonesB {
        /// Echoed.
        view: ViewId,
        /// Echoed: the sender was in it.
        generation: u64,
        /// Echoed.
        #[serde(with = "cursor")]
        from: Cursor,
        /// Where the page ends; `None` at the end of the interval of the view's range.
        #[serde(with = "cursor::optional")]
        next: Option<Cursor>,
        /// The entries.
        #[serde(skip)]
        page: Bytes,
    },
    /// Member to the one that removes tombstones: what [`Message::DropA`] named is deleted.
    DropB {
        /// Echoed.
        view: ViewId,
        /// Echoed.
        generation: Generation,
        /// The first key of the page.
        #[serde(skip)]
        first: Bytes,
    },
    /// Member to another member: compare this piece of the group's data with yours.
    CompareA {
        /// Names the question in its answer.
        round: u64,
        /// The installed view.
        view: ViewId,
        /// The cursor that the piece begins at.
        #[serde(skip)]
        from: Bytes,
        /// The piece's parts, each with its digest at the asker ([`super::replicate::digest`]).
        #[serde(skip)]
        parts: Bytes,
    },
    /// Member to the one that compares: all keys that the sender has in the parts that differ; a
    /// hint on what to ask for.
    CompareB {
        /// Echoed.
        round: u64,
        /// Echoed.
        view: ViewId,
        /// The heads.
        #[serde(skip)]
        page: Bytes,
        /// The cursor before which everything was compared; empty if that is all of the piece.
        #[serde(skip)]
        upto: Bytes,
    },
    /// Member that compares, to one that has newer records: send them.
    RecordsA {
        /// Names the question in its answer.
        round: u64,
        /// The installed view.
        view: ViewId,
        /// The keys, with the heads that were shown.
        #[serde(skip)]
        page: Bytes,
    },
    /// Member to the one that compares: the records that were asked for, as many as fit, in their
    /// order. They may be stored only where what a get imposes from the sender may.
    RecordsB {
        /// Echoed.
        round: u64,
        /// Echoed.
        view: ViewId,
        /// The number of the sender's generation.
        generation: u64,
        /// The sender's epoch.
        epoch: u64,
        /// The records.
        #[serde(skip)]
        page: Bytes,
    },
    /// To a node that lacks data, beside a [`Message::ListB`]: the sender, asked for what it holds,
    /// lacks data itself, in its present start ([`super::refill::amnesia`]).
    Lacks {
        /// Echoed.
        round: u64,
        /// Echoed.
        since: ViewId,
        /// Whom it hears from until its data is complete.
        awaits: Vec<NodeId>,
        /// The sender's epoch.
        epoch: u64,
    },
    /// To a host that may still ask for a group that was split: how does it stand there? It
    /// answers with a beat, unless it may yet come to the group ([`super::views::parents`]).
    Split {
        /// The view that was split.
        view: View,
        /// How far tombstones are removed at the sender.
        generation: Generation,
    },
    /// Coordinator to members, and to a host that leaves: what keeps that host?
    ExamineA {
        /// The asker's operation.
        op: u64,
        /// The view the asker aims at.
        view: ViewId,
        /// A token of the view's range.
        token: u64,
        /// The host that leaves.
        leaver: Option<NodeId>,
    },
    /// Member, or a host that leaves, to coordinator: how it stands. What it says of itself is
    /// durable.
    ExamineB {
        /// Echoed.
        op: u64,
        /// The sender's stamp.
        stamp: Stamp,
        /// What keeps the host.
        said: Said,
    },
}
