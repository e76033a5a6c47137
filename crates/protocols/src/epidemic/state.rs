//! The engine's state, and what must hold of it.

use super::adapt::Measured;
use super::flask::Passed;
use super::keys::LAST;
use super::listings::Listings;
use super::ordered::batch::Waiting;
use super::ordered::holes::Holes;
use super::ordered::past::Past;
use super::pending::Pending;
use super::repair::behind::{Behind, Heard};
use super::repair::doubt::Doubt;
use super::repair::join::Standing;
use super::replica::range::{Leaf, Range, leaf, position};
use super::replica::seen::{Seen, Write};
use super::replica::store::Store;
use super::replica::version::RequestId;
use super::{Context, Epidemic, Settings};
use crate::epto::{Epto, EventKey, LogicalTime, Parameters, Scale};
use crate::gossip::cyclon::{Cyclon, Peer, Shape};
use crate::slices::Slices;
use crate::slices::position::Position;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::mutant;
use quorate_kernel::plain::PlainData;
use quorate_kernel::storage::Class;
use quorate_kernel::time::{Span, Time};

/// What one node knows of one keyspace. Stored are `store`, `seen`, `behind`,
/// `last`, and what is lost of `doubt`.
#[derive(Debug)]
pub struct State {
    pub(super) me: Incarnation,
    /// How many rounds there were in this start.
    pub(super) round: u64,
    /// When the last one was.
    pub(super) round_at: Time,
    /// When the next one is due.
    pub(super) round_due: Time,
    /// How long it was to be when it began: altered since, it is no longer and no shorter.
    pub(super) round_length: Span,
    /// Who may be asked when the view is empty.
    pub(super) hints: Vec<Peer>,
    pub(super) cyclon: Cyclon,
    /// How many messages arrive, and how soon.
    pub(super) measured: Measured,
    pub(super) slices: Slices,
    pub(super) epto: Epto,
    pub(super) store: Store,
    pub(super) seen: Seen,
    /// The last event whose effects are stored.
    pub(super) last: Option<EventKey>,
    pub(super) standing: Standing,
    /// How many snapshots this node has asked for in this start, and how many pages of leaves it
    /// has listed: each has its number.
    pub(super) questions: u64,
    /// By how many places what is here is further than any node that is ready, or any ball that
    /// comes, would be believed to be; 0 if it is not.
    pub(super) ahead: u64,
    /// Whether it is ready only because nobody else was there.
    pub(super) is_alone: bool,
    /// Of which range this node has all, so that it may answer.
    pub(super) ready: Option<Range>,
    /// Ranges that it had, and keeps until they are in good hands.
    pub(super) former: Vec<Former>,
    /// What it has heard of ranges for which it does not answer.
    pub(super) behind: Behind,
    pub(super) holes: Holes,
    /// Where something may be missing that others have.
    pub(super) doubt: Doubt,
    /// What the clock showed when.
    pub(super) past: Past,
    pub(super) waiting: Waiting,
    pub(super) pending: BTreeMap<RequestId, Pending>,
    /// Those of them that no clock was moved behind yet as far as their clients had seen.
    pub(super) unplaced: BTreeSet<RequestId>,
    /// The pages of keys that clients wait for.
    pub(super) listings: Listings,
    /// How many requests without order this node has sent on their way in this start.
    pub(super) tries: u64,
    pub(super) passed: Passed,
    /// What this input writes.
    pub(super) writes: Vec<Write>,
    pub(super) counters: Counters,
    /// What was delivered in this start, for the judge of tests.
    #[cfg(test)]
    pub(super) delivered: Vec<EventKey>,
    /// The requests of each of these events, in the order in which they were done.
    #[cfg(test)]
    pub(super) requests: BTreeMap<EventKey, Vec<RequestId>>,
}

/// A range that this node had.
#[derive(Clone, Debug)]
pub struct Former {
    /// Which.
    pub range: Range,
    /// It is kept until this round at least.
    pub until: u64,
    /// Up to when this node has heard of what is deleted there.
    pub since: LogicalTime,
    /// Who had it too.
    pub members: Vec<NodeId>,
    /// The leaves of which nobody has said yet that it has all.
    pub open: BTreeMap<Leaf, Open>,
}

/// A leaf that is handed over, page by page.
#[derive(Clone, Debug, Default)]
pub struct Open {
    /// Somebody has all up to this key.
    pub after: Option<Bytes>,
    /// The first question about what is behind it.
    pub asked: Option<u64>,
}

/// What is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Events that were broadcast.
    pub broadcast: u64,
    /// Writes that were broadcast again.
    pub again: u64,
    /// Requests that were done before, and told again.
    pub repeated: u64,
    /// Payloads that were none of this engine.
    pub malformed: u64,
    /// Records that repair or snapshots brought.
    pub repaired: u64,
    /// Reads that were not answered because a later write is here already.
    pub ahead: u64,
    /// Events that were found missing.
    pub holes: u64,
    /// Those of them that others had.
    pub filled: u64,
    /// Those of them that were given up.
    pub given_up: u64,
    /// Values that differ under one version.
    pub conflicts: u64,
    /// Snapshots taken over.
    pub joins: u64,
    /// Tombstones purged.
    pub purged: u64,
}

impl State {
    /// A node that has just started.
    pub(super) fn new(me: Incarnation, settings: &Settings) -> State {
        let parameters = settings.parameters(1, None);
        State {
            me,
            round: 0,
            round_at: Time(0),
            round_due: Time(0),
            round_length: settings.round,
            hints: Vec::new(),
            cyclon: Cyclon::new(me.node, settings.shape()),
            measured: Measured::default(),
            slices: Slices::new(me.node, settings.bounds),
            epto: Epto::join(me, parameters),
            store: Store::default(),
            seen: Seen::default(),
            last: None,
            standing: Standing::joining(true, None),
            questions: 0,
            ahead: 0,
            is_alone: false,
            ready: None,
            former: Vec::new(),
            behind: Behind::with_nothing(),
            holes: Holes::default(),
            doubt: Doubt::default(),
            past: Past::default(),
            waiting: Waiting::default(),
            pending: BTreeMap::new(),
            unplaced: BTreeSet::new(),
            listings: Listings::default(),
            tries: 0,
            passed: Passed::default(),
            writes: Vec::new(),
            counters: Counters::default(),
            #[cfg(test)]
            delivered: Vec::new(),
            #[cfg(test)]
            requests: BTreeMap::new(),
        }
    }

    /// The range of the own slice; none before there is a slice.
    #[must_use]
    pub fn range(&self) -> Option<Range> {
        let (groups, own) = self.slices.groups().zip(self.slices.own())?;
        Some(Range::of(groups, own))
    }

    /// Whether the own slice has a position.
    pub(super) fn is_mine(&self, at: Position) -> bool {
        self.range().is_some_and(|range| range.has(at))
    }

    /// Whether this node may answer for a position.
    #[must_use]
    pub fn is_ready(&self, at: Position) -> bool {
        self.is_mine(at) && self.ready.is_some_and(|ready| ready.has(at))
    }

    /// Whether it may answer for its whole slice.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let covers = |range: Range| self.ready.is_some_and(|ready| ready.covers(&range));
        self.range().is_some_and(covers)
    }

    /// How many members the own slice has, as far as is known.
    #[cfg(test)]
    pub(super) fn size(&self) -> u16 {
        u16::try_from(self.slices.members().len() + 1).unwrap_or(u16::MAX)
    }

    /// What replicas tell of their number: as many as there can be while the view is being filled,
    /// so that nobody takes few words for those of all.
    pub(super) fn told_size(&self) -> u16 {
        let is_known = self.slices.is_filled() || mutant!("epidemic_members_guessed");
        let size = u16::try_from(self.slices.members().len() + 1);
        size.ok().filter(|_| is_known).unwrap_or(u16::MAX)
    }

    /// Whether what others have of a key may be missing here for good.
    #[must_use]
    pub fn is_degraded(&self, key: &[u8]) -> bool {
        self.doubt.has(leaf(position(key)))
    }

    /// A random member of the own slice.
    pub(super) fn member(&self, rng: &mut quorate_kernel::rng::Rng) -> Option<NodeId> {
        rng.pick(self.slices.members()).map(|peer| peer.who.node)
    }

    /// Drops what is here of a range, all at once.
    pub(super) fn drop_part(&mut self, range: &Range) {
        self.seen.forget_range(range, &mut self.writes);
        self.store.drop_range(range, usize::MAX, &mut self.writes);
        self.behind.drop(range, &mut self.writes);
        self.forget_lost(range);
    }

    /// Nothing is here of ranges for which this node does not answer, but for what is noted.
    pub(super) fn note_rest(&mut self) {
        let others = self.ready.map_or(Vec::new(), |ready| Range::ALL.without(&ready));
        if mutant!("epidemic_never_had_is_as_young_as_the_rest") {
            return;
        }
        for other in others {
            self.behind.note(&other, Heard::Nothing, &mut self.writes);
        }
    }

    /// Sets the last event, which was skipped to from another one.
    pub(super) fn skip_to(&mut self, last: EventKey) {
        if let Some(before) = self.last.filter(|before| *before != last) {
            self.behind.reopen(before.time, &mut self.writes);
        }
        self.set_last(last);
    }

    /// Sets the last event, which is the next one.
    pub(super) fn set_last(&mut self, last: EventKey) {
        if self.last != Some(last) {
            self.behind.reopen(last.time, &mut self.writes);
        }
        self.last = Some(last);
        self.writes.push((LAST, Some(last.to_bytes())));
    }
}

impl Settings {
    /// The shape of the view of neighbours: half as many again as a ball goes to, in the largest
    /// cluster that the limits allow.
    pub(super) fn shape(&self) -> Shape {
        Shape {
            view: self.view,
            shuffle: self.view.div_ceil(3),
            period: self.round,
            ages_when_told: true,
        }
    }

    /// What EpTO goes by among so many nodes, where so many of a million messages arrive: the
    /// formulas, and what is tuned by hand.
    pub(super) fn parameters(&self, nodes: u32, measured_ppm: Option<u32>) -> Parameters {
        let surviving_ppm = self.surviving_ppm.min(measured_ppm.unwrap_or(u32::MAX));
        let scale = Scale { nodes: u64::from(nodes), exponent: self.exponent, surviving_ppm };
        let formula = Parameters::of(scale);
        Parameters {
            fanout: self.fanout.unwrap_or(formula.fanout),
            ttl: self.ttl.unwrap_or(formula.ttl),
            events_max: self.events.unwrap_or(formula.events_max),
            ..formula
        }
    }
}

impl Epidemic {
    /// Has all written that this input has changed. What is sent later waits for it.
    pub(super) fn flush(&mut self, cx: &mut Context<'_>) {
        for (key, value) in self.state.writes.drain(..) {
            cx.fx.write(Class::Data, key, value);
        }
    }

    /// What must hold between two inputs.
    pub(super) fn check_state(&self) {
        let state = &self.state;
        state.cyclon.check();
        state.slices.check();
        state.epto.check();
        state.store.check();
        state.seen.check();
        state.holes.check();
        state.doubt.check();
        state.past.check();
        state.measured.check();
        state.behind.check(state.ready);
        let waits = |id| state.pending.get(id).is_some_and(|one| one.sent.is_none());
        assert!(state.unplaced.iter().all(waits), "what is placed was sent, or has ended");
        assert!(state.writes.is_empty(), "all that was changed was written");
        let is_placed = state.range().is_some();
        assert!(is_placed || state.ready.is_none(), "who has no slice has nothing to answer for");
        let covers = |ready: Range| state.range().is_some_and(|range| range.covers(&ready));
        assert!(state.ready.is_none_or(covers), "nobody answers for another slice");
        assert!(state.ready.is_none_or(|ready| ready.is_sound()), "what is ready is a range");
        let has_place = state.epto.has_place();
        assert!(state.ready.is_none() || has_place, "who answers knows its place in the order");
    }
}
