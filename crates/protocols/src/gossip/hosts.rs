//! All that is known of all hosts, with sums to compare it by.

use super::record::{Changed, News};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use hashbrown::HashTable;
use quorate_kernel::ids::NodeId;
use quorate_kernel::limits::HOSTS_MAX;
use quorate_kernel::rng::{Rng, mix};

/// Into how many parts the hosts are divided for comparing.
pub const BUCKETS: usize = 64;

/// The hosts, in the order of their node ids.
#[derive(Clone, Debug)]
pub struct Hosts {
    /// In the order in which they were heard of, so that none moves.
    known: Vec<News>,
    /// Where each stands there, by its node id: every message asks for its sender.
    places: HashTable<u32>,
    /// The same in the order of node ids.
    order: Vec<(NodeId, u32)>,
    /// For each bucket, the sum (exclusive or) of the hashes of its hosts' news.
    sums: Box<[u64]>,
    /// What they come to: it is asked for with nearly every message, and changes seldom.
    sum: u64,
    refused: u64,
}

impl Default for Hosts {
    fn default() -> Hosts {
        let sums: Box<[u64]> = vec![0; BUCKETS].into();
        let sum = fold(&sums);
        Hosts {
            known: Vec::new(),
            places: HashTable::new(),
            order: Vec::new(),
            sums,
            sum,
            refused: 0,
        }
    }
}

/// The hash of a node id, the same at every host.
fn hash(node: NodeId) -> u64 {
    mix(node.0)
}

/// The bucket of a host.
#[must_use]
pub fn bucket(node: NodeId) -> usize {
    (hash(node) >> (64 - BUCKETS.ilog2())) as usize
}

/// One number for the sums of all buckets.
fn fold(sums: &[u64]) -> u64 {
    sums.iter().fold(0, |sum, bucket| mix(sum ^ bucket))
}

impl Hosts {
    /// Takes in news of a host. Beyond [`HOSTS_MAX`] nothing is learnt of new ones.
    pub fn learn(&mut self, news: &News) -> Changed {
        let node = news.node();
        if let Some(place) = self.place(node) {
            let known = &mut self.known[place];
            let before = known.hash();
            let changed = known.merge(news);
            if changed.is_any {
                let difference = before ^ known.hash();
                self.change(node, difference);
            }
            return changed;
        }
        if self.known.len() >= HOSTS_MAX {
            self.refused += 1;
            return Changed::default();
        }
        self.insert(news);
        self.change(node, news.hash());
        Changed { is_any: true, is_ring: true, is_standing: true }
    }

    fn insert(&mut self, news: &News) {
        let (node, place) = (news.node(), self.known.len() as u32);
        self.known.push(news.clone());
        let known = &self.known;
        self.places.insert_unique(hash(node), place, |place| hash(known[*place as usize].node()));
        let rank = self.order.partition_point(|(other, _)| *other < node);
        self.order.insert(rank, (node, place));
    }

    /// The hash of a host's news has changed by so much.
    fn change(&mut self, node: NodeId, difference: u64) {
        self.sums[bucket(node)] ^= difference;
        self.sum = fold(&self.sums);
    }

    fn place(&self, node: NodeId) -> Option<usize> {
        let is_it = |place: &u32| self.known[*place as usize].node() == node;
        self.places.find(hash(node), is_it).map(|place| *place as usize)
    }

    /// What is known of a host.
    #[must_use]
    pub fn get(&self, node: NodeId) -> Option<&News> {
        self.place(node).map(|place| &self.known[place])
    }

    /// Whether a host is known, takes part and is not suspected.
    #[must_use]
    pub fn is_alive(&self, node: NodeId) -> bool {
        self.get(node).is_some_and(News::is_alive)
    }

    /// News that says of a host that this node suspects it.
    #[must_use]
    pub fn suspicion(&self, node: NodeId, by: NodeId) -> Option<News> {
        let known = self.get(node)?;
        Some(News { record: Arc::clone(&known.record), suspected_by: Some(by) })
    }

    /// Every host, in the order of node ids.
    pub fn iter(&self) -> impl Iterator<Item = &News> + Clone {
        self.order.iter().map(|(_, place)| &self.known[*place as usize])
    }

    /// How many hosts are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether no host is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// How often a host was not remembered because too many are.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// The sums of the buckets.
    #[must_use]
    pub fn sums(&self) -> &[u64] {
        &self.sums
    }

    /// One number for all that is known.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// A random host for which `is_good` holds; gives up after a few draws, so that looking for a
    /// rare one costs little.
    pub fn pick(&self, rng: &mut Rng, is_good: impl Fn(&News) -> bool) -> Option<&News> {
        for _ in 0..8 {
            let (_, place) = rng.pick(&self.order)?;
            let news = &self.known[*place as usize];
            if is_good(news) {
                return Some(news);
            }
        }
        None
    }

    /// Asserts that each host is found, and listed in its order.
    pub fn check(&self) {
        assert!(self.known.len() <= HOSTS_MAX, "hosts are bounded");
        assert_eq!(self.order.len(), self.known.len(), "each host has one rank");
        assert_eq!(self.places.len(), self.known.len(), "each host has one place");
        debug_assert!(self.order.windows(2).all(|pair| pair[0].0 < pair[1].0));
        debug_assert!(self.iter().map(News::node).eq(self.order.iter().map(|(node, _)| *node)));
    }
}
