//! The judge of a roll: it sees what every node installs, and every vote that leaves one.

use crate::membership::{Body, Configuration, Digest, Message, Number, Round};
use quorate_kernel::ids::NodeId;
use std::collections::{BTreeMap, BTreeSet};
use std::format;
use std::string::String;

/// What the judge knows.
#[derive(Default)]
pub struct Judge {
    /// The one chain: what was first installed under each number.
    pub chain: BTreeMap<Number, Configuration>,
    joined: BTreeSet<NodeId>,
    left: BTreeSet<NodeId>,
    /// What each node has voted for in each round of each configuration.
    votes: BTreeMap<(Number, Round, NodeId), Digest>,
    /// The values of classic rounds.
    values: BTreeMap<(Number, Round), Digest>,
    /// How many votes left in classic rounds.
    pub classic: usize,
    wrong: Option<String>,
}

impl Judge {
    fn condemn(&mut self, why: String) {
        self.wrong.get_or_insert(why);
    }

    /// What is wrong, if anything is.
    pub fn verdict(&self) -> Option<&str> {
        self.wrong.as_deref()
    }

    /// The newest configuration anywhere.
    pub fn last(&self) -> Option<&Configuration> {
        self.chain.last_key_value().map(|(_, last)| last)
    }

    /// A node goes on in a configuration; `before` is the one that it was in since its start. What
    /// was installed and not synced may come again after a restart, and is equal then.
    pub fn installed(&mut self, node: NodeId, configuration: &Configuration, before: Number) {
        let number = configuration.id.number;
        if let Some(known) = self.chain.get(&number) {
            if known != configuration {
                self.condemn(format!("{node:?} installs {configuration:?} beside {known:?}"));
            }
        } else {
            self.begins(configuration);
        }
        if number <= before {
            self.condemn(format!("{node:?} goes from {before:?} back to {number:?}"));
        }
    }

    /// The first node installs a configuration.
    fn begins(&mut self, configuration: &Configuration) {
        let number = configuration.id.number;
        let ids = |it: &Configuration| it.ids().collect::<BTreeSet<NodeId>>();
        let now = ids(configuration);
        let before = self.last().map(ids).unwrap_or_default();
        if self.last().is_some_and(|last| last.id.number.next() != number) {
            self.condemn(format!("{number:?} does not follow {:?}", self.last()));
        }
        for node in now.difference(&before) {
            if !self.joined.insert(*node) {
                self.condemn(format!("{node:?} joins a second time in {number:?}"));
            }
        }
        for node in before.difference(&now) {
            if !self.left.insert(*node) {
                self.condemn(format!("{node:?} leaves a second time in {number:?}"));
            }
        }
        if now == before {
            self.condemn(format!("nothing changes in {number:?}"));
        }
        self.chain.insert(number, configuration.clone());
    }

    /// A message leaves a node.
    pub fn sent(&mut self, from: NodeId, message: &Message) {
        let number = message.roll.number;
        let (round, digest) = match &message.body {
            Body::FastVote { digest } => (Round::FAST, *digest),
            Body::Phase2b { round, digest } => (*round, *digest),
            Body::Phase2a { round, value } => {
                let digest = value.digest();
                let known = *self.values.entry((number, *round)).or_insert(digest);
                if known != digest {
                    self.condemn(format!("round {round:?} of {number:?} has two values"));
                }
                return;
            }
            _ => return,
        };
        self.classic += usize::from(round.is_classic());
        let known = *self.votes.entry((number, round, from)).or_insert(digest);
        if known != digest {
            self.condemn(format!("{from:?} votes twice in round {round:?} of {number:?}"));
        }
    }
}
