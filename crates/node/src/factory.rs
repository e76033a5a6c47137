//! The list of engines. A new engine is a folder under `protocols` and a line here.

use crate::catalog::{Engine, Keyspace};
use alloc::boxed::Box;
use quorate_kernel::lane::Lane;
use quorate_kernel::storage::Durability;
use quorate_kernel::view::{Range, View};
use quorate_protocols::linearizable;

/// The lane of a keyspace.
#[must_use]
pub fn lane(keyspace: &Keyspace) -> Box<dyn Lane> {
    match keyspace.engine {
        Engine::Linearizable => linearizable::lane(linearizable::Settings {
            first_view: first_view(keyspace),
            value_bytes_max: keyspace.value_bytes_max,
            // A digest read spares the network and the store of the other members; with everything
            // in memory the value costs less than a second question.
            digest_reads: keyspace.durability != Durability::Memory,
            ask_majority_first: true,
        }),
    }
}

/// The engine serves one group as yet: the first one, with the whole ring for its range.
fn first_view(keyspace: &Keyspace) -> View {
    let mut view = keyspace.first_views.first().expect("a cluster is born with views").clone();
    view.range = Range::ALL;
    view
}
