//! Suspicions heard of others, held back until the suspect could refute them.
//!
//! A node that heard that another is suspected does not believe it at once. The suspect hears it
//! too, and if it lives it raises its version; that refutation is as fast as the rumour. So one
//! observer behind a bad link does not make the whole cluster move data, and after a partition the
//! two sides do not suspect each other's friends. A suspicion that was found by comparing digests
//! is old news, perhaps from behind a healed partition: it waits longer, and the finder asks the
//! suspect itself.

use super::record::{News, Version};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use quorate_kernel::ids::{NodeId, Start};
use quorate_kernel::limits::HOSTS_MAX;
use quorate_kernel::time::{Span, Time};

/// How long a suspicion that was pushed waits.
pub const PUSHED: Span = Span::millis(1000);
/// How long a suspicion that was pulled waits.
pub const PULLED: Span = Span::secs(5);

#[derive(Clone, Copy, Debug)]
struct Doubt {
    stamp: (Start, Version),
    by: NodeId,
    until: Time,
}

/// The suspicions that wait.
#[derive(Clone, Debug, Default)]
pub struct Doubts {
    waiting: BTreeMap<NodeId, Doubt>,
}

impl Doubts {
    /// Notes a suspicion that shall be believed at `until`; returns whether it is new. The earlier
    /// of two times holds.
    pub fn note(&mut self, news: &News, until: Time) -> bool {
        let Some(by) = news.suspected_by else { return false };
        let doubt = Doubt { stamp: news.record.stamp(), by, until };
        let is_full = self.waiting.len() >= HOSTS_MAX;
        match self.waiting.get_mut(&news.node()) {
            Some(known) if known.stamp > doubt.stamp => false,
            Some(known) if known.stamp == doubt.stamp => {
                known.until = known.until.min(until);
                false
            }
            None if is_full => false,
            _ => {
                self.waiting.insert(news.node(), doubt);
                true
            }
        }
    }

    /// Who suspects a host in this stamp, as was heard.
    #[must_use]
    pub fn suspected_by(&self, node: NodeId, stamp: (Start, Version)) -> Option<NodeId> {
        let doubt = self.waiting.get(&node)?;
        (doubt.stamp == stamp).then_some(doubt.by)
    }

    /// A newer stamp of a host is known: what was suspected of older ones is void.
    pub fn refute(&mut self, node: NodeId, stamp: (Start, Version)) {
        if self.waiting.get(&node).is_some_and(|doubt| doubt.stamp < stamp) {
            self.waiting.remove(&node);
        }
    }

    /// Takes out what has waited long enough: who is suspected, in which stamp, by whom.
    pub fn due(&mut self, now: Time) -> Vec<(NodeId, (Start, Version), NodeId)> {
        let mut due = Vec::new();
        self.waiting.retain(|node, doubt| {
            if doubt.until <= now {
                due.push((*node, doubt.stamp, doubt.by));
            }
            doubt.until > now
        });
        due
    }

    /// The observer itself was asleep: everybody gets the time anew.
    pub fn restart(&mut self, now: Time) {
        self.waiting.values_mut().for_each(|doubt| doubt.until = doubt.until.max(now + PUSHED));
    }
}
