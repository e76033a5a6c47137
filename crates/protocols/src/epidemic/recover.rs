//! How a start finds what an earlier one has stored.
//!
//! A start is another incarnation: another source of events, without a place in the order. What it
//! finds on its disk it keeps, and joins as a new node does. So it need not matter what the disk
//! has lost: what is missing comes with the snapshots, and nothing is answered before.

use super::keys::LAST;
use super::repair::behind::Behind;
use super::state::State;
use crate::epto::EventKey;
use quorate_kernel::plain::PlainData;
use quorate_kernel::process::Table;
use quorate_kernel::storage::Class;

/// Reads everything that is stored.
pub(super) fn load(state: &mut State, table: &dyn Table) {
    // Where nothing is noted it has heard all up to its last event.
    state.behind = Behind::default();
    table.scan(Class::Data, &[], &mut |key, value| {
        let is_known = state.store.load(key, value)
            || state.seen.load(key, value)
            || state.behind.load(key, value);
        if !is_known {
            assert_eq!(key, &LAST[..], "the store returns the keys that were put into it");
            state.last = Some(EventKey::from_bytes(value).expect("this lane wrote it"));
        }
        true
    });
    if state.last.is_none() {
        state.behind = Behind::with_nothing();
    }
}
