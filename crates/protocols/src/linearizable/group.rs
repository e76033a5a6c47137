//! One replication group as one node knows it: the record that survives a restart, and what a
//! restart begins anew.

use super::keys::Slot;
use super::message::{Beat, Known};
use super::refill::transfer::Transfer;
use super::views::propose::Running;
use crate::reconfigure::{Acceptor, InstallQueue};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::mutant;
use quorate_kernel::time::Time;
use quorate_kernel::view::{View, ViewId};
use serde::{Deserialize, Serialize};

/// What this node is in a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Status {
    /// A member whose data is complete.
    Ready,
    /// A new member: it must first hear from a majority of the members of the view before.
    Busy {
        /// The members of the view before.
        sources: Vec<NodeId>,
        /// The view that the sources must have installed before what they say counts.
        since: ViewId,
        /// Whether it also lost what it had acknowledged in the new view.
        forgot: bool,
    },
    /// A member that lost what it had acknowledged and must first refill from the others.
    Forgot,
    /// No member yet: it copies the data before it is made one, so that little is left to do then.
    Learner {
        /// The members it copies from.
        sources: Vec<NodeId>,
        /// Whether it has everything that was there when it began.
        is_done: bool,
    },
    /// It left the group, or the group was split. It keeps its data for those who may still need
    /// it.
    Retired {
        /// Whether its data was complete.
        was_ready: bool,
        /// Whether it lost that data and must get it back first: two nodes that forget one after
        /// the other must not leave a newcomer without its sources.
        forgot: bool,
        /// If it left before it had everything: the members of the view before its own, from which
        /// it still gets the rest, because the one who replaced it may need it (CATS §4.1, the
        /// data chain); and what they must have installed before what they say counts.
        lacking: Option<(Vec<NodeId>, ViewId)>,
        /// The parts, if the group was split.
        parts: Vec<View>,
    },
    /// A member whose data is complete, and that gathers what other members hold, since the group
    /// has shrunk to an even size ([`super::refill::gather`]).
    Gathering,
}

/// What a stamp says of its sender's part in the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Standing {
    /// A member whose data is complete.
    Ready,
    /// A new member, or a learner, that still lacks data.
    Busy,
    /// A member that forgot.
    Forgot,
    /// No member.
    Outside,
    /// No member, and it has copied the data.
    Learned,
    /// The group has gone on in its two parts.
    Split,
    /// In beats and in lists alone: a member whose data is complete and that gathers what others
    /// hold.
    Gathering,
}

/// How far the removal of tombstones has come in a group ([`super::replicate::purge`]).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Generation {
    /// Rises by one with each step: odd while a floor is announced, even when it is enforced.
    pub number: u64,
    /// Counters of new writes are above it.
    pub floor: u64,
}

impl Generation {
    /// Whether its floor is enforced, and not only announced.
    pub fn is_enforced(self) -> bool {
        self.number.is_multiple_of(2)
    }

    /// Whether tombstones may have been removed between this generation and a later one: then all
    /// members of the group were complete meanwhile.
    pub fn enforces_less(self, later: Generation) -> bool {
        self.number / 2 < later.number / 2 && !mutant!("kept_outlives_removal")
    }
}

/// A newcomer that has not shown that it holds everything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Owed {
    /// Who.
    pub newcomer: NodeId,
    /// The view it is new in.
    pub next: View,
    /// The view before.
    pub old: View,
}

/// What survives a restart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The installed view.
    pub view: View,
    /// What this node is in it.
    pub status: Status,
    /// Where its data stands.
    pub slot: Slot,
    /// What it promised and accepted for the decision that follows the view.
    pub acceptor: Acceptor,
    /// Who was there at a moment at which nobody was left to have the data from, and in which
    /// start each lacked it ([`super::refill::loss`]); empty if that never was.
    pub lost: Vec<Incarnation>,
    /// How far tombstones are removed.
    pub generation: Generation,
    /// Newcomers that this node must invite until they hold everything.
    pub owed: Vec<Owed>,
    /// How often everything was lost here ([`super::refill::epoch`]).
    pub epoch: u64,
}

impl Record {
    /// What a membership has come to, beside the view.
    pub fn known(&self) -> Known {
        Known { generation: self.generation, epoch: self.epoch }
    }
}

/// What a peer last said of itself in this group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Heard {
    /// In which start of the peer.
    pub start: Start,
    pub version: u64,
    pub standing: Standing,
    pub known: Known,
    pub at: Time,
}

/// A node asks for the decisions that lead to a newer view.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outpaced {
    pub since: Time,
    /// When it last asked.
    pub asked: Option<Time>,
}

/// How far a group has come at one node: none of it ever goes back while the node knows the group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    version: u64,
    known: Known,
}

impl Progress {
    /// How far the removal of tombstones has come, as far as is known.
    pub fn generation(&self) -> Generation {
        self.known.generation
    }

    /// Whether nothing has gone back since.
    pub fn is_behind(&self, later: Progress) -> bool {
        self.version <= later.version
            && self.known.generation <= later.known.generation
            && self.known.epoch <= later.known.epoch
    }
}

/// A group.
#[derive(Debug)]
pub(crate) struct Group {
    pub record: Record,
    /// The installed view, shared.
    pub view: Arc<View>,
    /// Who left with the change that led to this view, if that is known.
    pub leaver: Option<NodeId>,
    /// Whether all members are known to have gathered in this view ([`super::refill::gather`]).
    pub have_all_gathered: bool,
    /// The transfer that the status asks for.
    pub transfer: Option<Transfer>,
    /// How far tombstones are removed, as one that lacks data was told. It says so too, but what it
    /// holds may be older: it may have been a member long ago, or get that from others that were.
    pub heard_generation: Generation,
    /// Decisions that cannot be installed yet.
    pub queue: InstallQueue,
    /// The proposal that this node drives.
    pub running: Option<Running>,
    /// What peers said.
    pub heard: BTreeMap<NodeId, Heard>,
    /// Since when the ring has wished for something else than the view.
    pub wished: Option<(quorate_kernel::view::Change, Time)>,
    /// The highest version any reply of this start was stamped with.
    pub stamped: u64,
    /// About how much it holds.
    pub share: super::replicate::load::Share,
    /// Data moved by transfers of this start, for status and metrics.
    pub moved: Moved,
    /// When somebody last wanted this learner, or this node told owed newcomers.
    pub touched: Time,
    /// Since when a newer view is known, and nobody tells how it came about.
    pub outpaced: Option<Outpaced>,
    /// Since when some other member has said nothing of the present view.
    pub unheard: Option<Time>,
    /// When the newcomer that is wished for was last told to learn.
    pub taught: Option<Time>,
    /// The removal of tombstones that this node drives.
    pub purge: super::replicate::purge::Purge,
}

/// What transfers have moved.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moved {
    pub keys: u64,
    pub bytes: u64,
}

impl Group {
    pub fn new(record: Record) -> Group {
        Group {
            view: Arc::new(record.view.clone()),
            record,
            leaver: None,
            have_all_gathered: false,
            transfer: None,
            heard_generation: Generation::default(),
            queue: InstallQueue::default(),
            running: None,
            heard: BTreeMap::new(),
            wished: None,
            stamped: 0,
            share: super::replicate::load::Share::default(),
            moved: Moved::default(),
            touched: Time(0),
            outpaced: None,
            unheard: None,
            taught: None,
            purge: super::replicate::purge::Purge::default(),
        }
    }

    /// What others are told beside the view.
    pub fn known(&self) -> Known {
        if self.is_serving() { self.record.known() } else { self.heard() }
    }

    /// What it has come to, and heard.
    fn heard(&self) -> Known {
        let known = self.record.known();
        Known { generation: known.generation.max(self.heard_generation), ..known }
    }

    /// How far it has come here.
    pub fn progress(&self) -> Progress {
        Progress { version: self.view.id.version, known: self.heard() }
    }

    /// Whether its view is the one in its record, and no reply was stamped with a later one (I1).
    pub fn is_one(&self) -> bool {
        self.view.id == self.record.view.id && self.stamped <= self.view.id.version
    }

    /// Whether a transfer is under way just if the status asks for one.
    pub fn moves_what_it_lacks(&self) -> bool {
        let is_moving = matches!(
            self.record.status,
            Status::Busy { .. }
                | Status::Forgot
                | Status::Gathering
                | Status::Learner { is_done: false, .. }
                | Status::Retired { forgot: true, .. }
                | Status::Retired { lacking: Some(_), .. }
        );
        self.transfer.is_some() == is_moving
    }

    /// What a reply says of this node.
    pub fn standing(&self) -> Standing {
        match &self.record.status {
            Status::Ready | Status::Gathering => Standing::Ready,
            Status::Busy { .. } => Standing::Busy,
            Status::Forgot => Standing::Forgot,
            Status::Learner { is_done: true, .. } => Standing::Learned,
            Status::Learner { .. } => Standing::Busy,
            Status::Retired { parts, .. } if !parts.is_empty() => Standing::Split,
            Status::Retired { .. } => Standing::Outside,
        }
    }

    /// Whether this node's data in the group is complete, so that others may take it.
    pub fn is_source(&self) -> bool {
        self.is_serving() || matches!(self.record.status, Status::Retired { was_ready: true, .. })
    }

    /// Whether others wait for data that this node waits for too, or has lost for good. A group
    /// that was split goes on in its parts, where this is asked again.
    pub fn lacks_data(&self) -> bool {
        self.is_asked() && !self.is_source()
    }

    /// Whether others ask it what it holds: no learner, and no group that was split.
    pub fn is_asked(&self) -> bool {
        match &self.record.status {
            Status::Learner { .. } => false,
            Status::Retired { parts, .. } => parts.is_empty(),
            _ => true,
        }
    }

    /// Whether a loss is known in which all of these were there.
    pub fn knows_loss(&self, lost: &[Incarnation]) -> bool {
        let known = &self.record.lost;
        let is_known = |who: &Incarnation| match who.start {
            // Complete then, or since.
            Start(0) => known.iter().any(|known| known.node == who.node),
            _ => known.contains(who),
        };
        lost.iter().all(is_known)
    }

    /// Whether it copies ahead, and is no member yet.
    pub fn is_learner(&self) -> bool {
        matches!(self.record.status, Status::Learner { .. })
    }

    /// Whether this node is a member of the installed view, and the group was not split.
    pub fn is_member(&self) -> bool {
        self.is_serving() || matches!(self.record.status, Status::Busy { .. } | Status::Forgot)
    }

    /// Whether a node has said that it holds everything, of this view or a newer one.
    pub fn is_settled(&self, node: NodeId) -> bool {
        self.heard.get(&node).is_some_and(|heard| {
            heard.version >= self.view.id.version
                && matches!(heard.standing, Standing::Ready | Standing::Split)
        })
    }

    /// Whether its data may be shown to clients.
    pub fn is_serving(&self) -> bool {
        matches!(self.record.status, Status::Ready | Status::Gathering)
    }

    /// The view that decides what is installed here: of a group that was split, its first part's.
    pub fn installed(&self) -> &View {
        match &self.record.status {
            Status::Retired { parts, .. } => parts.first().unwrap_or(&self.record.view),
            _ => &self.record.view,
        }
    }

    /// What this node says of itself in the group.
    pub fn beat(&self) -> Beat {
        let is_gathering = self.record.status == Status::Gathering;
        let standing = if is_gathering { Standing::Gathering } else { self.standing() };
        Beat { view: self.view.id, standing, known: self.known(), asks: !self.is_member() }
    }

    /// What must hold between two inputs.
    pub fn check(&self, me: NodeId) {
        assert_eq!(self.view.id, self.record.view.id, "the shared view is the installed one");
        assert!(self.stamped <= self.view.id.version, "no stamp is ahead of its view (I1)");
        if self.is_member() {
            assert!(self.view.index_of(me).is_some(), "a member is in its view");
        }
        assert!(self.moves_what_it_lacks(), "who lacks data, and nobody else, moves it");
        self.record.acceptor.check();
    }
}
