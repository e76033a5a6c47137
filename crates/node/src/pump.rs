//! The loop body shared by the server and the simulator.

use crate::host::Host;
use crate::node::Node;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::error::Fatal;
use quorate_kernel::ids::{LaneId, NodeId, Ticket};
use quorate_kernel::operation::Control;
use quorate_kernel::process::Request;
use quorate_kernel::storage::Durable;
use quorate_kernel::time::{Time, WallTime};
use quorate_kernel::watch::Watch;

/// One input of a node.
#[derive(Debug)]
pub enum Input {
    /// A whole frame of a peer.
    Frame(Bytes),
    /// A client asks.
    Request {
        /// Which lane.
        lane: LaneId,
        /// Names the request in the answer.
        ticket: Ticket,
        /// What is asked.
        request: Request,
    },
    /// An operator asks.
    Control {
        /// Which lane.
        lane: LaneId,
        /// Names the request in the answer.
        ticket: Ticket,
        /// What is asked.
        control: Control,
        /// When it must have been answered.
        deadline: Time,
    },
    /// A client follows something.
    Watch {
        /// Which lane.
        lane: LaneId,
        /// Names the watch in its answers.
        ticket: Ticket,
        /// What is followed.
        watch: Watch,
    },
    /// A watch has ended on the client's side.
    Unwatch {
        /// Which lane.
        lane: LaneId,
        /// Which watch.
        ticket: Ticket,
    },
    /// The log has come this far.
    Durable(Durable),
    /// A connection to this peer has ended.
    Unlinked(NodeId),
    /// What clients have sent since then may not be among the inputs so far.
    Unread(Time),
}

/// One turn: every input in order, every timer that is due, one batch.
///
/// # Errors
/// The store failed. The node must not be used again and the host must stop.
pub fn turn(
    node: &mut Node,
    now: Time,
    wall: WallTime,
    inputs: &mut Vec<Input>,
    host: &mut dyn Host,
) -> Result<(), Fatal> {
    node.begin(now, wall);
    for input in inputs.drain(..) {
        match input {
            Input::Frame(bytes) => node.frame(bytes, host),
            Input::Request { lane, ticket, request } => node.request(lane, ticket, request, host),
            Input::Control { lane, ticket, control, deadline } => {
                node.control(lane, ticket, control, deadline, host);
            }
            Input::Watch { lane, ticket, watch } => node.watch(lane, ticket, watch, host),
            Input::Unwatch { lane, ticket } => node.unwatch(lane, ticket, host),
            Input::Durable(durable) => node.durable(durable, host),
            Input::Unlinked(peer) => node.unlinked(peer, host),
            Input::Unread(since) => node.unread(since, host),
        }
    }
    node.fire(host);
    node.end(host)
}
