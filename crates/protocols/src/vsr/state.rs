//! What a replica holds: durable and volatile state apart, and what must hold of both.

use super::configuration::Configuration;
use super::keys::Head;
pub use super::log::checkpoint::Install;
use super::log::entry::Entry;
use super::log::stored::Log;
use super::normal::read_index::Reads;
use super::number::{Op, Position, ViewNumber};
use super::views::pulse::Pulse;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::{GroupId, NodeId};
use quorate_kernel::invariant;
use quorate_kernel::process::Table;
use quorate_kernel::storage::Durability;
use quorate_kernel::time::Time;
use serde::{Deserialize, Serialize};

/// What a group of a lane is set to.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How durable the keyspace's data is, and so the entries of the log.
    pub durability: Durability,
    /// What stays in the log of what was executed, for members that lag.
    pub kept: Kept,
    /// How many bytes of commands may wait to be committed before no more are taken; at most
    /// [`quorate_kernel::limits::VSR_IN_FLIGHT_BYTES_MAX`]. Each member holds as much in memory.
    pub in_flight_bytes: usize,
    /// Whether a member doubts a primary that it follows because the membership has removed it
    /// ([`Replica::note_removed`]), not because it is silent: to measure that. No group serves so.
    pub by_membership: bool,
}

/// How much of what was executed stays in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// So many entries always; as many may be in the log alone before they are stored.
    pub entries: u64,
    /// About so many bytes that a member has not acknowledged: who lacks more is sent a copy.
    pub bytes: usize,
}

impl Settings {
    /// Whether a node may come back without entries that it had acknowledged.
    pub(super) fn may_forget(&self) -> bool {
        self.durability != Durability::Sync
    }
}

/// What a replica takes part in (the paper's status, and who has no vote).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Its log is of its view.
    Normal,
    /// It has begun its view, or knows that it has started, and lacks its log.
    ViewChange,
    /// A member that has forgotten: it has no vote until it has the log again.
    Recovering,
    /// No member: it copies what is committed, to become one or because it was one.
    Learner,
}

/// What the primary of a view knows beside its log. Volatile: it ends with the view.
#[derive(Debug)]
pub struct Primary {
    /// Where the log ended when the view began.
    pub began: Position,
    /// What was executed up to there.
    pub is_serving: bool,
    /// Up to where entries were sent.
    pub sent: Op,
    /// Up to where members were told of what is committed.
    pub told: Op,
    /// Up to where its own acknowledgement was asked for.
    pub asked: Op,
    /// How far each member's log is, durably; its own included.
    pub acked: BTreeMap<NodeId, Op>,
    /// Who shall be the members, if not who is.
    pub wish: Option<Arc<[NodeId]>>,
    /// How far the logs of newcomers are, durably.
    pub learned: BTreeMap<NodeId, Op>,
    /// The sizes of its proposals that are not committed, oldest first.
    pub in_flight: VecDeque<(Op, usize)>,
    /// The sum of those.
    pub in_flight_bytes: usize,
}

impl Primary {
    /// A command was proposed.
    pub(super) fn propose(&mut self, op: Op, bytes: usize) {
        invariant!(self.in_flight.back().is_none_or(|(last, _)| *last < op), "places ascend");
        self.in_flight.push_back((op, bytes));
        self.in_flight_bytes += bytes;
    }

    /// What is in the log up to here is committed.
    pub(super) fn commit(&mut self, commit: Op) {
        while let Some((_, bytes)) = self.in_flight.front().filter(|(op, _)| *op <= commit) {
            self.in_flight_bytes -= bytes;
            self.in_flight.pop_front();
        }
        invariant!(
            !self.in_flight.is_empty() || self.in_flight_bytes == 0,
            "bytes are of commands"
        );
    }
}

/// A log told by a DOVIEWCHANGE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vote {
    /// The last view in which the sender's status was normal.
    pub normal: ViewNumber,
    /// Where its log ends.
    pub end: Op,
    /// Its commit number.
    pub commit: Op,
    /// Since which view the sender goes on with what it has not lost, if its status was not normal
    /// since.
    pub lost: Option<ViewNumber>,
    /// Whether the entry that ends the epoch was in its log, and is lost.
    pub lacks_end: bool,
}

/// What the primary of a view that has begun gathers. Volatile.
#[derive(Debug, Default)]
pub struct Election {
    /// The DOVIEWCHANGE of each member, one of each.
    pub votes: BTreeMap<NodeId, Vote>,
    /// The member whose log was chosen, once a majority has voted.
    pub chosen: Option<NodeId>,
    /// Whether its log is of an earlier view: an end of the epoch in it is left out.
    pub is_earlier: bool,
    /// Whether something that was acknowledged may be in no log.
    pub loses: bool,
}

/// Entries of a view's log that wait until the log is whole: nothing is cut off before.
#[derive(Debug)]
pub struct Stage {
    /// Who tells them.
    pub source: NodeId,
    /// The entry before the first: up to there the logs are equal.
    pub matched: Op,
    /// The entries.
    pub entries: Vec<Entry>,
}

impl Stage {
    /// The last entry in it.
    pub(super) fn end(&self) -> Op {
        Op(self.matched.0 + self.entries.len() as u64)
    }

    /// The position of the last entry in it, or of what is matched.
    pub(super) fn last(&self, log: &Log) -> Option<Position> {
        let view = match self.entries.last() {
            Some(entry) => Some(entry.view),
            None => log.view_at(self.matched),
        };
        view.map(|view| Position { op: self.end(), view })
    }
}

/// A question for entries that is under way.
#[derive(Clone, Copy, Debug)]
pub struct EntriesRequest {
    /// Names the question.
    pub nonce: u64,
    /// Of whom.
    pub source: NodeId,
    /// When.
    pub at: Time,
}

/// How a member stands that one asks that has forgotten. New variants are only appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Standing {
    /// Its status is normal.
    Normal,
    /// It has all that it ever acknowledged, and takes part in a view change.
    Whole,
    /// It has forgotten too, and its status was not normal since.
    Forgot,
    /// The same, and it has told nobody who was removed that it is in this epoch: what that began
    /// with is still with them, unless a majority of the others has.
    Held,
}

impl Standing {
    /// Whether a member has all that it ever acknowledged.
    #[must_use]
    pub fn is_whole(self) -> bool {
        matches!(self, Standing::Normal | Standing::Whole)
    }
}

/// What a member that has forgotten gathers. Volatile.
#[derive(Debug, Default)]
pub struct Recovery {
    /// Names the question; 0 before the first.
    pub nonce: u64,
    /// Which member has answered, in which view, and how it stands.
    pub answers: BTreeMap<NodeId, (ViewNumber, Standing)>,
    /// Who has told when that it is in a later epoch, and lacks its begin.
    pub without_log: BTreeMap<NodeId, (Configuration, Time)>,
    /// The primary whose log is fetched, once enough have answered.
    pub source: Option<NodeId>,
    /// When it was asked last.
    pub asked_at: Option<Time>,
}

/// One replica of one group: a pure state machine that sends, writes and tells by
/// [`super::Action`].
#[derive(Debug)]
pub struct Replica {
    pub(super) group: GroupId,
    pub(super) me: NodeId,
    pub(super) settings: Settings,
    // Durable.
    pub(super) head: Head,
    pub(super) log: Log,
    // Volatile.
    pub(super) status: Status,
    pub(super) commit: Op,
    pub(super) applied: Op,
    pub(super) primary: Option<Primary>,
    pub(super) reads: Reads,
    pub(super) election: Election,
    pub(super) stage: Option<Stage>,
    pub(super) asked: Option<EntriesRequest>,
    pub(super) install: Option<Install>,
    pub(super) recovery: Recovery,
    /// How many questions this start has named.
    pub(super) nonces: u64,
    pub(super) pulse: Pulse,
    /// Members that have left the cluster, as far as this node was told: nobody waits for them.
    pub(super) left: BTreeSet<NodeId>,
    /// Members that the membership has removed, as far as this node was told.
    pub(super) removed: BTreeSet<NodeId>,
    /// Up to where all members have acknowledged the log, as the primary has told last.
    pub(super) held: Op,
    /// The log has come on since it was acknowledged.
    pub(super) owes_ack: bool,
    /// Its view is known to have started: no vote for it is sent any more.
    pub(super) has_started: bool,
    /// Members of this epoch that have said so, to who was removed.
    pub(super) started: BTreeSet<NodeId>,
    /// Who copies the state: the entries behind these stay in the log.
    pub(super) copies: BTreeMap<NodeId, (Op, Time)>,
}

impl Replica {
    /// The members that it knows of.
    #[must_use]
    pub fn configuration(&self) -> &Configuration {
        &self.head.configuration
    }

    /// The view that it is in.
    #[must_use]
    pub fn view(&self) -> ViewNumber {
        self.head.view
    }

    /// What it takes part in.
    #[must_use]
    pub fn status(&self) -> Status {
        self.status
    }

    /// The last entry that is known to be committed.
    #[must_use]
    pub fn commit(&self) -> Op {
        self.commit
    }

    /// The last entry that was executed.
    #[must_use]
    pub fn applied(&self) -> Op {
        self.applied
    }

    /// The log.
    #[must_use]
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// The primary of its view, as far as it knows.
    #[must_use]
    pub fn known_primary(&self) -> Option<NodeId> {
        self.primary_of(self.head.view)
    }

    /// Whether this node is the primary, and has executed what earlier views have committed.
    #[must_use]
    pub fn is_serving(&self) -> bool {
        self.primary.as_ref().is_some_and(|primary| primary.is_serving)
    }

    /// Whether the state is right: no copy is under way, and what it may be ahead was executed.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.install.is_none() && self.applied >= self.head.settled
    }

    /// Whether this node was removed, and must go on telling the members what it has.
    #[must_use]
    pub fn owes(&self) -> bool {
        self.head.owes
    }

    pub(super) fn epoch(&self) -> super::Epoch {
        self.head.configuration.epoch
    }

    pub(super) fn is_member(&self) -> bool {
        self.head.configuration.contains(self.me)
    }

    /// Whether it has a vote, and acknowledges.
    pub(super) fn takes_part(&self) -> bool {
        matches!(self.status, Status::Normal | Status::ViewChange)
    }

    pub(super) fn primary_of(&self, view: ViewNumber) -> Option<NodeId> {
        self.head.configuration.primary(self.group, view)
    }

    /// Where the entry stands that ends the epoch, if one is in the log and not executed yet.
    pub(crate) fn closing(&self) -> Option<Op> {
        let is_open = |last: &Position| last.view.epoch >= self.epoch();
        self.log.members_at().filter(is_open).map(|last| last.op)
    }

    /// Who the members will be if the change that is in the log is committed.
    #[must_use]
    pub fn coming(&self, table: &dyn Table) -> Option<Arc<[NodeId]>> {
        let entry = self.log.get(self.closing()?, table);
        entry.new_members().map(Into::into)
    }

    /// The other members.
    pub(super) fn others(&self) -> Arc<[NodeId]> {
        let members = self.head.configuration.members.iter();
        members.copied().filter(|node| *node != self.me).collect()
    }

    /// Asserts everything that must hold between two inputs.
    pub fn check(&self) {
        let head = &self.head;
        self.log.check();
        invariant!(head.base == self.log.base(), "the head has the log's base");
        invariant!(head.view.epoch == self.epoch(), "a view is of the members' epoch");
        invariant!(head.normal <= head.view, "a log is of no later view than the replica's");
        invariant!(self.commit <= self.log.end(), "what is committed is in the log");
        invariant!(self.applied <= self.commit, "what is executed is committed");
        invariant!(self.applied >= self.log.base().op, "the log lets go of what was executed");
        let is_of_view = self.log.last().view <= head.view;
        let closing = self.closing();
        // The end of a later epoch, where what had begun that one was lost.
        let is_open = self.is_member() && closing.is_none();
        invariant!(is_of_view || !is_open, "no entry is of a later view than the member");
        invariant!(closing.is_none_or(|op| op == self.log.end()), "a change of members is last");
        match self.status {
            Status::Normal => {
                invariant!(head.normal == head.view, "a normal replica has its view's log");
                invariant!(self.is_member() && !head.has_forgotten, "only members take part");
                let is_primary = self.known_primary() == Some(self.me);
                invariant!(self.primary.is_some() == is_primary, "a view's primary leads it");
            }
            Status::ViewChange => {
                invariant!(self.is_member() && !head.has_forgotten, "only members take part");
            }
            Status::Recovering => {
                invariant!(head.has_forgotten, "only who has forgotten recovers");
            }
            Status::Learner => invariant!(!self.is_member(), "a learner is no member"),
        }
        let is_normal = self.status == Status::Normal;
        invariant!(is_normal || self.primary.is_none(), "only a normal replica leads");
        invariant!(is_normal || self.reads.is_empty(), "only a primary has reads in hand");
        invariant!(!head.owes || self.status == Status::Learner, "who was removed is no member");
        invariant!(head.is_installing == self.install_began(), "a copy under way is noted");
        let waits = matches!(self.status, Status::ViewChange | Status::Recovering);
        invariant!(head.lost.is_none() || waits, "what is left is voted on");
        invariant!(
            self.pulse.heard.keys().all(|node| self.head.configuration.contains(*node)),
            "members alone are listened for"
        );
    }

    fn install_began(&self) -> bool {
        self.install.as_ref().is_some_and(|install| install.at.is_some() || self.head.is_installing)
    }
}
