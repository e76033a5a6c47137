//! What the replicas of a lane keep in the store.
//!
//! | key | value | class | written by | may be dropped |
//! |---|---|---|---|---|
//! | `vsr`, group u64, `h` | version byte, then postcard of [`Head`] | state | birth, a view, a change of members that is proposed or executed, a trimmed log, a copy that begins or ends | when a member that was removed is told so ([`super::Event::Released`]) |
//! | log of the group's number, index | [`Entry`](super::Entry) | log | a proposal, a PREPARE, a transfer | when the machine has stored what it did, and with a log that another takes the place of |
//!
//! Integers are big-endian. An index is an op and, in its highest 16 bits, how often ops were
//! counted anew ([`super::log::stored`]).

use super::configuration::Configuration;
use super::number::{Op, Position, ViewNumber};
use alloc::vec::Vec;
use bytes::{BufMut, Bytes, BytesMut};
use quorate_kernel::ids::GroupId;
use quorate_kernel::process::Table;
use quorate_kernel::storage::Class;
use serde::{Deserialize, Serialize};

const VERSION: u8 = 1;
const PREFIX: &[u8] = b"vsr";

/// What a replica must not forget, beside its log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The members, as of the last change that was executed.
    pub configuration: Configuration,
    /// The latest view that this node takes part in.
    pub view: ViewNumber,
    /// The last view in which its status was normal (the paper's v'): its log is of that view.
    pub normal: ViewNumber,
    /// Where the log ended when that view began here. Entries behind it count only if they are of
    /// that view: others are left over from a log that another took the place of.
    pub end: Op,
    /// The last entry that is not in the log any more.
    pub base: Position,
    /// The state may hold something of entries up to here: it is right when they were executed.
    pub settled: Op,
    /// A copy of the state is under way: what is stored of it is worth nothing.
    pub is_installing: bool,
    /// Data was forgotten, and the log was not got back since.
    pub has_forgotten: bool,
    /// Too many members had forgotten; since this view the node goes on with what is left, and its
    /// status was not normal since: it has acknowledged nothing in this view or a later one.
    pub lost: Option<ViewNumber>,
    /// The log had an entry that ends this epoch, with other members. If the log is lost, they may
    /// have gone on, and this stays until the log is here again.
    pub is_closing: bool,
    /// This node was removed, and the members of the next epoch may need what it has.
    pub owes: bool,
    /// The entry that began this epoch removed so many members that one of them has what it began
    /// with, and this node has told none of them that it is in it. Where data may be lost.
    pub is_held: bool,
}

impl Head {
    /// That of a node that knows nothing of the group.
    #[must_use]
    pub fn none() -> Head {
        Head {
            configuration: Configuration::none(),
            view: ViewNumber::default(),
            normal: ViewNumber::default(),
            end: Op(0),
            base: Position::default(),
            settled: Op(0),
            is_installing: false,
            has_forgotten: false,
            lost: None,
            is_closing: false,
            owes: false,
            is_held: false,
        }
    }

    pub(super) fn stored(&self) -> Bytes {
        let mut bytes = Vec::from([VERSION]);
        bytes.extend(postcard::to_allocvec(self).expect("plain data always serializes"));
        bytes.into()
    }
}

/// Whether something is stored of a group: this node was told of it in some start.
#[must_use]
pub fn is_known(group: GroupId, table: &dyn Table) -> bool {
    table.get(Class::State, &head(group)).is_some()
}

/// Reads the head of a group, if it is there.
pub(super) fn load(group: GroupId, table: &dyn Table) -> Option<Head> {
    let value = table.get(Class::State, &head(group))?;
    let (version, rest) = value.split_first().expect("a state value has a version");
    assert_eq!(*version, VERSION, "the store's format version guards the values' versions");
    Some(postcard::from_bytes(rest).expect("the store returns what was put into it"))
}

/// The key of a group's head.
pub(super) fn head(group: GroupId) -> Bytes {
    let mut bytes = BytesMut::with_capacity(PREFIX.len() + 9);
    bytes.put_slice(PREFIX);
    bytes.put_u64(group.0);
    bytes.put_u8(b'h');
    bytes.freeze()
}
