//! What leaves a host in a turn, and where it goes.

use super::Host;
use crate::disk::Disk;
use crate::net::Net;
use crate::queue::{HostIndex, Queue, Said};
use quorate_kernel::ids::{NodeId, Ticket};
use quorate_kernel::keyspace::Keyspaces;
use quorate_kernel::operation::Outcome;
use quorate_kernel::ring::{Closing, Ring};
use quorate_kernel::storage::Batch;
use quorate_kernel::wire::Frame;
use quorate_node::host;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where a turn puts what leaves the node.
pub struct Outlet<'a> {
    from: HostIndex,
    now: u64,
    disk: &'a mut Disk,
    net: &'a mut Net,
    queue: &'a mut Queue,
    directory: &'a BTreeMap<NodeId, HostIndex>,
    answers: &'a mut Vec<(Ticket, Outcome)>,
    told: &'a mut Option<Arc<Keyspaces>>,
    closing: &'a mut Closing,
}

impl host::Host for Outlet<'_> {
    fn transmit(&mut self, frame: &Frame) {
        if let Some(to) = self.directory.get(&frame.target.node) {
            self.net.send(self.from, *to, self.now, frame, self.queue);
        }
    }

    fn answer(&mut self, ticket: Ticket, outcome: Outcome) {
        self.answers.push((ticket, outcome));
    }

    fn commit(&mut self, batch: Batch) {
        self.disk.commit(batch, self.now, self.queue);
    }

    fn keyspaces(&mut self, keyspaces: &Arc<Keyspaces>) {
        *self.told = Some(Arc::clone(keyspaces));
    }

    fn ring(&mut self, ring: &Arc<Ring>) {
        *self.closing = ring.closing;
    }
}

/// What all hosts share, lent to one of them for a turn.
pub struct Surroundings<'a> {
    /// The time of the world.
    pub now: u64,
    /// The network.
    pub net: &'a mut Net,
    /// The event queue.
    pub queue: &'a mut Queue,
    /// Where each node is believed to be.
    pub directory: &'a BTreeMap<NodeId, HostIndex>,
    /// Takes the answers of the turn.
    pub answers: &'a mut Vec<(Ticket, Outcome)>,
}

impl Host {
    pub(super) fn outlet<'a>(&'a mut self, around: &'a mut Surroundings<'_>) -> Outlet<'a> {
        let said = Said { run: self.run(), synced: self.disk.synced() };
        around.net.say(self.index, said);
        Outlet {
            from: self.index,
            now: around.now,
            disk: &mut self.disk,
            net: around.net,
            queue: around.queue,
            directory: around.directory,
            answers: around.answers,
            told: &mut self.told,
            closing: &mut self.closing,
        }
    }
}
