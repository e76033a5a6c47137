//! The trace: one line for each event, and a running hash of all of them.
//!
//! ```text
//! 12.345678  n2 < n1 #3 57B c0ffee01     n2 receives a frame of n1's start 3 with this checksum
//! 12.345678  n2 turn                     n2 handles what has arrived
//! 12.345678  n2 wake                     a timer of n2 is due
//! 12.345678  n2 written 7, synced 5      the disk thread of n2 reports
//! 12.345678  c4 get k0 -> n2             client 4 asks n2 (`~>`: through the RESP door)
//! 12.345678  c4 put k0: written          what client 4 is told
//! 12.345678  -- kill n3                  a fault begins; `skipped` if it may not
//! 12.345678  ++ kill n3                  a fault ends
//! 12.345678  ** heal                     a phase begins
//! ```
//! Times are seconds of the simulated world. Hosts are `n1`, `n2`, …, clients `c0`, `c1`, ….
//! Two runs are the same if their hashes are; the hash does not depend on whether lines are
//! written.

use quorate_kernel::rng::mix;
use std::fmt;
use std::io::Write;

/// The trace of one run.
#[derive(Default)]
pub struct Trace {
    hash: u64,
    events: u64,
    out: Option<Box<dyn Write>>,
}

impl Trace {
    /// A trace that writes its lines to `out`, or keeps only the hash.
    #[must_use]
    pub fn new(out: Option<Box<dyn Write>>) -> Trace {
        Trace { hash: 0, events: 0, out }
    }

    /// Takes an event into the hash: when, which kind, and a number that tells it from others.
    pub fn event(&mut self, now: u64, kind: u64, detail: u64) {
        self.events += 1;
        let word = now ^ kind << 56 ^ detail.rotate_left(29);
        self.hash = (self.hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31);
    }

    /// Takes something into the hash that is no event of its own.
    pub fn note(&mut self, detail: u64) {
        self.hash = (self.hash ^ detail).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31);
    }

    /// Writes a line, if lines are asked for.
    pub fn line(&mut self, now: u64, text: fmt::Arguments<'_>) {
        if let Some(out) = &mut self.out {
            let (seconds, micros) = (now / 1_000_000_000, now / 1000 % 1_000_000);
            // A reader that closed the pipe has seen enough.
            if writeln!(out, "{seconds:>4}.{micros:06}  {text}").is_err() {
                self.out = None;
            }
        }
    }

    /// Whether lines are written.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.out.is_some()
    }

    /// How many events there were.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events
    }

    /// The hash of everything so far.
    #[must_use]
    pub fn hash(&self) -> u64 {
        mix(self.hash ^ self.events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_depends_on_every_word_and_on_the_order() {
        let hash = |events: &[(u64, u64, u64)]| {
            let mut trace = Trace::default();
            events.iter().for_each(|(now, kind, detail)| trace.event(*now, *kind, *detail));
            trace.hash()
        };
        let base = hash(&[(1, 2, 3), (4, 5, 6)]);
        assert_eq!(base, hash(&[(1, 2, 3), (4, 5, 6)]));
        for other in [
            &[(4, 5, 6), (1, 2, 3)][..],
            &[(1, 2, 3), (4, 5, 7)],
            &[(1, 2, 3), (4, 4, 6)],
            &[(2, 2, 3), (4, 5, 6)],
            &[(1, 2, 3)],
        ] {
            assert_ne!(base, hash(other));
        }
    }
}
