//! What the catalog keeps in the store, all of it protocol state.
//!
//! | key | value: version byte, then postcard of | written by | may be dropped |
//! |---|---|---|---|
//! | `catalog` | [`Catalog`] | birth, each decree learnt | never |
//! | `acceptor` | [`Acceptor`] of what follows it | a promise, an acceptance; anew with each decree | never |
//! | `decree` and number (8, big-endian) | [`Entry`] | each decree learnt | [`DECREES_KEPT`] decrees later |
//! | `opened` | lane to the start in which this node first heard of it | birth, a decree that creates | never: what a dropped lane left behind is looked for at each start |
//!
//! [`DECREES_KEPT`]: quorate_kernel::limits::DECREES_KEPT

use super::chain::decree::Entry;
use super::chain::fold::Catalog;
use crate::reconfigure::Acceptor;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::{BufMut, Bytes, BytesMut};
use quorate_kernel::ids::{LaneId, Start};
use quorate_kernel::process::Table;
use quorate_kernel::storage::Class;
use serde::Serialize;
use serde::de::DeserializeOwned;

const VERSION: u8 = 1;
const DECREE: &[u8] = b"decree";

/// The key of the folded catalog.
pub(super) const CATALOG: Bytes = Bytes::from_static(b"catalog");
/// The key of the acceptor.
pub(super) const ACCEPTOR: Bytes = Bytes::from_static(b"acceptor");
/// The key of the lanes this node has heard of.
pub(super) const OPENED: Bytes = Bytes::from_static(b"opened");

/// The key of a link.
pub(super) fn decree(number: u64) -> Bytes {
    let mut bytes = BytesMut::with_capacity(DECREE.len() + 8);
    bytes.put_slice(DECREE);
    bytes.put_u64(number);
    bytes.freeze()
}

/// The stored form of a value.
pub(super) fn value<T: Serialize>(value: &T) -> Bytes {
    let mut bytes = Vec::from([VERSION]);
    bytes.extend(postcard::to_allocvec(value).expect("plain data always serializes"));
    bytes.into()
}

/// What is stored.
#[derive(Default)]
pub(super) struct Stored {
    pub catalog: Option<Arc<Catalog>>,
    pub acceptor: Acceptor<Entry>,
    /// The newest links, without a gap, each with its number.
    pub entries: VecDeque<(u64, Entry)>,
    pub opened: BTreeMap<LaneId, Start>,
}

/// Reads all of it.
pub(super) fn load(table: &dyn Table) -> Stored {
    let mut entries = VecDeque::new();
    table.scan(Class::State, DECREE, &mut |key, value| {
        let Some(number) = key.strip_prefix(DECREE) else { return false };
        let number = u64::from_be_bytes(number.try_into().expect("a number has eight bytes"));
        entries.push_back((number, read(value)));
        true
    });
    Stored {
        catalog: get(table, &CATALOG),
        acceptor: get(table, &ACCEPTOR).unwrap_or_default(),
        entries,
        opened: get(table, &OPENED).unwrap_or_default(),
    }
}

fn get<T: DeserializeOwned>(table: &dyn Table, key: &Bytes) -> Option<T> {
    table.get(Class::State, key).map(|value| read(&value))
}

fn read<T: DeserializeOwned>(value: &Bytes) -> T {
    let (version, rest) = value.split_first().expect("a state value has a version");
    assert_eq!(*version, VERSION, "the store's format version guards the values' versions");
    postcard::from_bytes(rest).expect("the store returns what was put into it")
}
