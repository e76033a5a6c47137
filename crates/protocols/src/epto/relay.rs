//! What this node sends with its next ball (the paper's nextBall).

use super::event::{Ball, Copied, Event};
use super::key::EventKey;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::Incarnation;
use quorate_kernel::mutant;

/// The events of which a young enough copy came since the last round.
#[derive(Clone, Debug, Default)]
pub(super) struct NextBall {
    /// With the highest ttl that came. It counts only if the event is not known here.
    copies: BTreeMap<EventKey, (Event, u16)>,
}

impl NextBall {
    /// Relays a copy. Of more than `most` events it takes no other.
    pub fn keep(&mut self, event: Event, ttl: u16, most: usize) -> bool {
        if let Some((_, known)) = self.copies.get_mut(&event.key) {
            *known = ttl.max(*known);
            return true;
        }
        let has_room = self.copies.len() < most;
        if has_room {
            self.copies.insert(event.key, (event, ttl));
        }
        has_room
    }

    /// A round has passed: the balls that each target gets. `age` tells how many rounds an event
    /// has seen that is known here, and `is_held` whether its payload is here. What `me` has
    /// broadcast goes into the next ball as well: if all that has it is lost, no copy comes back
    /// that would be relayed.
    pub fn round(
        &mut self,
        me: Incarnation,
        age: impl Fn(&EventKey) -> Option<u64>,
        is_held: impl Fn(&EventKey) -> bool,
    ) -> Vec<Arc<Ball>> {
        let aged = self.aged(age);
        let repeats =
            |copied: &&Copied| copied.event.key.source == me && !mutant!("epto_says_its_own_once");
        let own = aged.iter().filter(repeats);
        self.copies = own.map(|it| (it.event.key, (it.event, it.ttl))).collect();
        let copies: Vec<Copied> =
            aged.iter().map(|it| Copied { is_held: is_held(&it.event.key), ..*it }).collect();
        Ball::split(&copies).collect()
    }

    /// A round has passed in which nobody is there to be told: what is not too old waits.
    pub fn wait(&mut self, age: impl Fn(&EventKey) -> Option<u64>) -> Vec<Arc<Ball>> {
        let aged = self.aged(age).into_iter();
        self.copies = aged.map(|it| (it.event.key, (it.event, it.ttl))).collect();
        Vec::new()
    }

    /// Takes out what is young enough, a round older.
    fn aged(&mut self, age: impl Fn(&EventKey) -> Option<u64>) -> Vec<Copied> {
        let copies = core::mem::take(&mut self.copies).into_values();
        let aged = copies.filter_map(|(event, ttl)| {
            let hops = u64::from(ttl) + 1;
            let ttl = if mutant!("epto_hops_are_rounds") { None } else { age(&event.key) };
            let ttl = u16::try_from(ttl.unwrap_or(hops)).ok()?;
            (ttl <= event.ttl_max).then_some(Copied { event, ttl, is_held: false })
        });
        aged.collect()
    }

    /// Nothing is relayed of what came before.
    pub fn clear(&mut self) {
        self.copies.clear();
    }

    pub fn len(&self) -> usize {
        self.copies.len()
    }
}
