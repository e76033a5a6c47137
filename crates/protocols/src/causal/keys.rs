//! What the engine keeps in the store.
//!
//! | class | key | value | written by | may be dropped |
//! |---|---|---|---|---|
//! | state | `map` | postcard of the newest [`Map`](super::map::Map) | its arrival | never |
//! | state | `birth` | postcard of the highest birth used | a new replica | never |
//! | state | `replica`, part (4) | postcard of [`Record`](super::replicate::replica::Record) | birth, reserving counters, joining, leaving | when the replica is given up |
//! | state | `garbage`, part (4) | empty | a replica is given up | when nothing of it is left |
//! | data | part (4), `o`, hash (8), key | [`Object`](crate::dots::object::Object) without its context | every update | when both are empty |
//! | data | part (4), `c`, actor | postcard of [`Entry`](crate::dots::clock::Entry), but for dots that the log has | whatever is seen without one | with the replica, or when a later actor of its partition is closed |
//! | data | part (4), `n`, hash (8), key | postcard of the object's context | a context that the log does not have | when the context is empty |
//! | log | [`DOTS`], index | of each dot: postcard of part, dot, hash (8) and key, the object's context, and the write's name if it has one | a turn that has seen updates for the first time | when every replica of their keys has seen them, and all before |
//!
//! Of an update two things are written: the object, and its dot with what the dot brings, in one
//! entry for all dots of a turn. From the log the clock and the contexts are put together again;
//! before an entry goes they are written ([`super::replicate::dot_log`]).
//!
//! Integers are big-endian. The clock is data, not state: it must never be ahead of the objects
//! (T4), so both are in one batch and are lost together; of logs the same holds. What must survive
//! is that no dot is used twice: births are state, and so is the counter up to which a replica may
//! issue dots. Each replica has its part of the store, named by its birth, so what an earlier one
//! left behind is
//! never taken for data of a later one. One that goes on with an earlier one's data after a loss of
//! power keeps that one's part. On the wire a key is its hash and the client's key.

use super::map::Map;
use super::replicate::dot_log::LoggedDot;
use crate::dots::context::CausalContext;
use crate::dots::dot::{Actor, Counter, Dot};
use alloc::vec::Vec;
use bytes::{BufMut, Bytes, BytesMut};
use quorate_kernel::error::WireError;
use quorate_kernel::ids::LogId;
use quorate_kernel::limits::KEY_BYTES_MAX;
use quorate_kernel::process::Table;
use quorate_kernel::storage::Class;
use quorate_kernel::write::WriteId;
use serde::{Serialize, de::DeserializeOwned};
use xxhash_rust::xxh3::xxh3_64;

const VERSION: u8 = 1;
const HASH_BYTES: usize = 8;

/// The log of dots.
pub(super) const DOTS: LogId = LogId(0);

/// The three kinds of data of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Clocks of nodes.
    Clock = b'c',
    /// Objects whose context may be stripped.
    Unstripped = b'n',
    /// Objects.
    Object = b'o',
}

/// The wire form of a client's key.
pub fn data_key(key: &[u8]) -> Bytes {
    let mut bytes = BytesMut::with_capacity(HASH_BYTES + key.len());
    bytes.put_u64(hash_of_key(key));
    bytes.put_slice(key);
    bytes.freeze()
}

/// The hash of a client's key: what its home follows from.
#[must_use]
pub fn hash_of_key(key: &[u8]) -> u64 {
    xxh3_64(key)
}

/// The hash of a wire key.
pub fn hash_of(data_key: &[u8]) -> u64 {
    u64::from_be_bytes(*data_key.first_chunk().expect("a wire key begins with its hash"))
}

/// The client's key of a wire key.
pub fn client_key(data_key: &[u8]) -> &[u8] {
    &data_key[HASH_BYTES..]
}

/// Checks a wire key that came from a peer.
pub fn is_data_key(key: &[u8]) -> Result<(), WireError> {
    let Some((hash, rest)) = key.split_first_chunk::<HASH_BYTES>() else {
        return Err(WireError::Truncated { what: "key" });
    };
    if rest.len() > KEY_BYTES_MAX {
        let (length, limit) = (rest.len() as u64, KEY_BYTES_MAX as u64);
        return Err(WireError::TooLong { what: "key", length, limit });
    }
    match u64::from_be_bytes(*hash) == xxh3_64(rest) {
        true => Ok(()),
        false => Err(WireError::Malformed { what: "key with a hash that is not its own" }),
    }
}

/// Where something of a replica stands.
pub fn stored(birth: u32, kind: Kind, rest: &[u8]) -> Bytes {
    let mut bytes = BytesMut::with_capacity(5 + rest.len());
    bytes.put_u32(birth);
    bytes.put_u8(kind as u8);
    bytes.put_slice(rest);
    bytes.freeze()
}

/// Where an actor's entry of the clock stands.
pub(super) fn actor_key(actor: Actor) -> Vec<u8> {
    postcard::to_allocvec(&actor).expect("plain data always serializes")
}

/// The actor of such a key.
pub(super) fn actor_of(key: &[u8]) -> Actor {
    postcard::from_bytes(key).expect("the store returns the keys that were put into it")
}

/// An entry of the log of dots that has none yet.
pub(super) fn empty_entry() -> Vec<u8> {
    Vec::from([VERSION])
}

/// Adds a dot to what becomes a part of an entry of the log of dots.
pub(super) fn add_dot(
    part: u32,
    (dot, key): (Dot, &[u8]),
    (context, name): (&CausalContext, Option<WriteId>),
    bytes: Vec<u8>,
) -> Vec<u8> {
    let context: Vec<(Actor, Counter)> = context.iter().collect();
    let logged = (part, dot, key, context, name);
    postcard::to_extend(&logged, bytes).expect("plain data always serializes")
}

/// The dots of an entry of their log.
pub(super) fn dots_of(entry: &[u8]) -> Vec<LoggedDot> {
    type Stored = (u32, Dot, Vec<u8>, Vec<(Actor, Counter)>, Option<WriteId>);
    let (mut dots, (version, mut rest)) = (Vec::new(), entry.split_first().expect("a version"));
    assert_eq!(*version, VERSION, "the store's format version guards the entries' versions");
    while !rest.is_empty() {
        let (logged, behind): (Stored, &[u8]) =
            postcard::take_from_bytes(rest).expect("the store returns what was put into it");
        let (part, dot, key, context, name) = logged;
        let context = context.into_iter().collect();
        dots.push(LoggedDot { part, dot, key: key.into(), context, name });
        rest = behind;
    }
    dots
}

/// Calls `each` with everything of one kind of a replica whose key is not below `from`, until it
/// returns false.
pub fn each_of(
    table: &dyn Table,
    birth: u32,
    kind: Kind,
    from: &[u8],
    each: &mut dyn FnMut(&[u8], &Bytes) -> bool,
) {
    let prefix = stored(birth, kind, &[]);
    table.scan(Class::Data, &stored(birth, kind, from), &mut |key, value| {
        key.strip_prefix(&prefix[..]).is_some_and(|rest| each(rest, value))
    });
}

/// Where a replica's record stands.
pub(super) fn replica_key(birth: u32) -> Bytes {
    named(b"replica", birth)
}

/// Where it stands that a replica was given up.
pub(super) fn garbage_key(birth: u32) -> Bytes {
    named(b"garbage", birth)
}

fn named(name: &[u8], birth: u32) -> Bytes {
    let mut bytes = BytesMut::with_capacity(name.len() + 4);
    bytes.put_slice(name);
    bytes.put_u32(birth);
    bytes.freeze()
}

/// The births that state keys of this name carry, with their values.
pub(super) fn each_named(table: &dyn Table, name: &[u8]) -> Vec<(u32, Bytes)> {
    let mut found = Vec::new();
    table.scan(Class::State, name, &mut |key, value| {
        let birth = key.strip_prefix(name).and_then(|rest| rest.first_chunk());
        found.extend(birth.map(|birth| (u32::from_be_bytes(*birth), value.clone())));
        birth.is_some()
    });
    found
}

/// The bytes of a state value.
pub fn state_bytes<T: Serialize>(value: &T) -> Bytes {
    let mut out = Vec::from([VERSION]);
    out.extend(postcard::to_allocvec(value).expect("plain data always serializes"));
    out.into()
}

/// A state value from its bytes.
pub fn state_value<T: DeserializeOwned>(bytes: &[u8]) -> T {
    let (version, rest) = bytes.split_first().expect("a state value has a version");
    assert_eq!(*version, VERSION, "the store's format version guards the values' versions");
    let (value, _) =
        postcard::take_from_bytes(rest).expect("the store returns the state that was put into it");
    value
}

/// Where the map stands.
pub const MAP: Bytes = Bytes::from_static(b"map");
/// Where the highest birth stands.
pub const BIRTH: Bytes = Bytes::from_static(b"birth");

/// The stored map.
pub fn stored_map(table: &dyn Table) -> Option<Map> {
    table.get(Class::State, &MAP).map(|bytes| state_value(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dots::dot::Partition;
    use quorate_kernel::ids::NodeId;

    #[test]
    fn keys_are_read_back_and_replicas_kept_apart() {
        let key = data_key(b"k");
        assert!(is_data_key(&key).is_ok() && is_data_key(b"short").is_err());
        assert!(is_data_key(&[0, 0, 0, 0, 0, 0, 0, 9, b'k']).is_err());
        assert_eq!((client_key(&key), hash_of(&key)), (&b"k"[..], xxh3_64(b"k")));
        assert!(stored(1, Kind::Object, &key) < stored(2, Kind::Clock, &[]));
        let actor = Actor { partition: Partition(300), since: 9, birth: 2, node: NodeId(1 << 60) };
        assert_eq!(actor_of(&actor_key(actor)), actor);
    }

    #[test]
    fn the_dots_of_an_entry_are_read_back() {
        let actor = Actor { partition: Partition(300), since: 9, birth: 2, node: NodeId(1 << 60) };
        let dots = [1, 2].map(|counter| LoggedDot {
            part: 3,
            dot: Dot { actor, counter },
            key: data_key(b"k"),
            context: [(actor, counter)].into_iter().take(counter as usize - 1).collect(),
            name: (counter == 2).then_some(WriteId(7)),
        });
        let add = |bytes, one: &LoggedDot| {
            add_dot(one.part, (one.dot, &one.key), (&one.context, one.name), bytes)
        };
        assert_eq!(dots_of(&dots.iter().fold(empty_entry(), add)), dots);
        assert_eq!(dots_of(&empty_entry()), []);
    }
}
