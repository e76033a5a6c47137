//! Damage: what a store does that finds its files changed, cut off or gone.

mod database;
pub(super) mod log;
pub(super) mod recycling;
mod spoilt;

use crate::host::{Pairs, batch, contents, put};
use quorate_kernel::ids::Lsn;
use quorate_kernel::rng::Rng;
use quorate_kernel::storage::Log;
use quorate_store::{Crash, MemoryStore};

/// How many losses of power are drawn before one is taken for impossible.
const SEEDS_MOST: u64 = 10_000;

/// Whether a loss of power may leave so many batches in the memory store, whose crashes stand for
/// every damage here that a start goes on with, in the simulator. Each batch wrote one of these
/// pairs, in their order.
fn memory_may_end(pairs: &Pairs, synced: u64, recovered: u64) -> bool {
    let mut store = MemoryStore::new();
    for (lsn, (name, value)) in (1..).zip(pairs) {
        store.apply(&[batch(lsn, vec![put(name, value)])]).expect("applied");
        if lsn == synced {
            store.sync().expect("synced");
        }
    }
    let kept: Pairs = pairs.iter().take(recovered as usize).map(own).collect();
    let ends = |seed| {
        let store = store.copy();
        store.crash(Crash::PowerLoss, &mut Rng::new(seed));
        store.reopen() == Lsn(recovered) && contents(&store) == kept
    };
    (0..SEEDS_MOST).any(ends)
}

fn own((name, value): (&Vec<u8>, &Vec<u8>)) -> (Vec<u8>, Vec<u8>) {
    (name.clone(), value.clone())
}
