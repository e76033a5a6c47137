//! Ports for the hosts of a test, taken from the system: tests of two runs side by side never meet.
//!
//! A block of ports belongs to the test whose thread listens on the block's first port, on which no
//! host listens. Blocks lie below the ports that the system gives out by itself.

use std::cell::RefCell;
use std::net::TcpListener;

/// The ports of a block: enough for nine hosts, ten ports apart.
const BLOCK: u16 = 100;
/// The first block and how many there are.
const FIRST: u16 = 8_000;
const BLOCKS: u16 = 240;

thread_local! {
    /// Released when the test ends, with its thread.
    static TAKEN: RefCell<Vec<TcpListener>> = const { RefCell::new(Vec::new()) };
}

fn is_free(port: u16) -> bool {
    TcpListener::bind(("127.0.0.1", port)).is_ok()
}

/// The base of a block of free ports: host `i` has the ports from `base + 10 * i` on.
pub fn base() -> u16 {
    let start =
        (quorate_kernel::rng::mix(u64::from(std::process::id())) % u64::from(BLOCKS)) as u16;
    for turn in 0..BLOCKS {
        let base = FIRST + (start + turn) % BLOCKS * BLOCK;
        let Ok(guard) = TcpListener::bind(("127.0.0.1", base)) else { continue };
        if (base + 1..base + BLOCK).all(is_free) {
            TAKEN.with_borrow_mut(|taken| taken.push(guard));
            return base;
        }
    }
    panic!("no block of {BLOCK} ports is free from {FIRST} on");
}
