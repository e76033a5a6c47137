//! What work is assumed to cost, in nanoseconds. Nothing of it was measured.

use quorate_kernel::time::Span;

/// Handling one message, or one tick.
pub const STEP: u64 = 10_000;
/// Handing one message to the network, once for each receiver.
pub const SEND: u64 = 2_000;
/// Sending one byte: 1 Gbit/s.
pub const BYTE: u64 = 8;
/// From a write of protocol state to its being durable.
pub const SYNC: Span = Span::millis(1);

/// The same in words, for pages.
#[must_use]
pub fn words() -> String {
    format!(
        "Assumed, not measured: {} µs for handling a message or a tick, {} µs for handing one to \
         the network for each receiver, 1 Gbit/s for what a node sends, {} ms from a write of \
         protocol state to its being durable, and log-normal latencies of 1 ms in the median, one \
         in a hundred above 2.3 ms. A node does one thing at a time.",
        STEP / 1000,
        SEND / 1000,
        SYNC.as_millis(),
    )
}
