//! What the hosts of a world are told of each other.

use super::{Simulated, World};
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::news::News;
use quorate_kernel::ring::{Ring, RingHost, Standing};
use std::string::String;
use std::sync::Arc;
use std::vec::Vec;

impl<P: Simulated> World<P> {
    /// Some hosts take part, from now on.
    pub fn gather(&mut self, hosts: core::ops::Range<u64>) {
        for node in hosts {
            self.ring.push(RingHost {
                who: Incarnation { node: NodeId(node), start: Start(1) },
                address: String::new(),
                zone: String::new(),
                tokens: Vec::from([node]),
                standing: Standing::Up,
                is_suspected: false,
                doors: Vec::new(),
            });
        }
        self.tell_ring();
    }

    /// A host stands otherwise.
    pub fn stand(&mut self, at: usize, standing: Standing) {
        self.change(at, |host| host.standing = standing);
    }

    /// A host is suspected, or is not any more.
    pub fn suspect(&mut self, at: usize, is_suspected: bool) {
        self.change(at, |host| host.is_suspected = is_suspected);
    }

    fn change(&mut self, at: usize, change: impl FnOnce(&mut RingHost)) {
        let node = self.hosts[at].me.node;
        let host = self.ring.iter_mut().find(|host| host.who.node == node);
        change(host.expect("it takes part"));
        self.tell_ring();
    }

    /// All hosts that are up are told.
    pub(super) fn tell_ring(&mut self) {
        if self.ring.is_empty() {
            return;
        }
        self.rings += 1;
        let ring = Arc::new(Ring::new(self.rings, self.ring.clone()));
        for at in 0..self.hosts.len() {
            if self.is_up(at) {
                self.turn(at, |process, cx| process.on_news(News::Ring(&ring), cx));
            }
        }
    }
}
