//! What operators ask of a running host, and what they are told ([`super::answers`]).

use crate::Fault;
use crate::ring::Report;
use bytes::Bytes;
use quorate_kernel::explanation::Explanation;
use quorate_kernel::ids::NodeId;
use quorate_kernel::keyspace::{KeyspaceOrder, Keyspaces};
use quorate_kernel::operation::Refusal;
use quorate_kernel::part::Examination;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::oneshot;

/// What an operator can ask of a running host.
#[derive(Debug)]
pub enum OperatorRequest {
    /// What it believes of the ring, and the groups it knows.
    Ring,
    /// Read a key, and tell how.
    Explain {
        /// Its name in the catalog.
        keyspace: String,
        /// What is read, as the client writes it.
        key: Bytes,
    },
    /// Who holds what.
    Examine {
        /// Of which keyspace; of the system group if none is named.
        keyspace: Option<String>,
        /// From which partition on.
        from: u64,
        /// A host that leaves: what keeps it is asked too.
        leaver: Option<NodeId>,
    },
    /// Have a host hand over all it holds, or take part again.
    Drain {
        /// Its node id, address or number.
        host: String,
        /// Whether it shall take part again.
        undo: bool,
    },
    /// Count a host as gone for good.
    Remove {
        /// Its node id, address or number.
        host: String,
        /// Although what nobody else holds is lost with it.
        force: bool,
    },
    /// Which keyspaces there are.
    Keyspaces,
    /// Make, alter or drop a keyspace.
    Keyspace(KeyspaceOrder),
    /// Have another host hold a partition of a keyspace.
    Replace {
        /// Its name in the catalog; its engine is placed by partitions.
        keyspace: String,
        /// Which partition.
        partition: u32,
        /// The host's node id, address or number.
        host: String,
    },
    /// Have all hosts end at one time.
    Shutdown {
        /// Although that loses what keyspaces keep in memory alone.
        force: bool,
    },
    /// Replace the faults that frames to other hosts meet.
    Faults(BTreeMap<NodeId, Fault>),
}

impl OperatorRequest {
    /// Whether it may change something after whoever asked was told nothing.
    #[must_use]
    pub fn is_order(&self) -> bool {
        match self {
            OperatorRequest::Drain { .. }
            | OperatorRequest::Remove { .. }
            | OperatorRequest::Keyspace(_)
            | OperatorRequest::Replace { .. } => true,
            // All hosts end, or this one's faults end with it.
            OperatorRequest::Shutdown { .. } | OperatorRequest::Faults(_) => false,
            OperatorRequest::Ring
            | OperatorRequest::Explain { .. }
            | OperatorRequest::Examine { .. }
            | OperatorRequest::Keyspaces => false,
        }
    }
}

/// Why nothing is answered: the host has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// It had before; nothing was changed.
    Before,
    /// It did with the request in hand; what that orders may have been done, or be done yet.
    InHand,
}

/// What is answered.
#[derive(Debug)]
pub enum OperatorReply {
    /// The ring and the groups.
    Ring(Box<Report>),
    /// The keyspaces, as far as this host knows.
    Keyspaces(Arc<Keyspaces>),
    /// How a read was served.
    Explained(Box<Explanation>),
    /// Who holds what.
    Examined(Box<Examination>),
    /// The cluster ends, but for these nodes: they were not reached.
    Closed(Vec<NodeId>),
    /// It was done: the overlay knows, or the faults are in force.
    Done,
    /// It was refused.
    Refused(Refusal),
    /// It names something that does not exist; what, and what there is.
    Unknown(String),
}

/// A request on its way.
pub(crate) struct OperatorCall {
    pub request: OperatorRequest,
    /// When a lane must have answered it at the latest; what the host is configured to take else.
    pub deadline: Option<Instant>,
    pub reply: oneshot::Sender<OperatorReply>,
}
