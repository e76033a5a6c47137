//! What a replica stores, and hands to another replica of its partition.

use super::clients::Clients;
use super::command::{Ordered, Place};
use super::digest::Executed;
use super::exchange::Signal;
use super::machine::Machine;
use super::outbox::{Outbox, Released};
use super::partitions::{PartitionId, ReplicaId};
use super::placement::Placement;
use crate::multicast::{Cursor, Merge, RingId};
use alloc::collections::{BTreeMap, VecDeque};
use bytes::Bytes;
use quorate_kernel::mutant;
use serde::{Deserialize, Serialize};

/// The state of a partition between two commands. All but the outbox, and what others have released
/// of it, follows from what was delivered, and is the same at all its replicas.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct State<M: Machine> {
    /// The objects of the partition.
    pub(super) objects: BTreeMap<Bytes, M::Object>,
    pub(super) clients: Clients<M>,
    /// What of it other partitions may ask for yet.
    pub(super) outbox: Outbox<M>,
    /// Up to where others do not ask for it, each in the latest of its starts that was heard of.
    pub(super) released: Released,
    /// The last command of several partitions that was executed, or was for others.
    pub(super) passed: Option<Place>,
    /// What its replicas compare, beside the objects.
    pub(super) executed: Executed,
    /// Which partition has what.
    pub(super) placement: Placement,
}

impl<M: Machine> State<M> {
    /// The same without the objects.
    pub(super) fn without_objects(&self) -> State<M> {
        State {
            objects: BTreeMap::new(),
            clients: self.clients.clone(),
            outbox: self.outbox.clone(),
            released: self.released.clone(),
            passed: self.passed,
            executed: self.executed,
            placement: self.placement.clone(),
        }
    }
}

/// What is stored until a snapshot of later is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound = "")]
pub enum Kept<M: Machine> {
    /// A command was executed with it: the partition that it is of forgets it.
    Signal(Signal<M>),
    /// A replica of another partition was heard of in this start: what is still on its way of what
    /// an earlier one released is not to count after a restart either.
    Start(ReplicaId),
}

impl<M: Machine> Kept<M> {
    /// Whether it is needed beside a snapshot of later, which has passed this.
    #[must_use]
    pub fn is_needed(&self, passed: Option<Place>) -> bool {
        match self {
            Kept::Signal(signal) => Some(signal.place) > passed,
            Kept::Start(_) => false,
        }
    }
}

/// A command whose turn it is or comes next; with its place if it is of several partitions.
pub(super) type Queued<M> = (Option<Place>, Ordered<M>);

/// A state, and where in the order it is. It is stored, and copied, whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Snapshot<M: Machine> {
    /// How far decisions are delivered.
    pub(super) cursor: Cursor,
    /// What is left of the last one: a decision is not executed in one go.
    pub(super) rest: VecDeque<Queued<M>>,
    pub(super) state: State<M>,
}

impl<M: Machine> Snapshot<M> {
    /// A partition before its first command, of a machine that has so many, and will have no more
    /// if it has one alone.
    #[must_use]
    pub fn begin(here: PartitionId, count: u8) -> Snapshot<M> {
        let mut snapshot = Snapshot::begin_at(here, &Placement::even(count));
        if count == 1 {
            snapshot.cursor = Merge::<()>::new([here.ring()]).cursor();
        }
        snapshot
    }

    /// A partition before its first command, by a placement, in which it may be idle.
    #[must_use]
    pub fn begin_at(here: PartitionId, placement: &Placement) -> Snapshot<M> {
        let rings = [here.ring(), RingId::ALL];
        let own = M::begin().filter(|(key, _)| placement.has::<M>(key, here));
        let state = State {
            objects: own.collect(),
            clients: Clients::default(),
            outbox: Outbox::default(),
            released: Released::default(),
            passed: None,
            executed: Executed::default(),
            placement: placement.clone(),
        };
        Snapshot { cursor: Merge::<()>::new(rings).cursor(), rest: VecDeque::new(), state }
    }

    /// A partition that is new, and idle until it is given something: where this one is in the ring
    /// of all, and at the beginning of its own ring. None once it was given something: that comes
    /// with the switch that gave it, which a snapshot of later does not have.
    #[must_use]
    pub fn join(&self, here: PartitionId) -> Option<Snapshot<M>> {
        let has = self.state.placement.partitions().contains(here);
        if has && !mutant!("smr_joins_late") {
            return None;
        }
        let own = Merge::<()>::new([here.ring()]).cursor();
        let all = self.cursor.iter().filter(|it| it.ring == RingId::ALL).copied();
        let rest = self.rest.iter().filter(|(place, _)| place.is_some()).cloned();
        let state = State {
            objects: BTreeMap::new(),
            clients: Clients::default(),
            outbox: Outbox::default(),
            released: self.state.released.clone(),
            passed: self.state.passed,
            executed: Executed::default(),
            placement: self.state.placement.clone(),
        };
        Some(Snapshot { cursor: own.into_iter().chain(all).collect(), rest: rest.collect(), state })
    }

    /// The objects.
    #[must_use]
    pub fn objects(&self) -> &BTreeMap<Bytes, M::Object> {
        &self.state.objects
    }

    /// One that was stored without its objects, with them.
    #[must_use]
    pub fn with_objects(mut self, objects: BTreeMap<Bytes, M::Object>) -> Snapshot<M> {
        self.state.objects = objects;
        self
    }

    /// How far decisions are delivered: those behind it are to be learned, the others may be
    /// forgotten when this is stored.
    #[must_use]
    pub fn cursor(&self) -> &Cursor {
        &self.cursor
    }

    /// The last command of several partitions that is in it: signals that were kept of that one and
    /// earlier ones may be dropped when this is stored.
    #[must_use]
    pub fn passed(&self) -> Option<Place> {
        self.state.passed
    }

    /// Whether replicas of a partition are alike, as far as what was delivered says.
    #[must_use]
    pub fn is_as(&self, other: &Snapshot<M>) -> bool {
        let (one, two) = (&self.state, &other.state);
        self.cursor == other.cursor
            && self.rest == other.rest
            && one.objects == two.objects
            && one.clients == two.clients
            && one.passed == two.passed
            && one.executed == two.executed
            && one.placement == two.placement
    }
}
