//! What a measurement puts around the nodes of a light world.

use bytes::Bytes;
use quorate_kernel::effects::Effect;
use quorate_kernel::process::{Process, Table};
use quorate_kernel::storage::Class;
use quorate_kernel::time::Time;

/// What stands around the nodes: what they store, what their work takes, what of their words gets
/// lost, and what else is to happen to them.
pub trait Around<P: Process> {
    /// What is planned, beside what nodes do by themselves.
    type Plan;

    /// When a node can begin with what comes to it now.
    fn begin(&self, _node: usize, now: Time) -> Time {
        now
    }

    /// What a node reads.
    fn table(&self, _node: usize) -> &dyn Table {
        &NoTable
    }

    /// A node has done a step that it began then, and asks for this. Returns when it is over: what
    /// it says is said then.
    fn end(&mut self, _step: Step<'_, P>) -> Time;

    /// Whether a message from one node to another gets lost.
    fn loses(&mut self, _from: usize, _to: usize, _message: &P::Message) -> bool {
        false
    }
}

/// A step of a node.
pub struct Step<'a, P: Process> {
    /// Which node.
    pub node: usize,
    /// Its protocol, after the step.
    pub process: &'a P,
    /// When it began.
    pub begun: Time,
    /// What it asks for.
    pub asked: &'a [Effect<P::Message, P::Timer>],
}

/// Nothing around the nodes: their work takes no time, and nothing is stored or lost.
#[derive(Clone, Copy, Debug)]
pub struct Nothing;

impl<P: Process> Around<P> for Nothing {
    type Plan = ();

    fn end(&mut self, step: Step<'_, P>) -> Time {
        step.begun
    }
}

/// Nothing is ever read: nobody restarts.
struct NoTable;

impl Table for NoTable {
    fn get(&self, _class: Class, _key: &Bytes) -> Option<Bytes> {
        None
    }

    fn scan(&self, _class: Class, _from: &[u8], _each: &mut dyn FnMut(&[u8], &Bytes) -> bool) {}
}
