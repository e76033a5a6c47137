//! Seeded randomness: xoshiro256++ seeded by splitmix64, so a seed means the same draws for ever.

/// A generator. Each lane and each part of the simulator owns a fork, so that a new draw in one
/// place does not shift the draws of another.
#[derive(Clone, Debug)]
pub struct Rng {
    state: [u64; 4],
}

/// One step of splitmix64: a good mixer of 64 bits.
#[must_use]
pub const fn mix(seed: u64) -> u64 {
    let z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Rng {
    /// The generator of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Rng {
        let mut state = [0; 4];
        let mut last = seed;
        for word in &mut state {
            last = mix(last);
            *word = last;
        }
        Rng { state }
    }

    /// An independent stream named by `label`; takes one draw from this one.
    #[must_use]
    pub fn fork(&mut self, label: u64) -> Rng {
        Rng::new(mix(label) ^ self.next())
    }

    /// 64 random bits.
    #[allow(clippy::should_implement_trait)] // It never ends, so it is no iterator.
    pub fn next(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number in `0..bound`; 0 when `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in `low..=high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        assert!(low <= high, "the range {low}..={high} is empty");
        low + self.below(high - low + 1)
    }

    /// One of these; none if there is none. It takes one draw in both cases.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        of.get(self.below(of.len() as u64) as usize)
    }

    /// True `parts` times in a million.
    pub fn chance_ppm(&mut self, parts: u32) -> bool {
        self.below(1_000_000) < u64::from(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_stream_and_forks_differ() {
        let (mut a, mut b) = (Rng::new(7), Rng::new(7));
        for _ in 0..100 {
            assert_eq!(a.next(), b.next());
        }
        assert_ne!(a.fork(1).next(), b.fork(2).next());
        assert_ne!(Rng::new(1).next(), Rng::new(2).next());
    }

    #[test]
    fn bounds_hold() {
        let mut rng = Rng::new(1);
        for bound in [1, 2, 3, 10, 1 << 40] {
            for _ in 0..1000 {
                assert!(rng.below(bound) < bound);
                let drawn = rng.between(5, 5 + bound);
                assert!((5..=5 + bound).contains(&drawn));
            }
        }
        assert_eq!(rng.below(0), 0);
        assert!(rng.pick::<u8>(&[]).is_none());
        assert!((0..100).all(|_| rng.pick(&[3, 4]).is_some_and(|one| [3, 4].contains(one))));
    }
}
