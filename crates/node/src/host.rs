//! What the outside must offer. Two implementations: the server's core thread and the simulator.

use alloc::sync::Arc;
use quorate_kernel::ids::Ticket;
use quorate_kernel::keyspace::Keyspaces;
use quorate_kernel::operation::Outcome;
use quorate_kernel::ring::Ring;
use quorate_kernel::storage::Batch;
use quorate_kernel::wire::Frame;

/// Takes what a turn lets out.
pub trait Host {
    /// Sends a frame to its target node. It may be lost; protocols repeat.
    fn transmit(&mut self, frame: &Frame);

    /// Answers a client's request. The client may be gone.
    fn answer(&mut self, ticket: Ticket, outcome: Outcome);

    /// Takes the writes of a turn for the disk thread, which applies batches in the order of their
    /// numbers and reports progress by [`crate::pump::Input::Durable`].
    fn commit(&mut self, batch: Batch);

    /// Which keyspaces there are, durably; the node opens and drops their lanes in the same turn.
    fn keyspaces(&mut self, _keyspaces: &Arc<Keyspaces>) {}

    /// What the node believes of the ring has changed: where peers may be found, and who is there.
    fn ring(&mut self, ring: &Arc<Ring>);
}
