//! The numbers of the wire: what is asked, what became of it, and what an event says.

use quorate_kernel::operation::Refusal;
use quorate_kernel::tree::{Failure, What};

/// What a request asks.
pub mod opcode {
    /// Makes a node; its path is answered.
    pub const CREATE: i32 = 1;
    /// Removes a node.
    pub const DELETE: i32 = 2;
    /// Whether a node is there.
    pub const EXISTS: i32 = 3;
    /// What a node has.
    pub const GET_DATA: i32 = 4;
    /// Sets what a node has.
    pub const SET_DATA: i32 = 5;
    /// Who may do what with a node.
    pub const GET_ACL: i32 = 6;
    /// Sets who may do what with a node.
    pub const SET_ACL: i32 = 7;
    /// The names of children.
    pub const GET_CHILDREN: i32 = 8;
    /// Everything before is done.
    pub const SYNC: i32 = 9;
    /// The client is there.
    pub const PING: i32 = 11;
    /// The names of children, and the stat of their parent.
    pub const GET_CHILDREN2: i32 = 12;
    /// Whether a node has a version; only within a multi.
    pub const CHECK: i32 = 13;
    /// Several writes, all or none.
    pub const MULTI: i32 = 14;
    /// Makes a node; its path and stat are answered.
    pub const CREATE2: i32 = 15;
    /// Changes the servers of an ensemble.
    pub const RECONFIG: i32 = 16;
    /// Whether something is watched.
    pub const CHECK_WATCHES: i32 = 17;
    /// Watches something no more.
    pub const REMOVE_WATCHES: i32 = 18;
    /// Makes a container.
    pub const CREATE_CONTAINER: i32 = 19;
    /// Makes a node that may be removed when it was not changed for long.
    pub const CREATE_TTL: i32 = 21;
    /// Several reads.
    pub const MULTI_READ: i32 = 22;
    /// Shows who the client is.
    pub const AUTH: i32 = 100;
    /// Watches again what was watched on another connection.
    pub const SET_WATCHES: i32 = 101;
    /// The paths of the session's ephemeral nodes.
    pub const GET_EPHEMERALS: i32 = 103;
    /// How many nodes are below a node.
    pub const GET_ALL_CHILDREN_NUMBER: i32 = 104;
    /// The same as [`SET_WATCHES`], with watches that stay.
    pub const SET_WATCHES2: i32 = 105;
    /// Watches a node until told otherwise.
    pub const ADD_WATCH: i32 = 106;
    /// Who the client is.
    pub const WHO_AM_I: i32 = 107;
    /// Ends the session.
    pub const CLOSE_SESSION: i32 = -11;
    /// The type of an element of a multi's reply that was not done, and of its end.
    pub const ERROR: i32 = -1;
}

/// The number that a frame has in place of a request's when it is an event.
pub const EVENT_XID: i32 = -1;
/// The zxid of an event's header: it says nothing.
pub(crate) const EVENT_ZXID: i64 = -1;
/// The state of a connection in which events come: it is connected, and may read and write.
pub(crate) const SYNC_CONNECTED: i32 = 3;

/// What became of a request: 0 if it was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code(pub i32);

impl Code {
    /// It was done; of an element of a multi: it would have been, but for another.
    pub const OK: Code = Code(0);
    /// An element of a multi was not tried: one before it had failed.
    pub const RUNTIME_INCONSISTENCY: Code = Code(-2);
    /// The request, or its answer, cannot be put into bytes.
    pub const MARSHALLING_ERROR: Code = Code(-5);
    /// Nothing does it here.
    pub const UNIMPLEMENTED: Code = Code(-6);
    /// What was asked is malformed.
    pub const BAD_ARGUMENTS: Code = Code(-8);
    /// The session has ended.
    pub const SESSION_EXPIRED: Code = Code(-112);
    /// What should show who the client is does not.
    pub const AUTH_FAILED: Code = Code(-115);
    /// The servers of the ensemble cannot be changed by clients.
    pub const RECONFIG_DISABLED: Code = Code(-123);
    /// It would be too much.
    pub const QUOTA_EXCEEDED: Code = Code(-125);

    /// What a refusal is for the client: it is sure that nothing was changed, and the same request
    /// would be refused again. None if the client cannot be told, and its connection must end.
    pub fn of_refusal(refusal: &Refusal) -> Option<Code> {
        match refusal {
            Refusal::NoSession => Some(Code::SESSION_EXPIRED),
            Refusal::TooLarge { .. } | Refusal::TooMany { .. } => Some(Code::QUOTA_EXCEEDED),
            Refusal::Node(Failure::BadArguments) => Some(Code::BAD_ARGUMENTS),
            _ => None,
        }
    }
}

impl From<Failure> for Code {
    fn from(failure: Failure) -> Code {
        match failure {
            Failure::NoNode => Code(-101),
            Failure::NoAuth => Code(-102),
            Failure::BadVersion => Code(-103),
            Failure::NoChildrenForEphemerals => Code(-108),
            Failure::Exists => Code(-110),
            Failure::NotEmpty => Code(-111),
            Failure::SessionExpired => Code::SESSION_EXPIRED,
            Failure::InvalidAcl => Code(-114),
            Failure::AuthFailed => Code::AUTH_FAILED,
            Failure::SessionMoved => Code(-118),
            Failure::NotFollowed => Code(-121),
            Failure::Quota => Code::QUOTA_EXCEEDED,
            Failure::BadArguments => Code::BAD_ARGUMENTS,
            Failure::Unimplemented => Code::UNIMPLEMENTED,
            Failure::NotDone => Code::OK,
            Failure::NotTried => Code::RUNTIME_INCONSISTENCY,
        }
    }
}

/// What an event says in place of what has become of its node.
pub(crate) fn event_type(what: What) -> i32 {
    match what {
        What::Created => 1,
        What::Deleted => 2,
        What::Data => 3,
        What::Children => 4,
    }
}
