//! What the engine keeps in the store.
//!
//! | class | key | value | written by | may be dropped |
//! |---|---|---|---|---|
//! | state | `group`, group (8) | postcard of [`Record`](super::group::Record) | start, install, transfer, an acceptor's promise | when a member that left has handed everything over; after a split when no host can ask for it any more ([`super::views::parents`]) |
//! | state | `decided`, group (8), version (8) | postcard of the [`Change`] that followed it | install | [`DECISIONS_MAX`] versions later |
//! | state | `gathered`, group (8) | postcard of a version: the view of even size of which all members are known to have gathered | a listing for a removal, tending | never: the next such view overwrites it |
//! | state | `left`, group (8) | postcard of the version in which this node was no member any more | leaving a group | never: an invitation may be late |
//! | state | `kept`, group (8), slot (4) | postcard of the version with which the slot's membership ended | leaving a group | when every member holds everything |
//! | state | `garbage`, slot (4), low (8), high (8) | empty | leaving a group | when the range of the slot is empty |
//! | state | `slot` | postcard of the highest slot used | a new membership | never |
//! | state | `crashes` | postcard of the crash vector | a peer's refill | never |
//! | data | slot (4), token (8) and key | [`Record`](super::record::Record) | WriteA, transfer | with its slot; a tombstone when all members hold it ([`super::replicate::purge`]) |
//!
//! Integers are big-endian. Each state value begins with a version byte. Each membership of a node
//! in a group has a **slot** of its own, so what an earlier membership left behind is never taken
//! for data of a later one. Within a slot data stands in ring order, so scans, transfers and
//! cursors (a 64-bit token, and a key among those that share it) all follow it. On the wire a
//! key is its token and the client's key, without a slot.

use crate::order::{Order, TOKEN_BYTES};
use crate::quorum::CrashVector;
use alloc::vec::Vec;
use bytes::{BufMut, Bytes, BytesMut};
use quorate_kernel::arena::Arena;
use quorate_kernel::error::WireError;
use quorate_kernel::ids::GroupId;
use quorate_kernel::limits::KEY_BYTES_MAX;
use quorate_kernel::operation::Cursor;
use quorate_kernel::process::Table;
use quorate_kernel::storage::Class;
use quorate_kernel::view::Range;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

const VERSION: u8 = 1;
const SLOT_BYTES: usize = 4;
/// How many decisions of a group are kept for members that lag behind.
pub(super) const DECISIONS_MAX: u64 = 64;

/// One membership's part of the store.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Slot(pub u32);

impl Slot {
    /// The stored form of a wire key.
    pub fn stored(self, data_key: &[u8]) -> Bytes {
        let mut bytes = BytesMut::with_capacity(SLOT_BYTES + data_key.len());
        bytes.put_u32(self.0);
        bytes.put_slice(data_key);
        bytes.freeze()
    }

    /// The same, for a key that is soon dropped.
    pub fn stored_in(self, data_key: &[u8], arena: &mut Arena) -> Bytes {
        arena.join(&[&self.0.to_be_bytes(), data_key])
    }

    /// The first stored key of a token.
    pub fn first_at(self, token: u64) -> Bytes {
        self.stored(&token.to_be_bytes())
    }

    /// The wire form of a stored key, if it is of this slot.
    pub fn data_key(self, stored: &[u8]) -> Option<&[u8]> {
        stored.strip_prefix(&self.0.to_be_bytes()[..])
    }
}

/// The first wire key that is not before a cursor.
pub(super) fn first_of(cursor: &Cursor) -> Bytes {
    let mut bytes = BytesMut::with_capacity(TOKEN_BYTES + cursor.key.len());
    bytes.put_u64(cursor.token);
    bytes.put_slice(&cursor.key);
    bytes.freeze()
}

/// The cursor of a wire key.
pub(super) fn cursor_of(key: &[u8]) -> Cursor {
    Cursor { token: token_of(key), key: Bytes::copy_from_slice(&key[TOKEN_BYTES..]) }
}

/// Where a page is cut before a wire key, if the key before it has this token: between two
/// tokens if they differ.
pub(super) fn cut_before(key: &[u8], last: u64) -> Cursor {
    match token_of(key) {
        token if token == last => cursor_of(key),
        token => Cursor::at(token),
    }
}

/// The token of a wire key.
pub(super) fn token_of(data_key: &[u8]) -> u64 {
    u64::from_be_bytes(*data_key.first_chunk().expect("a wire key begins with its token"))
}

/// The client's key of a wire key.
pub(super) fn client_key(data_key: &Bytes) -> Bytes {
    data_key.slice(TOKEN_BYTES..)
}

/// Checks a wire key that came from a peer.
pub(super) fn is_data_key(key: &[u8]) -> Result<(), WireError> {
    if key.len() < TOKEN_BYTES {
        return Err(WireError::Truncated { what: "key" });
    }
    if key.len() > TOKEN_BYTES + KEY_BYTES_MAX {
        let (length, limit) = (key.len() as u64, (TOKEN_BYTES + KEY_BYTES_MAX) as u64);
        return Err(WireError::TooLong { what: "key", length, limit });
    }
    let (token, key) = (token_of(key), &key[TOKEN_BYTES..]);
    if token != Order::Hash.token(key) && token != Order::Key.token(key) {
        return Err(WireError::Malformed { what: "key at a token that is not its own" });
    }
    Ok(())
}

/// The parts of a range as inclusive intervals of tokens: one, or two if it wraps.
pub(super) fn segments(range: &Range) -> impl Iterator<Item = (u64, u64)> + use<> {
    let Range { low, high } = *range;
    let (first, second) = if low < high {
        (Some((low + 1, high)), None)
    } else {
        // `low` may be the end of the space: then nothing lies above it.
        (Some((0, high)), low.checked_add(1).map(|above| (above, u64::MAX)))
    };
    let is_all = low == high;
    let (first, second) = if is_all { (Some((0, u64::MAX)), None) } else { (first, second) };
    first.into_iter().chain(second)
}

/// Where a range starts.
pub(super) fn start_of(range: &Range) -> Cursor {
    Cursor::at(segments(range).next().map_or(0, |(first, _)| first))
}

/// Where the interval of a range begins that follows the one of a token.
pub(super) fn next_interval(range: &Range, token: u64) -> Option<Cursor> {
    let mut intervals = segments(range);
    intervals.find(|(first, last)| (*first..=*last).contains(&token));
    intervals.next().map(|(first, _)| Cursor::at(first))
}

/// Where a state value stands.
pub(super) fn group_key(group: GroupId) -> Bytes {
    join(b"group", &[&group.0.to_be_bytes()])
}

/// Where the change that followed a version of a group stands.
pub(super) fn decided_key(group: GroupId, version: u64) -> Bytes {
    join(b"decided", &[&group.0.to_be_bytes(), &version.to_be_bytes()])
}

/// Where it stands in which view of a group all members have gathered, as far as is known.
pub(super) fn gathered_key(group: GroupId) -> Bytes {
    join(b"gathered", &[&group.0.to_be_bytes()])
}

/// Where it stands in which version this node left a group.
pub(super) fn left_key(group: GroupId) -> Bytes {
    join(b"left", &[&group.0.to_be_bytes()])
}

/// Where it stands with which version the membership of a slot ended.
pub(super) fn kept_key(group: GroupId, slot: Slot) -> Bytes {
    join(b"kept", &[&group.0.to_be_bytes(), &slot.0.to_be_bytes()])
}

/// The group and slot of such a key.
pub(super) fn kept_of(key: &[u8]) -> Option<(GroupId, Slot)> {
    let rest = key.strip_prefix(b"kept")?;
    let group = u64::from_be_bytes(*rest.first_chunk()?);
    let slot = u32::from_be_bytes(*rest.get(8..)?.first_chunk()?);
    Some((GroupId(group), Slot(slot)))
}

/// The group of a key that says when this node left it.
pub(super) fn left_of(key: &[u8]) -> Option<GroupId> {
    key.strip_prefix(b"left")?.first_chunk().map(|group| GroupId(u64::from_be_bytes(*group)))
}

/// Where a slot's range stands that must be emptied.
pub(super) fn garbage_key(slot: Slot, range: &Range) -> Bytes {
    let (low, high) = (range.low.to_be_bytes(), range.high.to_be_bytes());
    join(b"garbage", &[&slot.0.to_be_bytes(), &low, &high])
}

/// What a garbage key names.
pub(super) fn garbage_of(key: &[u8]) -> Option<(Slot, Range)> {
    let rest = key.strip_prefix(b"garbage")?;
    let slot = u32::from_be_bytes(*rest.first_chunk()?);
    let low = u64::from_be_bytes(*rest.get(4..)?.first_chunk()?);
    let high = u64::from_be_bytes(*rest.get(12..)?.first_chunk()?);
    Some((Slot(slot), Range { low, high }))
}

fn join(prefix: &[u8], parts: &[&[u8]]) -> Bytes {
    let mut key = Vec::from(prefix);
    parts.iter().for_each(|part| key.extend_from_slice(part));
    key.into()
}

/// Calls `each` with every state value whose key begins so.
pub(super) fn each_state(table: &dyn Table, prefix: &[u8], each: &mut dyn FnMut(&[u8], &Bytes)) {
    table.scan(Class::State, prefix, &mut |key, value| {
        let is_one = key.starts_with(prefix);
        if is_one {
            each(key, value);
        }
        is_one
    });
}

/// The bytes of a state value.
pub(super) fn state_bytes<T: Serialize>(value: &T) -> Bytes {
    let mut out = Vec::from([VERSION]);
    out.extend(postcard::to_allocvec(value).expect("plain data always serializes"));
    out.into()
}

/// A state value from its bytes.
pub(super) fn state_value<T: DeserializeOwned>(bytes: &[u8]) -> T {
    let (version, rest) = bytes.split_first().expect("a state value has a version");
    assert_eq!(*version, VERSION, "the store's format version guards the values' versions");
    postcard::from_bytes(rest).expect("the store returns the state that was put into it")
}

/// A state value of which a lane has one.
pub(super) trait Stored: Serialize + DeserializeOwned {
    const KEY: &'static [u8];

    fn key() -> Bytes {
        Bytes::from_static(Self::KEY)
    }

    fn load(table: &dyn Table) -> Option<Self> {
        table.get(Class::State, &Self::key()).map(|bytes| state_value(&bytes))
    }
}

impl Stored for Slot {
    const KEY: &'static [u8] = b"slot";
}

impl Stored for CrashVector {
    const KEY: &'static [u8] = b"crashes";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_one_or_two_intervals() {
        let of = |low, high| segments(&Range { low, high }).collect::<Vec<_>>();
        assert_eq!(of(10, 20), [(11, 20)]);
        assert_eq!(of(20, 10), [(0, 10), (21, u64::MAX)]);
        assert_eq!(of(u64::MAX, 10), [(0, 10)]);
        assert_eq!(of(7, 7), [(0, u64::MAX)]);
    }

    #[test]
    fn ordered_tokens_follow_the_keys() {
        let mut keys = [&b"b"[..], b"a", b"", b"a\0", b"abcdefghz", b"abcdefgha", b"\xff\xff"];
        keys.sort_unstable();
        let stored: Vec<Bytes> = keys.iter().map(|key| Order::Key.data_key(key)).collect();
        assert!(stored.is_sorted(), "the stored order is the keys' order");
        assert!(stored.iter().all(|key| is_data_key(key).is_ok()));
        assert!(is_data_key(&[0, 0, 0, 0, 0, 0, 0, 9, b'k']).is_err());
    }

    #[test]
    fn slots_keep_memberships_apart() {
        let key = Order::Hash.data_key(b"k");
        let stored = Slot(7).stored(&key);
        assert_eq!(Slot(7).data_key(&stored), Some(&key[..]));
        assert_eq!(Slot(8).data_key(&stored), None);
        let range = Range { low: 3, high: 9 };
        assert_eq!(garbage_of(&garbage_key(Slot(7), &range)), Some((Slot(7), range)));
        assert_eq!(kept_of(&kept_key(GroupId(3), Slot(7))), Some((GroupId(3), Slot(7))));
    }
}
