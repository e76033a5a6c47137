//! The order in which events are delivered (the paper's Algorithm 2), with whole keys.

use super::event::Event;
use super::key::EventKey;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use quorate_kernel::limits::EPTO_SETTLED_MAX;
use quorate_kernel::{invariant, mutant};

/// How many rounds more than its TTL an event is old when it is stable. With logical clocks an
/// event that comes before it may be broadcast until it has reached everybody, and must arrive too.
pub const STABLE_AFTER: u16 = 1;

/// What has become of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// Its event is new.
    New,
    /// Its event waits already.
    Known,
    /// Its event was delivered, given up, or found late before.
    Settled,
    /// Later events were delivered already: this node has a hole.
    Late,
    /// It says something else of its event than an earlier copy did.
    Conflict,
    /// There are too many.
    Crowded,
}

/// What has become of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Delivered,
    /// Its payload was not found in time.
    Hole,
}

/// What an event is judged by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// The round that it is, counted by this node.
    pub round: u64,
    /// The TTL of this node's own events: no event is stable before one of them would be.
    pub own_ttl: u16,
    /// For how many rounds a payload is waited for.
    pub hold_rounds: u16,
    /// The most events that wait.
    pub events_max: usize,
}

/// The round, in this node's count, at whose end an event has seen no round.
type Born = i64;

#[derive(Clone, Copy, Debug)]
struct Received {
    event: Event,
    /// By its oldest copy. Ages need no counting then.
    born: Born,
}

/// The events that wait, and those that do not any more.
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    received: BTreeMap<EventKey, Received>,
    /// What was delivered last, or given up, or is in the state that was taken over.
    last: Option<EventKey>,
    /// The newest of those that do not wait any more.
    settled: BTreeMap<EventKey, Born>,
    /// The highest of which it is not known what became of it.
    forgotten: Option<EventKey>,
}

fn age(born: Born, round: u64) -> u64 {
    u64::try_from(round as i64 - born).unwrap_or(0)
}

impl Received {
    fn age(&self, round: u64) -> u64 {
        age(self.born, round)
    }

    fn is_stable(&self, rules: &Rules) -> bool {
        let ttl = rules.held_for(&self.event);
        self.age(rules.round) > u64::from(ttl + STABLE_AFTER)
    }

    fn is_waited_out(&self, rules: &Rules) -> bool {
        let ttl = rules.held_for(&self.event);
        self.age(rules.round) > u64::from(ttl + STABLE_AFTER + rules.hold_rounds)
    }
}

impl Rules {
    /// When a copy was born that comes now. The round in which it comes does not count: a copy
    /// that is passed on at once has seen no round, so however fast it goes from node to node, its
    /// ttl is never above the rounds that have passed since the broadcast. Counted hop by hop, as
    /// published, an event is old as soon as it was passed on TTL times, which may be at once.
    fn born(&self, ttl: u16) -> Born {
        let counts_hops = mutant!("epto_hops_are_rounds");
        self.round as i64 + i64::from(!counts_hops) - i64::from(ttl)
    }

    /// For how long an event is held: what comes before it may live longer than itself, if its
    /// source takes the cluster for a smaller one than this node does.
    fn held_for(&self, event: &Event) -> u16 {
        let ttl = self.ttl_of(event);
        if mutant!("epto_short_ttl_is_stable") { ttl } else { ttl.max(self.own_ttl) }
    }

    /// For how long an event is relayed.
    pub fn ttl_of(&self, event: &Event) -> u16 {
        if mutant!("epto_ttl_of_receiver") { self.own_ttl } else { event.ttl_max }
    }
}

impl Order {
    /// A copy of an event that is young enough.
    pub fn take(&mut self, event: &Event, ttl: u16, rules: &Rules) -> Taken {
        let born = rules.born(ttl);
        if let Some(known) = self.received.get_mut(&event.key) {
            known.born = known.born.min(born);
            return if known.event == *event { Taken::Known } else { Taken::Conflict };
        }
        if let Some(known) = self.settled.get_mut(&event.key) {
            *known = born.min(*known);
            return Taken::Settled;
        }
        if self.forgotten.is_some_and(|forgotten| event.key <= forgotten) {
            return Taken::Settled;
        }
        if self.last.is_some_and(|last| event.key.is_past(last)) {
            self.settle(event.key, born);
            return Taken::Late;
        }
        if self.received.len() >= rules.events_max {
            return Taken::Crowded;
        }
        self.received.insert(event.key, Received { event: *event, born });
        Taken::New
    }

    /// A copy that is too old to be relayed, put in all the same: a planted bug.
    pub fn take_unseen(&mut self, event: &Event, ttl: u16, rules: &Rules) -> bool {
        let born = rules.born(ttl);
        let is_new =
            !self.settled.contains_key(&event.key) && !self.received.contains_key(&event.key);
        if is_new {
            self.received.insert(event.key, Received { event: *event, born });
        }
        is_new
    }

    /// A round has passed: what is delivered or given up, in this order. `is_held` tells whose
    /// payload is here.
    pub fn round(
        &mut self,
        rules: &Rules,
        is_held: impl Fn(&EventKey) -> bool,
    ) -> Vec<(Event, Fate)> {
        let fate = |received: &Received| {
            if !received.is_stable(rules) {
                None
            } else if is_held(&received.event.key) {
                Some(Fate::Delivered)
            } else {
                let is_over = received.is_waited_out(rules) || mutant!("epto_holds_nothing_back");
                is_over.then_some(Fate::Hole)
            }
        };
        let waiting = self.received.values().find(|received| fate(received).is_none());
        let waiting = waiting.map(|received| received.event.key);
        let may_go = |key: EventKey| waiting.is_none_or(|waiting| key.may_precede(waiting));
        let front = self.received.values().take_while(|it| may_go(it.event.key));
        let gone: Vec<(Event, Fate)> = front.filter_map(|it| Some((it.event, fate(it)?))).collect();
        for (event, _) in &gone {
            let born = self.received.remove(&event.key).map_or(0, |it| it.born);
            self.settle(event.key, born);
            self.last = Some(event.key);
        }
        gone
    }

    /// The events that wait are not delivered here any more: what came of them is in the state that
    /// this node will take over, or comes again.
    pub fn clear(&mut self) {
        self.received.clear();
    }

    /// Drops the lower half of what waits while this node has no place, if there is no room: a
    /// state that takes long to come may not have them, and then a newer one is needed.
    pub fn shed(&mut self, rules: &Rules) -> Vec<EventKey> {
        let is_full = self.received.len() >= rules.events_max;
        let half = self.received.keys().nth(self.received.len() / 2).copied();
        half.filter(|_| is_full).map_or(Vec::new(), |until| self.drop_until(until))
    }

    /// A state is taken over that has all up to `last`.
    pub fn resume(&mut self, last: Option<EventKey>) -> Vec<EventKey> {
        let dropped = last.map_or(Vec::new(), |last| self.drop_until(last));
        self.last = self.last.max(last);
        dropped
    }

    fn drop_until(&mut self, until: EventKey) -> Vec<EventKey> {
        let dropped = self.received.range(..=until).map(|(key, _)| *key).collect();
        self.received.retain(|key, _| *key > until);
        self.settled.retain(|key, _| *key > until);
        self.forgotten = self.forgotten.max(Some(until));
        dropped
    }

    fn settle(&mut self, key: EventKey, born: Born) {
        self.settled.insert(key, born);
        while self.settled.len() > EPTO_SETTLED_MAX {
            let (lowest, _) = self.settled.pop_first().expect("it is not empty");
            self.forgotten = self.forgotten.max(Some(lowest));
        }
    }

    /// How many rounds an event has seen that is known here.
    pub fn age(&self, key: &EventKey, round: u64) -> Option<u64> {
        let born = self.received.get(key).map(|it| it.born).or(self.settled.get(key).copied());
        born.map(|born| age(born, round))
    }

    /// The last event that was delivered or given up.
    pub fn last(&self) -> Option<EventKey> {
        self.last
    }

    /// The highest event that was dropped without being delivered, or is in a state taken over.
    pub fn forgotten(&self) -> Option<EventKey> {
        self.forgotten
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.received.len()
    }

    /// The next event in the order, as far as it is known.
    pub fn first(&self) -> Option<EventKey> {
        self.received.keys().next().copied()
    }

    pub fn check(&self) {
        let is_open = |key: &EventKey| self.last.is_none_or(|last| !key.is_past(last));
        invariant!(self.settled.len() <= EPTO_SETTLED_MAX, "what is remembered is bounded");
        debug_assert!(self.received.keys().all(is_open), "what waits comes after what was last");
    }
}
