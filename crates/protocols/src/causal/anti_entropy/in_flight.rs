//! Which dots are in flight: replication on write is most likely still bringing them to the peers.
//!
//! An exchange that told them would send most objects twice. So an answer leaves them out for as
//! long as a message usually takes, and what was lost on its way is told by a later one. Of each
//! actor the counters seen are sampled now and then, so a dot stays in flight for one to three
//! spans.

use crate::dots::dot::{Actor, Counter};
use alloc::collections::BTreeMap;
use quorate_kernel::time::{Span, Time};

/// How long replication on write may take before an exchange helps.
const SPAN: Span = Span::millis(100);

/// What was the highest counter of an actor at two moments.
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// The later of the two.
    at: Time,
    /// The highest counter then.
    then: Counter,
    /// The highest counter a span or more before.
    before: Counter,
}

/// The samples of one replica. A restart forgets them: nothing is in flight then.
#[derive(Debug, Default)]
pub struct InFlight(BTreeMap<Actor, Sample>);

impl InFlight {
    /// A dot of this actor is about to be seen; the highest counter so far.
    pub fn note(&mut self, actor: Actor, highest: Counter, now: Time) {
        let Some(sample) = self.0.get_mut(&actor) else {
            self.0.insert(actor, Sample { at: now, then: highest, before: highest });
            return;
        };
        if now >= sample.at + SPAN {
            let is_recent = now < sample.at + SPAN + SPAN;
            sample.before = if is_recent { sample.then } else { highest };
            sample.then = highest;
            sample.at = now;
        }
    }

    /// Nothing more comes of an actor.
    pub fn forget(&mut self, actor: Actor) {
        self.0.remove(&actor);
    }

    /// The highest counter of an actor that is not in flight; none if no counter is.
    pub fn ceiling(&self, actor: Actor, now: Time) -> Option<Counter> {
        let sample = self.0.get(&actor)?;
        if now < sample.at + SPAN {
            Some(sample.before)
        } else {
            (now < sample.at + SPAN + SPAN).then_some(sample.then)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn a_dot_is_in_flight_for_one_to_three_spans() {
        let (mut in_flight, actor) = (InFlight::default(), Actor::default());
        let mut seen = Vec::new();
        // One dot every 7 ms for a second, then none for a while, then one.
        let issued = (0..150).map(|step| 1000 + 7 * step).chain([5000]);
        for (counter, now) in (1u64..).zip(issued) {
            in_flight.note(actor, counter - 1, Time(now * 1_000_000));
            seen.push((counter, now));
            for later in now..now + 7 {
                let ceiling = in_flight.ceiling(actor, Time(later * 1_000_000));
                let is_in_flight = |counter| ceiling.is_some_and(|ceiling| counter > ceiling);
                for (counter, at) in &seen {
                    assert!(later >= at + 100 || is_in_flight(*counter), "{counter} at {later}");
                    assert!(later < at + 300 || !is_in_flight(*counter), "{counter} at {later}");
                }
            }
        }
        assert_eq!(in_flight.ceiling(actor, Time(5_200_000_000)), None);
    }

    #[test]
    fn of_an_actor_that_is_not_known_nothing_is_in_flight() {
        assert_eq!(InFlight::default().ceiling(Actor::default(), Time(0)), None);
    }
}
