//! What will happen in a world of its own clock, in order.

use quorate_kernel::time::Time;
use std::collections::BTreeMap;

/// Events by their times; those of one time stay in the order in which they were pushed.
pub struct Timeline<E> {
    queue: BTreeMap<(Time, u64), E>,
    count: u64,
}

impl<E> Default for Timeline<E> {
    fn default() -> Self {
        Timeline { queue: BTreeMap::new(), count: 0 }
    }
}

impl<E> Timeline<E> {
    /// Something that will happen then.
    pub fn push(&mut self, at: Time, event: E) {
        self.count += 1;
        self.queue.insert((at, self.count), event);
    }

    /// Takes the next event and its time, unless it is later than `end`.
    pub fn pop(&mut self, end: Time) -> Option<(Time, E)> {
        let first = self.queue.first_entry()?;
        let (at, _) = *first.key();
        (at <= end).then(|| (at, first.remove()))
    }

    /// What is not kept will not happen.
    pub fn retain(&mut self, mut keep: impl FnMut(&E) -> bool) {
        self.queue.retain(|_, event| keep(event));
    }
}

#[test]
fn events_of_one_time_keep_their_order_and_later_ones_wait() {
    use std::vec::Vec;
    let mut timeline = Timeline::default();
    for (at, event) in [(2, 'b'), (1, 'a'), (2, 'c'), (3, 'd'), (2, 'x')] {
        timeline.push(Time(at), event);
    }
    timeline.retain(|event| *event != 'x');
    let mut until = |end| core::iter::from_fn(|| timeline.pop(Time(end))).collect::<Vec<_>>();
    assert_eq!(until(2), [(Time(1), 'a'), (Time(2), 'b'), (Time(2), 'c')]);
    assert_eq!((until(2), until(3)), (Vec::new(), Vec::from([(Time(3), 'd')])));
}
