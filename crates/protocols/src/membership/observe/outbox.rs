//! This node's own alerts: gathered for a moment, told to all at once, and told again until the
//! configuration changes. They are never taken back within it.

use super::super::message::Alert;
use super::super::timer::{ALERTS_AGAIN, ALERTS_AGAIN_MAX, TICK};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use quorate_kernel::ids::NodeId;
use quorate_kernel::limits::ROLL_ALERTS_MAX;
use quorate_kernel::mutant;
use quorate_kernel::time::{Span, Time};

/// The alerts of this node in one configuration.
#[derive(Debug, Default)]
pub struct Outbox {
    all: BTreeMap<NodeId, Alert>,
    fresh: BTreeSet<NodeId>,
    /// When the fresh ones leave.
    leaves_at: Time,
    again_at: Time,
    again_wait: Span,
}

impl Outbox {
    /// Raises an alert, unless it was raised.
    pub fn raise(&mut self, alert: Alert, now: Time) {
        let subject = alert.subject;
        if self.all.contains_key(&subject) {
            return;
        }
        if self.fresh.is_empty() {
            self.leaves_at = now + TICK;
        }
        self.all.insert(subject, alert);
        self.fresh.insert(subject);
        self.again_wait = ALERTS_AGAIN;
    }

    /// Whether an alert was raised on a subject.
    #[must_use]
    pub fn has(&self, subject: NodeId) -> bool {
        self.all.contains_key(&subject)
    }

    /// What is to be told now, in messages.
    pub fn take(&mut self, now: Time) -> Vec<Vec<Alert>> {
        let is_again = now >= self.again_at && !self.all.is_empty();
        let is_again = is_again && !mutant!("roll_alerts_told_once");
        let told: Vec<Alert> = if is_again {
            self.all.values().cloned().collect()
        } else if now >= self.leaves_at {
            self.fresh.iter().map(|subject| self.all[subject].clone()).collect()
        } else {
            return Vec::new();
        };
        if told.is_empty() {
            return Vec::new();
        }
        if is_again && now < self.leaves_at && told.len() == self.fresh.len() {
            // Nothing was told yet: it waits for what is found at the same time.
            return Vec::new();
        }
        self.fresh.clear();
        self.again_at = now + self.again_wait;
        self.again_wait = Span((self.again_wait.0 * 2).min(ALERTS_AGAIN_MAX.0));
        told.chunks(ROLL_ALERTS_MAX).map(<[Alert]>::to_vec).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alert(subject: u64) -> Alert {
        Alert { subject: NodeId(subject), rings: 1, member: None }
    }

    fn told(outbox: &mut Outbox, at: u64) -> Vec<usize> {
        outbox.take(Time(0) + Span::millis(at)).iter().map(Vec::len).collect()
    }

    #[test]
    fn alerts_are_told_together_once_each_and_later_again() {
        let mut outbox = Outbox::default();
        let start = Time(0) + Span::millis(1000);
        outbox.raise(alert(1), start);
        assert_eq!(told(&mut outbox, 1000), [], "others may come");
        outbox.raise(alert(2), start + Span::millis(60));
        outbox.raise(alert(2), start + Span::millis(70));
        assert_eq!(told(&mut outbox, 1100), [2]);
        assert_eq!(told(&mut outbox, 1200), []);
        outbox.raise(alert(3), start + Span::millis(300));
        assert_eq!(told(&mut outbox, 1400), [1], "what is new alone");
        assert_eq!(told(&mut outbox, 2300), []);
        assert_eq!(told(&mut outbox, 2400), [3], "all of it");
        assert_eq!(told(&mut outbox, 4300), []);
        assert_eq!(told(&mut outbox, 4400), [3], "two seconds later");
    }

    #[test]
    fn many_go_in_several_messages() {
        let mut outbox = Outbox::default();
        (0..300).for_each(|subject| outbox.raise(alert(subject), Time(0)));
        assert_eq!(told(&mut outbox, 100), [128, 128, 44]);
        assert!(outbox.has(NodeId(7)) && !outbox.has(NodeId(300)));
    }
}
