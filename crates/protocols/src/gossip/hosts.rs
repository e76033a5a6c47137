//! All that is known of all hosts, with sums to compare it by.

use super::record::{Changed, News};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use quorate_kernel::ids::NodeId;
use quorate_kernel::limits::HOSTS_MAX;
use quorate_kernel::rng::{Rng, mix};

/// Into how many parts the hosts are divided for comparing.
pub const BUCKETS: usize = 64;

/// The hosts, in the order of their node ids.
#[derive(Clone, Debug)]
pub struct Hosts {
    known: Vec<News>,
    /// Their node ids, side by side: a search touches little memory.
    nodes: Vec<NodeId>,
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
        Hosts { known: Vec::new(), nodes: Vec::new(), sums, sum, refused: 0 }
    }
}

/// The bucket of a host.
#[must_use]
pub fn bucket(node: NodeId) -> usize {
    (mix(node.0) >> (64 - BUCKETS.ilog2())) as usize
}

/// One number for the sums of all buckets.
fn fold(sums: &[u64]) -> u64 {
    sums.iter().fold(0, |sum, bucket| mix(sum ^ bucket))
}

impl Hosts {
    /// Takes in news of a host. Beyond [`HOSTS_MAX`] nothing is learnt of new ones.
    pub fn learn(&mut self, news: &News) -> Changed {
        let node = news.node();
        match self.place(node) {
            Ok(place) => {
                let known = &mut self.known[place];
                let before = known.hash();
                let changed = known.merge(news);
                if changed.is_any {
                    let difference = before ^ known.hash();
                    self.change(node, difference);
                }
                changed
            }
            Err(_) if self.known.len() >= HOSTS_MAX => {
                self.refused += 1;
                Changed::default()
            }
            Err(place) => {
                self.known.insert(place, news.clone());
                self.nodes.insert(place, node);
                self.change(node, news.hash());
                Changed { is_any: true, is_ring: true, is_standing: true }
            }
        }
    }

    /// The hash of a host's news has changed by so much.
    fn change(&mut self, node: NodeId, difference: u64) {
        self.sums[bucket(node)] ^= difference;
        self.sum = fold(&self.sums);
    }

    fn place(&self, node: NodeId) -> Result<usize, usize> {
        self.nodes.binary_search(&node)
    }

    /// What is known of a host.
    #[must_use]
    pub fn get(&self, node: NodeId) -> Option<&News> {
        self.place(node).ok().map(|place| &self.known[place])
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
    pub fn iter(&self) -> core::slice::Iter<'_, News> {
        self.known.iter()
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
        if self.known.is_empty() {
            return None;
        }
        let mut draws = (0..8).map(|_| &self.known[rng.below(self.known.len() as u64) as usize]);
        draws.find(|news| is_good(news))
    }

    /// Asserts that the order and the sums are right.
    pub fn check(&self) {
        assert!(self.known.len() <= HOSTS_MAX, "hosts are bounded");
        debug_assert!(self.nodes.windows(2).all(|pair| pair[0] < pair[1]));
        debug_assert_eq!(self.sum, fold(&self.sums), "the sum is that of the buckets");
        debug_assert!(self.known.iter().map(News::node).eq(self.nodes.iter().copied()));
    }
}
