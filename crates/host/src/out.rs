//! What a turn lets out: to peers, clients, operators and the disk.

use super::cluster::links::Links;
use super::disk::Disk;
use super::operators::answers::Operators;
use quorate_kernel::ids::Ticket;
use quorate_kernel::keyspace::Keyspaces;
use quorate_kernel::operation::Outcome;
use quorate_kernel::ring::Ring;
use quorate_kernel::storage::Batch;
use quorate_kernel::wire::Frame;
use quorate_node::host::Host;
use std::sync::Arc;

/// What a turn lets out.
pub(super) struct Out<'a> {
    pub links: &'a mut Links,
    pub operators: &'a mut Operators,
    pub answers: &'a mut Vec<(Ticket, Outcome)>,
    pub fresh: &'a mut Option<Arc<Keyspaces>>,
    pub disk: &'a Disk,
}

impl Host for Out<'_> {
    fn transmit(&mut self, frame: &Frame) {
        self.links.sent.count(frame);
        self.links.send(frame);
    }

    fn answer(&mut self, ticket: Ticket, outcome: Outcome) {
        self.answers.push((ticket, outcome));
    }

    fn commit(&mut self, batch: Batch) {
        self.disk.commit(batch);
    }

    fn keyspaces(&mut self, keyspaces: &Arc<Keyspaces>) {
        *self.fresh = Some(Arc::clone(keyspaces));
    }

    fn ring(&mut self, ring: &Arc<Ring>) {
        self.links.set_ring(ring);
        self.operators.set_ring(ring);
    }
}
