//! Beginnings and ends of operations as a list from which operations are taken and to
//! which they are put back, last taken first.

use alloc::vec::Vec;

/// The node before the first and after the last event.
pub(crate) const END: u32 = 0;

/// What a node of the list stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// An operation begins.
    Begin(u32),
    /// An operation ends.
    End(u32),
}

#[derive(Clone, Copy)]
struct Node {
    before: u32,
    after: u32,
    event: Event,
}

/// Where an operation's events are.
#[derive(Clone, Copy, Default)]
struct Place {
    begin: u32,
    end: u32,
    /// How many operations begin before this one ends.
    reach: u32,
}

/// The list.
#[derive(Default)]
pub(crate) struct Timeline {
    nodes: Vec<Node>,
    places: Vec<Place>,
    taken: Vec<u64>,
    order: Vec<u64>,
}

impl Timeline {
    /// Puts all operations on the list: when each began and ended, sorted by their beginnings.
    pub fn fill(&mut self, spans: impl Iterator<Item = (u32, u32)>) {
        self.order.clear();
        for (index, (began, ended)) in (0u64..).zip(spans) {
            assert!(began < ended, "an operation begins before it ends");
            self.order.push(u64::from(began) << 32 | index << 1);
            self.order.push(u64::from(ended) << 32 | index << 1 | 1);
        }
        self.order.sort_unstable();
        let count = self.order.len() / 2;
        self.places.clear();
        self.places.resize(count, Place::default());
        self.taken.clear();
        self.taken.resize(count.div_ceil(64), 0);
        self.nodes.clear();
        self.nodes.push(Node { before: END, after: END, event: Event::Begin(0) });
        let mut begun = 0;
        for (node, packed) in (1u32..).zip(&self.order) {
            let index = (packed & u64::from(u32::MAX)) as u32 >> 1;
            let place = &mut self.places[index as usize];
            let event = if packed & 1 == 0 {
                begun += 1;
                place.begin = node;
                Event::Begin(index)
            } else {
                place.end = node;
                place.reach = begun;
                Event::End(index)
            };
            self.nodes[node as usize - 1].after = node;
            self.nodes.push(Node { before: node - 1, after: END, event });
        }
    }

    /// The first event on the list.
    pub fn first(&self) -> u32 {
        self.nodes[END as usize].after
    }

    /// The event after this one; also right for a node that was just taken.
    pub fn after(&self, node: u32) -> u32 {
        self.nodes[node as usize].after
    }

    /// What a node stands for.
    pub fn event(&self, node: u32) -> Event {
        self.nodes[node as usize].event
    }

    /// Takes an operation off the list. Its end goes first, so that what follows its beginning is
    /// still known afterwards.
    pub fn take(&mut self, index: u32) {
        let Place { begin, end, .. } = self.places[index as usize];
        self.unlink(end);
        self.unlink(begin);
        self.taken[index as usize / 64] |= 1 << (index % 64);
    }

    /// Puts the operation taken last back.
    pub fn put_back(&mut self, index: u32) {
        let Place { begin, end, .. } = self.places[index as usize];
        self.link(begin);
        self.link(end);
        self.taken[index as usize / 64] &= !(1 << (index % 64));
    }

    /// Whether an operation is off the list.
    pub fn is_taken(&self, index: u32) -> bool {
        self.taken[index as usize / 64] & (1 << (index % 64)) != 0
    }

    /// Which operations were taken, as bits: all before the returned word, in the words what the
    /// bits say, none after. `last` is the operation whose end is the first end on the list.
    pub fn window(&self, last: u32) -> (u32, &[u64]) {
        let Event::Begin(first) = self.event(self.first()) else {
            unreachable!("an operation begins before it ends")
        };
        let word = first / 64;
        let end = self.places[last as usize].reach.div_ceil(64);
        (word, &self.taken[word as usize..end as usize])
    }

    fn unlink(&mut self, node: u32) {
        let Node { before, after, .. } = self.nodes[node as usize];
        self.nodes[before as usize].after = after;
        self.nodes[after as usize].before = before;
    }

    fn link(&mut self, node: u32) {
        let Node { before, after, .. } = self.nodes[node as usize];
        self.nodes[before as usize].after = node;
        self.nodes[after as usize].before = node;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(timeline: &Timeline) -> Vec<Event> {
        let mut node = timeline.first();
        let mut events = Vec::new();
        while node != END {
            events.push(timeline.event(node));
            node = timeline.after(node);
        }
        events
    }

    #[test]
    fn what_is_taken_comes_back_to_its_place() {
        use Event::{Begin, End};
        let spans = [(0, 5), (1, 2), (3, 9), (7, 8)];
        let mut timeline = Timeline::default();
        timeline.fill(spans.into_iter());
        let all = [Begin(0), Begin(1), End(1), Begin(2), End(0), Begin(3), End(3), End(2)];
        assert_eq!(events(&timeline), all);
        timeline.take(1);
        timeline.take(0);
        assert_eq!(events(&timeline), [Begin(2), Begin(3), End(3), End(2)]);
        assert_eq!(timeline.window(3), (0, &[0b0011][..]));
        timeline.put_back(0);
        assert_eq!(events(&timeline), [Begin(0), Begin(2), End(0), Begin(3), End(3), End(2)]);
        timeline.put_back(1);
        assert_eq!(events(&timeline), all);
    }
}
