//! Epidemic dissemination: what is new is pushed for a few rounds to a few random peers.
//!
//! A rumour stays hot for ⌈log2 n⌉ + 2 rounds, so it reaches everybody with high probability; what
//! it misses is found by comparing digests ([`super::digest`]). Nothing is sent while nothing is
//! hot.

use super::record::News;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cmp::Reverse;
use quorate_kernel::ids::NodeId;
use quorate_kernel::limits::{HOSTS_MAX, NEWS_BYTES_MAX, NEWS_MESSAGES_MAX};
use quorate_kernel::time::Span;

/// The time between two rounds while something is hot.
pub const ROUND: Span = Span::millis(200);
/// How many peers each round tells.
pub const FANOUT: usize = 3;

/// The rumours that are still told, by the host that they are about.
#[derive(Clone, Debug, Default)]
pub struct Rumours {
    hot: BTreeMap<NodeId, u32>,
}

impl Rumours {
    /// Begins to tell, or tells anew, the news of a host in a cluster of so many.
    pub fn heat(&mut self, node: NodeId, hosts: usize) {
        self.hot.insert(node, rounds(hosts));
    }

    /// Whether anything is hot.
    #[must_use]
    pub fn is_hot(&self) -> bool {
        !self.hot.is_empty()
    }

    /// How many rumours are hot.
    #[must_use]
    pub fn len(&self) -> usize {
        self.hot.len()
    }

    /// Whether nothing is hot.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hot.is_empty()
    }

    /// One round: what to tell to each chosen peer. The youngest rumours go first; what finds no
    /// room stays as hot as it is. `look` tells what is known of a host now.
    pub fn round(&mut self, look: impl Fn(NodeId) -> Option<News>) -> Vec<News> {
        let mut order: Vec<(Reverse<u32>, NodeId)> =
            self.hot.iter().map(|(node, left)| (Reverse(*left), *node)).collect();
        order.sort_unstable();
        let (mut told, mut bytes) = (Vec::new(), 0);
        for (Reverse(left), node) in order {
            let Some(news) = look(node) else {
                self.hot.remove(&node);
                continue;
            };
            bytes += news.record.bytes_max();
            if bytes > NEWS_BYTES_MAX {
                break;
            }
            told.push(news);
            if left > 1 {
                self.hot.insert(node, left - 1);
            } else {
                self.hot.remove(&node);
            }
        }
        told
    }

    /// Asserts what must hold between two calls.
    pub fn check(&self) {
        assert!(self.hot.len() <= HOSTS_MAX, "at most one rumour a host");
        assert!(self.hot.values().all(|left| *left > 0), "a hot rumour has rounds left");
    }
}

/// For how many rounds a rumour is told among so many hosts.
#[must_use]
pub fn rounds(hosts: usize) -> u32 {
    hosts.max(1).next_power_of_two().ilog2() + 2
}

/// Divides news into messages of bounded size; what is beyond the last is left out.
#[must_use]
pub fn pack(news: impl Iterator<Item = News>) -> Vec<Vec<News>> {
    let mut messages: Vec<Vec<News>> = Vec::new();
    let mut bytes = usize::MAX / 2;
    for one in news {
        bytes += one.record.bytes_max();
        if bytes > NEWS_BYTES_MAX {
            if messages.len() == NEWS_MESSAGES_MAX {
                break;
            }
            messages.push(Vec::new());
            bytes = one.record.bytes_max();
        }
        messages.last_mut().expect("one was begun").push(one);
    }
    messages
}
