//! How a start finds what an earlier one has stored.
//!
//! A start is another incarnation: another source of events, without a place in the order. What it
//! finds on its disk it keeps, and joins as a new node does. So it need not matter what the disk
//! has lost: what is missing comes with the snapshots, and nothing is answered before.

use super::Level;
use super::keys::LAST;
use super::repair::behind::Behind;
use super::state::State;
use crate::epto::EventKey;
use quorate_kernel::mutant;
use quorate_kernel::plain::PlainData;
use quorate_kernel::process::Table;
use quorate_kernel::storage::Class;

/// Reads everything that is stored.
pub(super) fn load(state: &mut State, level: Level, table: &dyn Table) {
    // Where nothing is noted it has heard all up to its last event.
    state.behind = Behind::default();
    let mut is_noted = false;
    table.scan(Class::Data, &[], &mut |key, value| {
        let is_behind = state.behind.load(key, value);
        is_noted |= is_behind;
        let is_lost = state.doubt.load(key, value);
        let is_known =
            is_behind || is_lost || state.store.load(key, value) || state.seen.load(key, value);
        if !is_known {
            assert_eq!(key, &LAST[..], "the store returns the keys that were put into it");
            state.last = Some(EventKey::from_bytes(value).expect("this lane wrote it"));
        }
        true
    });
    // Without an order there are no events: what is here says whether it had anything.
    let is_unordered = level == Level::None && !mutant!("epidemic_no_order_no_past");
    let is_new =
        if is_unordered { !is_noted && state.store.is_empty() } else { state.last.is_none() };
    if is_new {
        state.behind = Behind::with_nothing();
    }
}
