//! Clients that have sent something, in the order in which they are read.

use quorate_kernel::time::Time;
use std::collections::VecDeque;

/// The queue of those that are read in turn, and up to when all that was sent has been read. One
/// that was closed may have left its key.
#[derive(Debug, Default)]
pub(super) struct Readable {
    /// Keys, each with a time before which nothing that it stands for was sent unseen.
    queue: VecDeque<(usize, Time)>,
    /// When the poller was last asked and had told all that it knew, and when the time before.
    looked: Time,
    before: Time,
}

impl Readable {
    /// The poller tells now who has sent something: of all clients, or of as many as it can.
    pub fn look(&mut self, now: Time, is_all: bool) {
        if is_all {
            (self.before, self.looked) = (self.looked, now);
        }
    }

    /// A client has sent something, as the poller has just told.
    pub fn push(&mut self, key: usize) {
        self.queue.push_back((key, self.looked));
    }

    /// A client has come, and may have sent something while it waited at the door.
    pub fn push_new(&mut self, key: usize) {
        self.queue.push_back((key, self.before));
    }

    /// When the poller was last asked.
    pub fn looked(&self) -> Time {
        self.looked
    }

    /// Whose turn it is.
    pub fn pop(&mut self) -> Option<usize> {
        Some(self.queue.pop_front()?.0)
    }

    /// Whether nobody has sent anything.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// All that clients had sent by then was read.
    pub fn read_upto(&self) -> Time {
        self.queue.front().map_or(self.looked, |(_, since)| *since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_read_up_to_when_the_first_that_waits_was_heard_of() {
        let mut readable = Readable::default();
        readable.look(Time(10), true);
        assert_eq!(readable.read_upto(), Time(10));
        readable.push(1);
        readable.look(Time(20), true);
        readable.push(2);
        readable.push_new(3);
        assert_eq!(readable.read_upto(), Time(10), "nobody is read, however long");
        readable.look(Time(30), true);
        assert_eq!((readable.pop(), readable.read_upto()), (Some(1), Time(20)));
        assert_eq!((readable.pop(), readable.read_upto()), (Some(2), Time(10)), "at the door");
        assert_eq!((readable.pop(), readable.read_upto()), (Some(3), Time(30)));
        assert!(readable.is_empty() && readable.pop().is_none());
    }

    #[test]
    fn a_poller_that_has_more_to_tell_says_nothing_of_who_is_silent() {
        let mut readable = Readable::default();
        readable.look(Time(10), true);
        readable.look(Time(20), false);
        assert_eq!(readable.read_upto(), Time(10));
        readable.push(1);
        readable.look(Time(30), true);
        assert_eq!(readable.read_upto(), Time(10));
        readable.pop();
        assert_eq!(readable.read_upto(), Time(30));
    }
}
