//! What a protocol may ask for: one ordered, reused list per process.

use crate::entries;
use crate::ids::{Incarnation, LaneId, LogId, LogIndex, NodeId, Start, Ticket};
use crate::keyspace::{Keyspaces, Settlement};
use crate::observe::{Every, Observation};
use crate::operation::Outcome;
use crate::process::Process;
use crate::ring::{Ring, Weighed};
use crate::roll::Roll;
use crate::storage::Class;
use crate::time::Time;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;

/// When an effect may leave the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Release {
    /// After everything this lane has written so far is as durable as it must be. The default.
    Lane,
    /// After the newest write of this data key, and all protocol state of the lane, is as durable
    /// as it must be. For what shows or acknowledges that one key.
    Key(Bytes),
    /// The same of each of these data keys. For what shows or acknowledges several.
    Keys(Arc<[Bytes]>),
    /// After all protocol state of the lane is as durable as it must be, whatever its data does.
    /// For what carries a view's stamp but rests on no stored value.
    State,
    /// At once. Only for what promises nothing; each use says why in a comment.
    Early,
}

/// Who shall receive a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recipients {
    /// One node; start 0 means whichever start it is in.
    One(Incarnation),
    /// Each of these nodes, in any start; the sender itself receives its copy too if it is listed.
    Group(Arc<[NodeId]>),
}

impl From<Incarnation> for Recipients {
    fn from(to: Incarnation) -> Recipients {
        Recipients::One(to)
    }
}

impl From<NodeId> for Recipients {
    fn from(node: NodeId) -> Recipients {
        Recipients::One(Incarnation { node, start: Start(0) })
    }
}

impl From<&Arc<[NodeId]>> for Recipients {
    fn from(nodes: &Arc<[NodeId]>) -> Recipients {
        Recipients::Group(Arc::clone(nodes))
    }
}

/// What a process tells its own node. Keyspaces and what is settled are held like a message; the
/// others are hints, which promise nothing that a crash could undo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// What this node believes of the ring has changed. The host is told too: it finds the peers'
    /// addresses there.
    Ring(Arc<Ring>),
    /// The roll that this node knows has changed.
    Roll(Arc<Roll>),
    /// How much this lane has to do, for the overlay.
    Load(Arc<Weighed>),
    /// The catalog is this now: the node opens and drops lanes by it, and the host is told.
    Keyspaces(Arc<Keyspaces>),
    /// This lane has done, durably, what the catalog waits for at a partition that it gave to this
    /// node.
    Settled {
        /// Which partition.
        partition: u32,
        /// The decree that gave it.
        since: u64,
        /// What it has done.
        settlement: Settlement,
    },
    /// Which peers this lane observes from now on, for the overlay.
    Observe(Observation),
    /// A peer is silent or back, for a lane that observes it.
    Silence {
        /// The one that observes.
        lane: LaneId,
        /// The one that it observes.
        peer: NodeId,
        /// Whether it is back.
        is_over: bool,
    },
    /// A message said what no correct peer says; nothing was changed. It is counted.
    Refused(&'static str),
}

/// One thing a process asks for.
pub enum Effect<M, T> {
    /// Writes (`Some`) or deletes (`None`) a key of the lane.
    Write {
        /// Protocol state or data.
        class: Class,
        /// The key within the class.
        key: Bytes,
        /// The new value.
        value: Option<Bytes>,
    },
    /// Sends a message.
    Send {
        /// Who shall receive it.
        to: Recipients,
        /// What it says; all who receive it get the same.
        message: M,
        /// When it may leave.
        release: Release,
    },
    /// Answers a client.
    Answer {
        /// Which request.
        ticket: Ticket,
        /// What became of it.
        outcome: Outcome,
        /// When it may leave.
        release: Release,
    },
    /// Sets the one deadline of a timer; a later call replaces it.
    Arm {
        /// Which of the lane's timers.
        timer: T,
        /// When it shall fire.
        at: Time,
    },
    /// Takes back a timer's deadline. The timer may still fire once.
    Disarm {
        /// Which of the lane's timers; one that is not armed stays so.
        timer: T,
    },
    /// Tells the node something.
    Announce(Note),
}

/// The list. Its order is the order in a trace.
pub struct Effects<P: Process + ?Sized> {
    pub(crate) list: Vec<Effect<P::Message, P::Timer>>,
}

impl<P: Process + ?Sized> Default for Effects<P> {
    fn default() -> Self {
        Effects { list: Vec::new() }
    }
}

impl<P: Process + ?Sized> Effects<P> {
    /// Writes or deletes a key of a class. For what hands on what a part of the lane asks for.
    pub fn write(&mut self, class: Class, key: Bytes, value: Option<Bytes>) {
        self.list.push(Effect::Write { class, key, value });
    }

    /// Writes protocol state: synced before anything of this lane that follows leaves.
    pub fn put_state(&mut self, key: Bytes, value: Bytes) {
        self.write(Class::State, key, Some(value));
    }

    /// Deletes protocol state.
    pub fn delete_state(&mut self, key: Bytes) {
        self.write(Class::State, key, None);
    }

    /// Writes data, as durable as the keyspace promises.
    pub fn put(&mut self, key: Bytes, value: Bytes) {
        self.write(Class::Data, key, Some(value));
    }

    /// Deletes data.
    pub fn delete(&mut self, key: Bytes) {
        self.write(Class::Data, key, None);
    }

    /// Writes an entry of a log, as durable as the keyspace promises, in place of the one there.
    pub fn put_entry(&mut self, log: LogId, index: LogIndex, entry: Bytes) {
        self.write(Class::Log, entries::key(log, index), Some(entry));
    }

    /// Deletes an entry of a log: one at its end, which another shall take the place of.
    pub fn delete_entry(&mut self, log: LogId, index: LogIndex) {
        self.write(Class::Log, entries::key(log, index), None);
    }

    /// Gives up all entries of a log before `first`, however many there are. None may be written
    /// there later.
    pub fn trim_log(&mut self, log: LogId, first: LogIndex) {
        self.write(Class::Log, entries::log_key(log), Some(entries::trim(first)));
    }

    /// Sends after everything the lane wrote so far is durable.
    pub fn send(&mut self, to: impl Into<Recipients>, message: P::Message) {
        self.release(to, message, Release::Lane);
    }

    /// Sends at once. Only for messages that promise nothing; say why at the call.
    pub fn send_early(&mut self, to: impl Into<Recipients>, message: P::Message) {
        self.release(to, message, Release::Early);
    }

    /// Sends after the newest write of `key`, and the lane's protocol state, is durable.
    pub fn send_after_key(&mut self, to: impl Into<Recipients>, message: P::Message, key: Bytes) {
        self.release(to, message, Release::Key(key));
    }

    /// Sends after the lane's protocol state is durable, without waiting for its data. Say at the
    /// call why the message rests on no stored value.
    pub fn send_after_state(&mut self, to: impl Into<Recipients>, message: P::Message) {
        self.release(to, message, Release::State);
    }

    fn release(&mut self, to: impl Into<Recipients>, message: P::Message, release: Release) {
        self.list.push(Effect::Send { to: to.into(), message, release });
    }

    /// Answers after everything the lane wrote so far is durable.
    pub fn answer(&mut self, ticket: Ticket, outcome: Outcome) {
        self.list.push(Effect::Answer { ticket, outcome, release: Release::Lane });
    }

    /// Answers after the newest write of `key`, and the lane's protocol state, is durable.
    pub fn answer_after_key(&mut self, ticket: Ticket, outcome: Outcome, key: Bytes) {
        self.list.push(Effect::Answer { ticket, outcome, release: Release::Key(key) });
    }

    /// Answers after the newest write of each of `keys`, and the lane's protocol state, is durable.
    pub fn answer_after_keys(&mut self, ticket: Ticket, outcome: Outcome, keys: Arc<[Bytes]>) {
        self.list.push(Effect::Answer { ticket, outcome, release: Release::Keys(keys) });
    }

    /// Answers at once. Only when what the answer says does not rest on this node's own disk; say
    /// why at the call.
    pub fn answer_early(&mut self, ticket: Ticket, outcome: Outcome) {
        self.list.push(Effect::Answer { ticket, outcome, release: Release::Early });
    }

    /// Sets the deadline of a timer.
    pub fn arm(&mut self, timer: P::Timer, at: Time) {
        self.list.push(Effect::Arm { timer, at });
    }

    /// Takes back the deadline of a timer.
    pub fn disarm(&mut self, timer: P::Timer) {
        self.list.push(Effect::Disarm { timer });
    }

    /// Tells the other lanes, and the host, what this node now believes of the ring. It leaves
    /// early: it is a hint, and promises nothing that a crash could take back.
    pub fn announce_ring(&mut self, ring: Arc<Ring>) {
        self.list.push(Effect::Announce(Note::Ring(ring)));
    }

    /// Tells the other lanes who is on the roll. It leaves early: it says whom to wish for, and
    /// promises nothing.
    pub fn announce_roll(&mut self, roll: Arc<Roll>) {
        self.list.push(Effect::Announce(Note::Roll(roll)));
    }

    /// Tells the overlay how much this lane has to do. It leaves early: it is an estimate.
    pub fn announce_load(&mut self, load: Arc<Weighed>) {
        self.list.push(Effect::Announce(Note::Load(load)));
    }

    /// Tells the node which keyspaces there are, after everything the lane wrote so far is durable:
    /// it opens and drops lanes by it.
    pub fn announce_keyspaces(&mut self, keyspaces: Arc<Keyspaces>) {
        self.list.push(Effect::Announce(Note::Keyspaces(keyspaces)));
    }

    /// Tells the catalog what the node has done at a partition of this lane's keyspace, after
    /// everything the lane wrote so far is durable.
    pub fn announce_settled(&mut self, partition: u32, since: u64, settlement: Settlement) {
        self.list.push(Effect::Announce(Note::Settled { partition, since, settlement }));
    }

    /// Has peers observed, each at least so often, in place of those that this lane had observed
    /// before: it hears [`crate::news::News::Silence`] when one of them is silent or back. What is
    /// closed observes nobody.
    pub fn observe(&mut self, peers: Arc<[NodeId]>, every: Every) {
        self.list.push(Effect::Announce(Note::Observe(Observation { peers, every })));
    }

    /// Tells a lane that a peer that it observes is silent or back.
    pub fn announce_silence(&mut self, lane: LaneId, peer: NodeId, is_over: bool) {
        self.list.push(Effect::Announce(Note::Silence { lane, peer, is_over }));
    }

    /// Counts a message that said what no correct peer says. Nothing may have been changed by it.
    pub fn refuse(&mut self, what: &'static str) {
        self.list.push(Effect::Announce(Note::Refused(what)));
    }

    /// Takes out the effects asked for so far, in order. For whoever drives a process on its own.
    pub fn drain(&mut self) -> impl Iterator<Item = Effect<P::Message, P::Timer>> + '_ {
        self.list.drain(..)
    }

    /// Whether a data key is written or deleted by what was asked for so far.
    #[must_use]
    pub fn is_written(&self, key: &[u8]) -> bool {
        self.list.iter().any(|effect| match effect {
            Effect::Write { class: Class::Data, key: written, .. } => written[..] == *key,
            _ => false,
        })
    }

    /// The effects asked for so far, in order. For tests of a process on its own.
    #[must_use]
    pub fn as_slice(&self) -> &[Effect<P::Message, P::Timer>] {
        &self.list
    }
}
