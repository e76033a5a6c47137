//! Planted bugs, one of which the simulator may put in force when it starts.
//!
//! They exist to show that judges see: `cargo xtask mutants` builds the simulator once with
//! `--cfg quorate_mutants` and runs it with one bug after the other. In every other build
//! [`mutant!`](crate::mutant!) is the constant `false`, and nothing of them is left.

use core::sync::atomic::{AtomicU64, Ordering};

/// Whether the planted bug of this name is in force.
#[macro_export]
macro_rules! mutant {
    ($name:literal) => {
        cfg!(quorate_mutants) && $crate::mutant::is_planted(const { $crate::mutant::hash($name) })
    };
}

/// The hash of the bug in force; 0 is none.
static PLANTED: AtomicU64 = AtomicU64::new(0);

/// Puts the bug of this name in force, and no other, for the rest of the process.
pub fn plant(name: &str) {
    PLANTED.store(hash(name), Ordering::Relaxed);
}

/// Whether the bug whose name has this hash is in force.
#[must_use]
pub fn is_planted(hash: u64) -> bool {
    PLANTED.load(Ordering::Relaxed) == hash
}

/// FNV-1a over the bytes of a name.
#[must_use]
pub const fn hash(name: &str) -> u64 {
    let (bytes, mut hash, mut place) = (name.as_bytes(), 0xcbf2_9ce4_8422_2325_u64, 0);
    while place < bytes.len() {
        hash = (hash ^ bytes[place] as u64).wrapping_mul(0x0100_0000_01b3);
        place += 1;
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart_and_nothing_is_planted_unless_asked_for() {
        assert!(!is_planted(hash("a_bug")));
        plant("a_bug");
        assert!(is_planted(hash("a_bug")) && !is_planted(hash("another_bug")));
        PLANTED.store(0, Ordering::Relaxed);
    }
}
