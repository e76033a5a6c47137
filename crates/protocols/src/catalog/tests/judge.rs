//! What must hold of all hosts together.

use super::world::World;
use quorate_kernel::ids::Ticket;
use quorate_kernel::operation::Outcome;
use std::collections::BTreeMap;

impl World {
    /// One chain: two hosts that know a link of some number know the same. No two keyspaces of one
    /// name, no lane twice.
    pub(super) fn judge(&mut self, host: usize) {
        let Some(lane) = &self.hosts[host].lane else { return };
        let stored = &lane.state.stored;
        for (number, entry) in &stored.entries {
            let known = self.chain.entry(*number).or_insert_with(|| entry.clone());
            assert_eq!(known, entry, "seed {}: link {number} at host {host}", self.seed);
        }
        let Some(catalog) = &stored.catalog else { return };
        let mut names = BTreeMap::new();
        for keyspace in catalog.keyspaces() {
            let before = names.insert(keyspace.name.clone(), keyspace.lane);
            assert!(before.is_none(), "seed {}: two called {}", self.seed, keyspace.name);
            let had = (keyspace.name.clone(), keyspace.created);
            let first = self.lanes.entry(keyspace.lane).or_insert_with(|| had.clone());
            assert_eq!(*first, had, "seed {}: lane {:?} again", self.seed, keyspace.lane);
        }
    }

    /// What was answered is true: what was done stands in the chain, once, and what changed nothing
    /// does not. To be asked when all hosts know the whole chain.
    pub fn judge_answers(&self) {
        for (ticket, outcome) in &self.answers {
            let Some(origin) = self.origins.get(ticket) else { continue };
            let count = self.chain.values().filter(|entry| entry.origin == *origin).count();
            let is_true = match outcome {
                // An order that finds nothing to change is done without a decree.
                Outcome::Noted => count <= 1,
                Outcome::Refused(refusal) if refusal.may_have_applied() => count <= 1,
                _ => count == 0,
            };
            assert!(is_true, "seed {}: {outcome:?}, and {count} decrees of it", self.seed);
        }
    }

    /// How many of the orders that were answered well stand in the chain.
    pub fn done(&self) -> usize {
        let done = self.answers.iter().filter(|(_, outcome)| **outcome == Outcome::Noted);
        let stands = |ticket: &Ticket| {
            self.chain.values().any(|entry| Some(&entry.origin) == self.origins.get(ticket))
        };
        done.filter(|(ticket, _)| stands(ticket)).count()
    }
}
