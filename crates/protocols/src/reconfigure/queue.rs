//! Decisions that arrive early wait here: they are installed strictly in order.

use alloc::collections::BTreeMap;
use quorate_kernel::limits::INSTALLS_QUEUED_MAX;
use quorate_kernel::view::Change;

/// The decisions of one group that cannot be installed yet, by the version of the view they follow.
///
/// A node must not jump over a view: its duty as a source of data belongs to each one. What lies
/// between the installed view and the queue is fetched from whoever has installed it. The queue is
/// volatile, for decisions can be fetched again.
#[derive(Clone, Debug, Default)]
pub struct InstallQueue {
    waiting: BTreeMap<u64, Change>,
}

impl InstallQueue {
    /// Keeps the decision that follows the view of version `follows`, unless the installed view is
    /// past that. When the queue is full, the furthest goes. Answers whether no other decision
    /// follows the same view, which none does unless somebody lies; the first one stays then.
    #[must_use]
    pub fn push(&mut self, installed: u64, follows: u64, change: Change) -> bool {
        if follows < installed {
            return true;
        }
        let kept = *self.waiting.entry(follows).or_insert(change);
        if self.waiting.len() > INSTALLS_QUEUED_MAX {
            self.waiting.pop_last();
        }
        kept == change
    }

    /// Takes the decision to install now, if it is there. Call it until nothing is left.
    pub fn next(&mut self, installed: u64) -> Option<Change> {
        self.waiting = self.waiting.split_off(&installed);
        self.waiting.remove(&installed)
    }

    /// The decision that follows the view of this version, if it waits here.
    #[must_use]
    pub fn peek(&self, follows: u64) -> Option<&Change> {
        self.waiting.get(&follows)
    }

    /// Whether decisions wait for one that is not there: fetch what follows the installed view.
    #[must_use]
    pub fn is_missing(&self, installed: u64) -> bool {
        let first = self.waiting.range(installed..).next();
        first.is_some_and(|(follows, _)| *follows > installed)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::replace;
    use super::*;

    /// T17: decisions in reverse order.
    #[test]
    fn decisions_come_out_in_order_and_gaps_show() {
        let mut queue = InstallQueue::default();
        let changes = [replace(1, 4), replace(4, 5), replace(5, 6)];
        assert!(queue.push(7, 9, changes[2]));
        assert!(queue.is_missing(7));
        assert!(queue.push(7, 8, changes[1]));
        assert!(queue.push(7, 8, changes[1]));
        assert!(queue.is_missing(7) && queue.next(7).is_none());
        assert!(queue.push(7, 7, changes[0]));
        assert!(!queue.is_missing(7));
        for (installed, change) in (7..).zip(changes) {
            assert_eq!(queue.next(installed), Some(change));
        }
        assert_eq!(queue.next(10), None);
        assert!(queue.push(10, 9, changes[2]));
        assert!(!queue.is_missing(10) && !queue.is_missing(0), "it was installed long ago");
    }

    #[test]
    fn what_is_installed_otherwise_is_forgotten() {
        let mut queue = InstallQueue::default();
        assert!(queue.push(1, 1, replace(1, 4)));
        assert!(queue.push(1, 3, replace(4, 5)));
        assert_eq!(queue.next(2), None);
        assert!(queue.is_missing(2) && queue.next(3) == Some(replace(4, 5)));
    }

    #[test]
    fn a_full_queue_keeps_what_comes_first() {
        let mut queue = InstallQueue::default();
        let many = INSTALLS_QUEUED_MAX as u64 + 10;
        for follows in (0..many).rev() {
            assert!(queue.push(0, follows, replace(1, 4)));
        }
        assert_eq!(queue.waiting.len(), INSTALLS_QUEUED_MAX);
        assert!(!queue.is_missing(0) && queue.next(0).is_some());
    }

    /// Correct acceptors decide once; whoever says otherwise is not believed.
    #[test]
    fn the_first_of_two_decisions_for_one_view_stays() {
        let mut queue = InstallQueue::default();
        assert!(queue.push(3, 3, replace(1, 4)));
        assert!(!queue.push(3, 3, replace(1, 5)));
        assert_eq!(queue.next(3), Some(replace(1, 4)));
    }
}
