//! Planted bugs, one of which a run may be told to put in force.
//!
//! They exist to show that judges and tests see: `cargo xtask mutants` builds the simulator and the
//! tests with `--cfg quorate_mutants` and runs them with one bug after the other. In every other
//! build [`mutant!`](crate::mutant!) is the constant `false`, and nothing of them is left.

#[cfg(quorate_mutants)]
extern crate std;

/// Whether the planted bug of this name is in force.
#[macro_export]
macro_rules! mutant {
    ($name:literal) => {
        cfg!(quorate_mutants) && $crate::mutant::is_planted(const { $crate::mutant::hash($name) })
    };
}

/// Whether the planted bug whose name has this hash is in force: the environment variable
/// `QUORATE_PLANTED` names it.
#[cfg(quorate_mutants)]
#[must_use]
pub fn is_planted(hash_of_name: u64) -> bool {
    static PLANTED: std::sync::LazyLock<Option<u64>> =
        std::sync::LazyLock::new(|| std::env::var("QUORATE_PLANTED").ok().map(|name| hash(&name)));
    *PLANTED == Some(hash_of_name)
}

/// No bug is in force in an ordinary build.
#[cfg(not(quorate_mutants))]
#[must_use]
pub const fn is_planted(_hash_of_name: u64) -> bool {
    false
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
        assert_ne!(hash("a_bug"), hash("another_bug"));
        assert!(!is_planted(hash("a_bug")));
    }
}
