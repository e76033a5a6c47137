//! The edge failure detector: one observer, its subjects, and the newest probes of each.
//!
//! A subject is reported when 40 percent of its last ten probes have failed (paper §6), and not
//! when so many have failed in all: on a network that loses one frame in ten thousand everybody
//! would be removed in time.

use super::super::timer::{FAILED, PROBE, WINDOW};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use quorate_kernel::ids::NodeId;
use quorate_kernel::mutant;
use quorate_kernel::time::Time;

/// The newest probes of a subject.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    /// Whether each of them failed, the newest in the lowest bit.
    failed: u16,
    /// How many have failed in all.
    failed_ever: u32,
    /// The probe that is not answered yet.
    open: Option<u64>,
}

impl Window {
    fn note(&mut self, has_failed: bool) {
        let window = (1_u32 << WINDOW) - 1;
        self.failed = ((u32::from(self.failed) << 1 | u32::from(has_failed)) & window) as u16;
        self.failed_ever += u32::from(has_failed);
    }

    fn is_failing(self) -> bool {
        let failed = self.failed.count_ones();
        failed >= FAILED || (mutant!("roll_failures_never_pass") && self.failed_ever >= FAILED)
    }
}

/// The edges from this node to its subjects.
#[derive(Debug, Default)]
pub struct Edges {
    subjects: BTreeMap<NodeId, Window>,
    next_at: Time,
    nonces: u64,
}

impl Edges {
    /// From now on these are the subjects. What is known of those that stay so is kept: whoever is
    /// silent is reported to the next configuration too.
    pub fn observe(&mut self, subjects: &BTreeSet<NodeId>) {
        let forgets = mutant!("roll_edges_forgotten");
        self.subjects.retain(|subject, _| subjects.contains(subject) && !forgets);
        subjects.iter().for_each(|subject| _ = self.subjects.entry(*subject).or_default());
    }

    /// This node stood still: whatever it did not hear says nothing of others.
    pub fn start_anew(&mut self, now: Time) {
        self.subjects.values_mut().for_each(|window| *window = Window::default());
        self.next_at = now;
    }

    /// Whom to probe now, and by which name.
    pub fn probe(&mut self, now: Time) -> Vec<(NodeId, u64)> {
        if now < self.next_at {
            return Vec::new();
        }
        self.next_at = now + PROBE;
        let mut probes = Vec::new();
        for (subject, window) in &mut self.subjects {
            if window.open.is_some() {
                window.note(true);
            }
            self.nonces += 1;
            window.open = Some(self.nonces);
            probes.push((*subject, self.nonces));
        }
        probes
    }

    /// A subject has answered.
    pub fn answered(&mut self, subject: NodeId, nonce: u64) {
        let Some(window) = self.subjects.get_mut(&subject) else { return };
        if window.open == Some(nonce) {
            window.open = None;
            window.note(false);
        }
    }

    /// The subjects that are to be reported.
    pub fn failing(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.subjects.iter().filter(|(_, window)| window.is_failing()).map(|(subject, _)| *subject)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.subjects.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_kernel::time::Span;

    const A: NodeId = NodeId(1);

    /// Probes once a second; each letter says whether that probe is answered.
    fn after(answers: &str) -> Edges {
        let mut edges = Edges::default();
        edges.observe(&BTreeSet::from([A]));
        for (second, answer) in answers.chars().enumerate() {
            let probes = edges.probe(Time(0) + Span::secs(second as u64));
            assert_eq!(probes.len(), 1);
            if answer == 'y' {
                edges.answered(A, probes[0].1);
            }
        }
        edges
    }

    /// The last probe of these is still open.
    fn is_failing(answers: &str) -> bool {
        after(&(std::string::String::from(answers) + "y")).failing().next().is_some()
    }

    #[test]
    fn four_of_the_last_ten_are_reported_and_fewer_are_not() {
        assert!(is_failing("nnnn") && is_failing("yyyyyyyyyyynnnn"));
        assert!(is_failing("nyynyynyyn") || is_failing("nyynyynyn"));
        assert!(!is_failing("nnn") && !is_failing("yyyyyyyyyynnn"));
    }

    #[test]
    fn what_failed_long_ago_does_not_count() {
        assert!(!is_failing(&"yyyyn".repeat(40)), "one in five");
        assert!(!is_failing("nnnyyyyyyyyyyn"), "ten later ones were answered");
    }

    #[test]
    fn only_the_open_probe_can_be_answered_and_once() {
        let mut edges = after("nnnn");
        let open = edges.probe(Time(0) + Span::secs(9))[0].1;
        for nonce in [open - 1, open + 1, 0] {
            edges.answered(A, nonce);
        }
        assert_eq!(edges.failing().next(), Some(A));
        edges.answered(NodeId(2), open);
        for _ in 0..20 {
            edges.answered(A, open);
        }
        assert_eq!(edges.failing().next(), Some(A), "one answer is one");
    }

    #[test]
    fn who_stood_still_begins_anew_and_who_stays_a_subject_is_not_forgotten() {
        let mut edges = after("nnnnn");
        edges.observe(&BTreeSet::from([A, NodeId(2)]));
        assert_eq!((edges.failing().next(), edges.len()), (Some(A), 2));
        edges.start_anew(Time(0));
        assert_eq!(edges.failing().next(), None);
        assert_eq!(edges.probe(Time(0)).len(), 2);
        edges.observe(&BTreeSet::new());
        assert_eq!(edges.len(), 0);
    }
}
