//! Messages on their way.

use super::Scripted;
use bytes::BytesMut;
use quorate_kernel::effects::Recipients;
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::wire::Body;
use std::vec::Vec;

/// A message on its way.
#[derive(Clone)]
pub struct Flight {
    pub(crate) from: Incarnation,
    pub(crate) to: NodeId,
    /// The only start of the target that takes it; 0 means any.
    pub(super) start: Start,
    pub(crate) name: &'static str,
    pub(crate) body: Body,
}

/// The copies of a message, one to each of those to whom it goes.
pub(super) fn flights<P: Scripted>(
    from: Incarnation,
    to: &Recipients,
    message: &P::Message,
) -> Vec<Flight> {
    let body = Body::encode(message, &mut BytesMut::new()).expect("it fits");
    let flight = |to, start| Flight { from, to, start, name: P::name(message), body: body.clone() };
    match to {
        Recipients::One(one) => Vec::from([flight(one.node, one.start)]),
        Recipients::Group(nodes) => nodes.iter().map(|node| flight(*node, Start(0))).collect(),
    }
}
