//! Payloads, which travel apart from events: each node pulls each of them once.
//!
//! A ball says of each event whether its sender has the payload. A node asks one such sender, and
//! another one if no answer comes. What it has it keeps for some rounds after the delivery, so that
//! others find it.

use super::event::{Digest, Event};
use super::key::EventKey;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::NodeId;
use quorate_kernel::invariant;
use quorate_kernel::limits::{EPTO_PAYLOAD_BYTES_MAX, EPTO_PULL_BYTES_MAX, EPTO_PULL_KEYS_MAX};
use quorate_kernel::mutant;

/// For how many rounds one peer may owe a payload before another one is asked.
const ANSWER_ROUNDS: u64 = 3;
/// How many peers that have a payload are remembered.
const HOLDERS_MAX: usize = 4;

#[derive(Clone, Debug)]
struct Held {
    payload: Bytes,
    /// Whether its event waits to be delivered.
    is_waiting: bool,
}

#[derive(Clone, Debug)]
struct Wanted {
    digest: Digest,
    /// Who has it, the next to be asked first.
    holders: VecDeque<NodeId>,
    /// Whom it was asked of last, and when.
    asked: Option<(NodeId, u64)>,
}

/// What was done with a payload that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrived {
    Taken,
    /// It came twice, or too late.
    Unwanted,
    /// There is no room: it is asked for again.
    NoRoom,
    /// It is not what its source broadcast.
    Wrong,
}

/// What to ask of one peer.
pub(super) type Pull = (NodeId, Vec<EventKey>);

/// The payloads of one node.
#[derive(Clone, Debug, Default)]
pub(super) struct Payloads {
    held: BTreeMap<EventKey, Held>,
    held_bytes: usize,
    wanted: BTreeMap<EventKey, Wanted>,
    /// Those whose events were delivered, by the round in which they are dropped.
    kept: VecDeque<(u64, EventKey)>,
}

impl Payloads {
    /// Takes the payload of an event of this node itself.
    pub fn hold(&mut self, key: EventKey, payload: Bytes) {
        self.insert(key, payload);
    }

    /// The payload of a new event is wanted.
    pub fn want(&mut self, event: &Event) {
        if let Some(held) = self.held.get_mut(&event.key) {
            held.is_waiting = true;
        } else if event.payload == Digest::of(&[]) {
            self.insert(event.key, Bytes::new());
        } else {
            let (holders, asked) = (VecDeque::new(), None);
            self.wanted.insert(event.key, Wanted { digest: event.payload, holders, asked });
        }
    }

    /// A peer has it.
    pub fn offer(&mut self, key: &EventKey, from: NodeId) {
        let Some(wanted) = self.wanted.get_mut(key) else { return };
        if wanted.holders.contains(&from) {
            return;
        }
        if wanted.holders.len() < HOLDERS_MAX {
            wanted.holders.push_back(from);
        } else if wanted.asked.is_some_and(|(asked, _)| wanted.holders.back() == Some(&asked)) {
            // Who was asked and has not sent it makes room: all that are known may be gone.
            wanted.holders.pop_back();
            wanted.holders.push_front(from);
        }
    }

    pub fn is_held(&self, key: &EventKey) -> bool {
        self.held.contains_key(key)
    }

    pub fn get(&self, key: &EventKey) -> Option<Bytes> {
        self.held.get(key).map(|held| held.payload.clone())
    }

    /// A peer has sent it. `is_first` says that nothing is delivered before its event: it finds
    /// room.
    pub fn arrive(
        &mut self,
        key: EventKey,
        payload: Bytes,
        is_first: bool,
        bytes_max: usize,
    ) -> Arrived {
        let Some(wanted) = self.wanted.get(&key) else { return Arrived::Unwanted };
        let is_right = Digest::of(&payload) == wanted.digest;
        if !is_right && !mutant!("epto_payload_unchecked") {
            return Arrived::Wrong;
        }
        // What comes first finds room, once: another one may be first before it is delivered.
        let first_max = bytes_max + EPTO_PAYLOAD_BYTES_MAX;
        let has_room = self.make_room(payload.len(), bytes_max)
            || (is_first && self.held_bytes + payload.len() <= first_max);
        if !has_room {
            return Arrived::NoRoom;
        }
        self.wanted.remove(&key);
        self.insert(key, payload);
        Arrived::Taken
    }

    /// A peer does not have it any more.
    pub fn on_absent(&mut self, key: &EventKey, from: NodeId) {
        invariant!(!self.is_held(key) || !self.wanted.contains_key(key), "who has it wants none");
        if let Some(wanted) = self.wanted.get_mut(key) {
            wanted.holders.retain(|holder| *holder != from);
            wanted.asked.take_if(|(asked, _)| *asked == from);
            invariant!(!wanted.holders.contains(&from), "it is not asked again");
        }
    }

    /// The event was delivered, or given up: the payload is kept for others until that round.
    pub fn settle(&mut self, key: EventKey, until: u64) {
        self.wanted.remove(&key);
        if let Some(held) = self.held.get_mut(&key) {
            held.is_waiting = false;
            let last = self.kept.back().map_or(0, |(last, _)| *last);
            self.kept.push_back((until.max(last), key));
        }
    }

    /// A round has passed: whom to ask for what. Nothing is delivered before `first`, so it is
    /// asked for even if there is no room.
    pub fn round(&mut self, round: u64, first: Option<EventKey>, bytes_max: usize) -> Vec<Pull> {
        while let Some((until, key)) = self.kept.front().copied()
            && until <= round
        {
            self.kept.pop_front();
            self.drop_kept(&key);
        }
        let is_open = |asked: &Option<(NodeId, u64)>| {
            asked
                .is_some_and(|(_, at)| round < at + ANSWER_ROUNDS || mutant!("epto_pull_asks_once"))
        };
        let open = self.wanted.values().filter(|wanted| is_open(&wanted.asked));
        let mut bytes = open.map(|wanted| wanted.digest.length()).sum::<usize>();
        bytes += self
            .held
            .values()
            .filter(|held| held.is_waiting)
            .map(|it| it.payload.len())
            .sum::<usize>();
        let mut pulls: BTreeMap<NodeId, (Vec<EventKey>, usize)> = BTreeMap::new();
        for (key, wanted) in self.wanted.iter_mut().filter(|(_, wanted)| !is_open(&wanted.asked)) {
            let length = wanted.digest.length();
            if bytes + length > bytes_max && first != Some(*key) {
                continue;
            }
            let Some(holder) = wanted.holders.pop_front() else { continue };
            wanted.holders.push_back(holder);
            let (keys, asked_bytes) = pulls.entry(holder).or_default();
            let has_room = keys.is_empty() || *asked_bytes + length <= EPTO_PULL_BYTES_MAX;
            if has_room && keys.len() < EPTO_PULL_KEYS_MAX {
                keys.push(*key);
                *asked_bytes += length;
                bytes += length;
                wanted.asked = Some((holder, round));
            }
        }
        pulls.into_iter().map(|(peer, (keys, _))| (peer, keys)).collect()
    }

    /// Nothing that waits is delivered any more.
    pub fn clear(&mut self, until: u64) {
        self.wanted.clear();
        let waiting = self.held.iter().filter(|(_, held)| held.is_waiting).map(|(key, _)| *key);
        for key in waiting.collect::<Vec<_>>() {
            self.settle(key, until);
        }
    }

    pub fn bytes(&self) -> usize {
        self.held_bytes
    }

    pub fn wanted(&self) -> usize {
        self.wanted.len()
    }

    fn insert(&mut self, key: EventKey, payload: Bytes) {
        self.held_bytes += payload.len();
        let before = self.held.insert(key, Held { payload, is_waiting: true });
        self.held_bytes -= before.map_or(0, |before| before.payload.len());
    }

    /// Drops what is only kept for others, the oldest first, until there is room.
    pub fn make_room(&mut self, bytes: usize, bytes_max: usize) -> bool {
        while self.held_bytes + bytes > bytes_max {
            let Some((_, key)) = self.kept.pop_front() else { return false };
            self.drop_kept(&key);
        }
        true
    }

    fn drop_kept(&mut self, key: &EventKey) {
        if self.held.get(key).is_some_and(|held| !held.is_waiting)
            && let Some(held) = self.held.remove(key)
        {
            self.held_bytes -= held.payload.len();
        }
    }

    pub fn check(&self) {
        let bytes: usize = self.held.values().map(|held| held.payload.len()).sum();
        invariant!(bytes == self.held_bytes, "bytes are counted");
        let is_apart = |key: &EventKey| !self.held.contains_key(key);
        invariant!(self.wanted.keys().all(is_apart), "nothing is wanted that is here");
        let kept = self.held.values().filter(|held| !held.is_waiting).count();
        invariant!(kept <= self.kept.len(), "what is kept is dropped one day");
    }
}
