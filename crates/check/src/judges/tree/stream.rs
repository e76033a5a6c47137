//! What comes on each connection, in its order.

use super::record::{Event, Record};
use alloc::vec::Vec;
use quorate_kernel::tree::{Act, Changed};

/// Something that comes on a connection.
#[derive(Clone, Copy, Debug)]
pub(super) enum Received<'a> {
    /// What was followed elsewhere is asked for again.
    Refollows,
    /// An answer.
    Answer(usize),
    /// An event.
    Changed(&'a Changed),
}

/// All that comes on one connection, in its order.
#[derive(Debug, Default)]
pub(super) struct Stream<'a> {
    /// Each with whether it tells of what is asked for again.
    pub received: Vec<(bool, Received<'a>)>,
}

/// The streams of all connections.
pub(super) fn streams(record: &Record) -> Vec<Stream<'_>> {
    let mut all: Vec<Stream<'_>> = record.connections.iter().map(|_| Stream::default()).collect();
    for (_, event) in &record.events {
        match event {
            Event::Asked(index) => {
                let asked = &record.asked[*index];
                if let (Some((of, _)), Some(Act::Refollow(_))) = (asked.by, asked.act()) {
                    all[of.0 as usize].add(Received::Refollows);
                }
            }
            Event::Answered(index) => {
                if let Some((of, _)) = record.asked[*index].by {
                    all[of.0 as usize].add(Received::Answer(*index));
                }
            }
            Event::Changed(of, changed) => all[*of].add(Received::Changed(changed)),
            _ => {}
        }
    }
    for stream in &mut all {
        stream.settle(record);
    }
    all
}

impl<'a> Stream<'a> {
    fn add(&mut self, received: Received<'a>) {
        self.received.push((false, received));
    }

    /// Finds out which events tell what has changed while nothing was followed: those that come
    /// before the answer to what is asked for again.
    fn settle(&mut self, record: &Record) {
        let mut is_again = false;
        for (again, received) in &mut self.received {
            match received {
                Received::Refollows => is_again = true,
                Received::Answer(index) => {
                    let is_of = matches!(record.asked[*index].act(), Some(Act::Refollow(_)));
                    is_again &= !is_of;
                }
                Received::Changed(_) => *again = is_again,
            }
        }
    }

    /// The events that tell of the change of their zxid.
    pub fn changed(&self) -> impl Iterator<Item = &'a Changed> {
        self.received.iter().filter_map(|(is_again, received)| match received {
            Received::Changed(changed) if !is_again => Some(*changed),
            _ => None,
        })
    }
}
