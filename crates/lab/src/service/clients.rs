//! Who asks a simulated cluster.

use super::{Hearing, Load};
use bytes::Bytes;
use quorate_kernel::operation::Operation;
use quorate_kernel::rng::Rng;

/// The clients of a simulated cluster. Each has one operation on its way, and sends the next one
/// when it is told how it ended.
pub trait Clients {
    /// How many there are.
    fn count(&self) -> usize;

    /// What a client asks next, as the host takes it.
    fn next(&mut self, client: usize, rng: &mut Rng) -> Operation;

    /// What a client is told of that.
    fn told(&mut self, client: usize, told: &Hearing<'_>);

    /// Whether all have done what comes before anything can count.
    fn are_ready(&self) -> bool {
        true
    }
}

/// Clients that get and put keys chosen uniformly (CATS §6.1).
#[derive(Clone, Copy, Debug)]
pub struct Registers {
    count: usize,
    keys: u64,
    read_percent: u64,
}

impl Registers {
    /// So many clients for each three hosts; that many of 100 of their operations are gets, of one
    /// of so many keys for each host.
    #[must_use]
    pub fn new(load: &Load, per_three: usize, read_percent: u64, keys_per_host: u64) -> Registers {
        let count = (load.hosts * per_three / 3).max(1);
        Registers { count, keys: keys_per_host * load.hosts as u64, read_percent }
    }
}

impl Clients for Registers {
    fn count(&self) -> usize {
        self.count
    }

    fn next(&mut self, _client: usize, rng: &mut Rng) -> Operation {
        let key = Bytes::from(format!("user{:016x}", rng.below(self.keys)));
        match rng.below(100) < self.read_percent {
            true => Operation::get(key),
            false => Operation::put(key, Bytes::from_static(b"value")),
        }
    }

    fn told(&mut self, _client: usize, _told: &Hearing<'_>) {}
}
