//! What the baseline keeps in the store.
//!
//! | class | key | value | written by | may be dropped |
//! |---|---|---|---|---|
//! | state | `map` | postcard of the newest map | its arrival | never |
//! | state | `birth` | postcard of the highest birth used | a new replica | never |
//! | state | `replicas` | postcard of the replicas: actor, whether it has joined | both | never |
//! | data | birth (4), `o`, hash (8), key | object with its whole context | every update | never: deleted keys stay as tombstones |
//!
//! The layout is that of [`quorate_protocols::causal::keys`], which says why births are state.

use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::process::Table;
use quorate_kernel::storage::Class;
use quorate_protocols::causal::keys::{Kind, state_value, stored};
use quorate_protocols::dots::dot::Actor;

/// Where the list of replicas stands.
pub(super) const REPLICAS: Bytes = Bytes::from_static(b"replicas");

/// The replicas of this host: who they are, and whether they have joined.
pub(super) type Records = Vec<(Actor, bool)>;

/// The stored list.
pub(super) fn stored_replicas(table: &dyn Table) -> Records {
    table.get(Class::State, &REPLICAS).map(|bytes| state_value(&bytes)).unwrap_or_default()
}

/// Where a key's object stands.
pub(super) fn object_key(birth: u32, key: &[u8]) -> Bytes {
    stored(birth, Kind::Object, key)
}
