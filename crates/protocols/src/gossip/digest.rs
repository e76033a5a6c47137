//! Anti-entropy: two nodes find what one of them has missed.
//!
//! ```text
//! a ── Digest(one sum) ──▶ b      equal: nothing follows
//! a ◀── Buckets(sums) ──── b
//! a ── Versions ─────────▶ b      of the buckets that differ
//! a ◀── Missing, Want ──── b      what a lacks, and what b lacks
//! a ── Missing ──────────▶ b
//! ```
//! In a settled cluster that is one small message; sums of 64 buckets keep the lists short.

use super::hosts::{BUCKETS, Hosts, bucket};
use super::record::{News, Order, Version};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::limits::HOSTS_LISTED_MAX;
use quorate_kernel::ring::Standing;
use quorate_kernel::rng::Rng;
use serde::{Deserialize, Serialize};

/// What a node has seen of a host, without the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// The host in the newest start seen.
    pub who: Incarnation,
    /// The newest version of that start.
    pub version: Version,
    /// The newest order about it.
    pub order: Order,
    /// How it stands.
    pub standing: Standing,
    /// Whether it is suspected in that version.
    pub is_suspected: bool,
}

impl Seen {
    fn of(news: &News) -> Seen {
        let record = &news.record;
        Seen {
            who: record.who,
            version: record.version,
            order: record.order,
            standing: record.standing,
            is_suspected: news.suspected_by.is_some(),
        }
    }

    fn rank(&self) -> (bool, Order, Standing) {
        (self.standing == Standing::Left, self.order, self.standing)
    }

    fn stamp(&self) -> (Start, Version, bool) {
        (self.who.start, self.version, self.is_suspected)
    }

    /// Whether merging this would change one that has seen the other.
    fn brings(&self, other: &Seen) -> bool {
        self.rank() > other.rank() || self.stamp() > other.stamp()
    }
}

/// Which buckets differ from a peer's, as bits. A peer with another number of buckets differs in
/// all.
#[must_use]
pub fn differing(hosts: &Hosts, theirs: &[u64]) -> u64 {
    let differs = |place: &usize| theirs.get(*place) != Some(&hosts.sums()[*place]);
    (0..BUCKETS).filter(differs).fold(0, |mask, place| mask | 1 << place)
}

/// What was seen of the hosts in as many of the asked buckets as one message holds, and which
/// buckets these are. It begins at a random one, so that each gets its turn.
pub fn versions(hosts: &Hosts, mask: u64, rng: &mut Rng) -> (u64, Vec<Seen>) {
    let mut counts = [0; BUCKETS];
    hosts.iter().for_each(|news| counts[bucket(news.node())] += 1);
    let (mut chosen, mut room) = (0, HOSTS_LISTED_MAX);
    let first = rng.below(BUCKETS as u64) as usize;
    for place in (0..BUCKETS).map(|step| (first + step) % BUCKETS) {
        if mask & 1 << place != 0 && counts[place] <= room {
            room -= counts[place];
            chosen |= 1 << place;
        }
    }
    let is_chosen = |news: &&News| chosen & 1 << bucket(news.node()) != 0;
    (chosen, hosts.iter().filter(is_chosen).map(Seen::of).collect())
}

/// What a peer that has seen this much of some buckets lacks, and what it has that is missing here.
#[must_use]
pub fn compare(hosts: &Hosts, mask: u64, theirs: &[Seen]) -> (Vec<NodeId>, Vec<NodeId>) {
    let (mut lacks, mut wants) = (Vec::new(), Vec::new());
    for seen in theirs {
        let mine = hosts.get(seen.who.node).map(Seen::of);
        if mine.is_some_and(|mine| mine.brings(seen)) {
            lacks.push(seen.who.node);
        }
        if mine.is_none_or(|mine| seen.brings(&mine)) && wants.len() < HOSTS_LISTED_MAX {
            wants.push(seen.who.node);
        }
    }
    let listed: BTreeSet<NodeId> = theirs.iter().map(|seen| seen.who.node).collect();
    let in_mask = |news: &&News| mask & 1 << bucket(news.node()) != 0;
    let unlisted = hosts.iter().filter(in_mask).map(News::node);
    lacks.extend(unlisted.filter(|node| !listed.contains(node)));
    (lacks, wants)
}
