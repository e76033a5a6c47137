//! How a read was served, told to an operator.

use crate::ids::{Incarnation, NodeId};
use crate::time::Span;
use crate::view::View;
use alloc::string::String;
use alloc::vec::Vec;

/// How one read was served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The value's length; `None` if the key is absent.
    pub value_bytes: Option<usize>,
    /// The key's token on the ring.
    pub token: u64,
    /// Who coordinated.
    pub coordinator: Incarnation,
    /// The view that the operation ended in.
    pub view: View,
    /// The members whose answers it could rest on: they have all that they have to hold.
    pub answered: Vec<NodeId>,
    /// What happened, in order.
    pub steps: Vec<Step>,
}

/// One step of an explained operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// How long after the operation began.
    pub after: Span,
    /// The member it concerns, if it concerns one.
    pub member: Option<NodeId>,
    /// What happened, in the protocol's words.
    pub what: String,
}
