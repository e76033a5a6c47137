//! Commands of a host: each is sent to the primary of its ring, and again until it is answered.
//!
//! A command that nobody waits for any more goes on: what its client was told is that it may have
//! been done.

use super::frames::frames;
use crate::multicast::RingId;
use crate::smr::partitioned::{Addressed, CommandId, Machine, OUTSTANDING_MAX, Placement};
use crate::vsr::ViewNumber;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::operation::Refusal;
use quorate_kernel::time::{Span, Time};

/// How long a command waits before it is sent again; twice as long each time, up to [`AGAIN_MAX`].
/// What a partition waits for may take hours, and each time may put it into a log once more.
const AGAIN: Span = Span::millis(200);
/// See [`AGAIN`].
const AGAIN_MAX: Span = Span::secs(10);
/// How many commands one message has, and about how many bytes, if it is not one command alone.
const ORDERED_MAX: (usize, usize) = (256, 1024 * 1024);

#[derive(Debug)]
struct Open<M: Machine> {
    addressed: Addressed<M>,
    ring: RingId,
    /// To whom it was sent last, and when.
    sent: Option<(NodeId, Time)>,
    /// How long it waits after that.
    wait: Span,
}

impl<M: Machine> Open<M> {
    /// Whether it was sent, and has waited for long since.
    fn is_late(&self, now: Time) -> bool {
        self.sent.is_some_and(|(_, at)| now - at >= self.wait)
    }
}

/// What a host has in hand.
#[derive(Debug)]
pub(super) struct Orders<M: Machine> {
    last: u64,
    open: BTreeMap<u64, Open<M>>,
    /// The newest view of each ring whose primary is known to have served.
    served: BTreeMap<RingId, ViewNumber>,
}

impl<M: Machine> Orders<M> {
    pub fn new() -> Orders<M> {
        Orders { last: 0, open: BTreeMap::new(), served: BTreeMap::new() }
    }

    /// A command is asked for; what names it.
    ///
    /// # Errors
    /// There are too many, or one of long ago is not answered; nothing was done.
    pub fn ask(
        &mut self,
        me: Incarnation,
        command: M::Command,
        placement: &Placement,
    ) -> Result<u64, Refusal> {
        let acked = self.acked();
        if self.last + 1 - acked > OUTSTANDING_MAX {
            return Err(Refusal::Overloaded);
        }
        let destinations = M::destinations(&command, placement);
        let ring = destinations.ring().expect("a command is of some partition");
        self.last += 1;
        let id = CommandId { client: me, number: self.last };
        let version = placement.version();
        let addressed = Addressed { id, acked, version, destinations, command };
        self.open.insert(self.last, Open { addressed, ring, sent: None, wait: AGAIN });
        Ok(self.last)
    }

    /// All commands up to here are answered.
    fn acked(&self) -> u64 {
        self.open.keys().next().map_or(self.last, |first| first - 1)
    }

    /// A command is answered: its ring, and to whom it was sent; nothing if it was before.
    pub fn answered(&mut self, number: u64) -> Option<(RingId, Option<NodeId>)> {
        let open = self.open.remove(&number)?;
        Some((open.ring, open.sent.map(|(node, _)| node)))
    }

    /// Commands of a ring that were sent to others are sent at once: this one leads it. All are if
    /// it is heard to serve a later view than before: until it does it takes none. What has waited
    /// for long goes on waiting as long after that: it may be known there.
    pub fn renew(&mut self, ring: RingId, primary: NodeId, served: Option<ViewNumber>) {
        let begins = served.filter(|view| self.served.get(&ring).is_none_or(|it| it < view));
        if let Some(view) = begins {
            self.served.insert(ring, view);
        }
        let has_taken_none = begins.is_some() && !mutant!("partitions_trust_who_began");
        let of_ring = self.open.values_mut().filter(|it| it.ring == ring);
        let is_unknown = |to| has_taken_none || to != primary;
        let unknown = of_ring.filter(|it| it.sent.is_some_and(|(to, _)| is_unknown(to)));
        unknown.for_each(|it| it.sent = None);
    }

    /// Whose rings are silent: to whom commands were sent that are due to be sent again, and when.
    pub fn late(&self, now: Time) -> BTreeMap<RingId, (NodeId, Time)> {
        let late = self.open.values().filter(|it| it.is_late(now));
        late.filter_map(|it| Some((it.ring, it.sent?))).collect()
    }

    /// What is to be sent now, by ring: what was not sent, and what has waited for long.
    pub fn due(
        &mut self,
        now: Time,
        primary: impl Fn(RingId) -> Option<NodeId>,
    ) -> Vec<(NodeId, RingId, Vec<Addressed<M>>)> {
        let acked = self.acked();
        let mut due: BTreeMap<RingId, Vec<Addressed<M>>> = BTreeMap::new();
        for open in self.open.values_mut() {
            let is_late = open.is_late(now);
            if open.sent.is_some() && !is_late {
                continue;
            }
            let Some(to) = primary(open.ring) else { continue };
            if is_late && !mutant!("partitions_send_without_end") {
                open.wait = Span((open.wait.0 * 2).min(AGAIN_MAX.0));
            }
            open.sent = Some((to, now));
            // What the client has may be more by now.
            open.addressed.acked = acked;
            invariant!(
                open.addressed.acked < open.addressed.id.number,
                "what is open has no answer"
            );
            due.entry(open.ring).or_default().push(open.addressed.clone());
        }
        let mut sends = Vec::new();
        for (ring, commands) in due {
            let Some(to) = primary(ring) else { continue };
            let frames = frames(commands, ORDERED_MAX).into_iter();
            sends.extend(frames.map(|commands| (to, ring, commands)));
        }
        sends
    }

    /// Whether nothing is in hand.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}
