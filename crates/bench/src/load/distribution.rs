//! Which key comes next: uniform, scrambled zipfian and latest, as YCSB defines them.
//!
//! The zipfian draw is the one of Gray et al., "Quickly generating billion-record synthetic
//! databases" §3.2. YCSB's scrambled variant draws from a fixed, huge number of items, so that the
//! popularity of a key does not change when keys are added, and spreads the draws by a hash.

use quorate_kernel::rng::Rng;

/// The skew of YCSB's zipfian distributions.
pub const ZIPFIAN_CONSTANT: f64 = 0.99;
/// The items that the scrambled zipfian distribution draws from, whatever the key count.
pub const SCRAMBLED_ITEM_COUNT: u64 = 10_000_000_000;
/// The zeta of [`SCRAMBLED_ITEM_COUNT`] items at [`ZIPFIAN_CONSTANT`], precomputed by YCSB.
pub const SCRAMBLED_ZETA: f64 = 26.469_028_201_783_02;

/// How many terms of zeta are summed one by one; the rest is within 1e-12 of its integral.
const ZETA_EXACT_TERMS: u64 = 1_000_000;

/// FNV-1a of the eight bytes of a number, lowest first: spreads draws and names keys.
#[must_use]
pub fn fnv64(number: u64) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in number.to_le_bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash
}

/// The sum of `1 / i^0.99` for `i` in `1..=items`.
#[must_use]
pub fn zeta(items: u64) -> f64 {
    let exact = items.min(ZETA_EXACT_TERMS);
    let term = |i: f64| i.powf(-ZIPFIAN_CONSTANT);
    let summed: f64 = (1..=exact).rev().map(|i| term(i as f64)).sum();
    if exact == items {
        return summed;
    }
    let (low, high) = (exact as f64, items as f64);
    let power = 1.0 - ZIPFIAN_CONSTANT;
    let integral = (high.powf(power) - low.powf(power)) / power;
    summed + integral + (term(high) - term(low)) / 2.0
}

/// Draws ranks from 0, the most popular, with probability proportional to `1 / (rank + 1)^0.99`.
#[derive(Clone, Debug)]
pub struct Zipfian {
    items: u64,
    zeta: f64,
    eta: f64,
    /// The zeta of two items: below it, the draw is one of the first two ranks.
    zeta_of_two: f64,
}

impl Zipfian {
    /// The distribution over this many items; at least one.
    #[must_use]
    pub fn new(items: u64) -> Zipfian {
        Zipfian::with_zeta(items, zeta(items))
    }

    fn with_zeta(items: u64, zeta: f64) -> Zipfian {
        assert!(items > 0, "a distribution needs an item");
        let zeta_of_two = 1.0 + 0.5_f64.powf(ZIPFIAN_CONSTANT);
        let mut zipfian = Zipfian { items, zeta, eta: 0.0, zeta_of_two };
        zipfian.refresh();
        zipfian
    }

    /// Raises the number of items.
    pub fn grow(&mut self, items: u64) {
        if items > self.items {
            let added = self.items + 1..=items;
            self.zeta += added.map(|i| (i as f64).powf(-ZIPFIAN_CONSTANT)).sum::<f64>();
            self.items = items;
            self.refresh();
        }
    }

    fn refresh(&mut self) {
        let tail = (2.0 / self.items as f64).powf(1.0 - ZIPFIAN_CONSTANT);
        self.eta = (1.0 - tail) / (1.0 - self.zeta_of_two / self.zeta);
    }

    /// The next rank, below the number of items.
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        let unit = (rng.next() >> 11) as f64 / (1_u64 << 53) as f64;
        let scaled = unit * self.zeta;
        if scaled < 1.0 || self.items == 1 {
            return 0;
        }
        if scaled < self.zeta_of_two {
            return 1;
        }
        let base = self.eta * unit - self.eta + 1.0;
        let rank = self.items as f64 * base.powf(1.0 / (1.0 - ZIPFIAN_CONSTANT));
        (rank as u64).min(self.items - 1)
    }
}

/// The distribution of a run's keys.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// Every key is as likely as any other.
    Uniform,
    /// YCSB's scrambled zipfian with constant 0.99: few keys get most requests, spread by a hash.
    Zipfian,
    /// Zipfian from the newest key backwards.
    Latest,
}

impl Distribution {
    /// The word used on the command line and in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Distribution::Uniform => "uniform",
            Distribution::Zipfian => "zipfian",
            Distribution::Latest => "latest",
        }
    }
}

/// Chooses key numbers by a distribution.
#[derive(Clone, Debug)]
pub struct KeyChooser {
    distribution: Distribution,
    zipfian: Zipfian,
}

impl KeyChooser {
    /// A chooser for a run that starts with this many keys; at least one.
    #[must_use]
    pub fn new(distribution: Distribution, key_count: u64) -> KeyChooser {
        let zipfian = match distribution {
            Distribution::Latest => Zipfian::new(key_count),
            Distribution::Zipfian | Distribution::Uniform => {
                Zipfian::with_zeta(SCRAMBLED_ITEM_COUNT, SCRAMBLED_ZETA)
            }
        };
        KeyChooser { distribution, zipfian }
    }

    /// The next key number below `key_count`, which may have risen since the last call.
    pub fn choose(&mut self, rng: &mut Rng, key_count: u64) -> u64 {
        match self.distribution {
            Distribution::Uniform => rng.below(key_count),
            Distribution::Zipfian => {
                // YCSB takes the absolute value of the signed hash.
                (fnv64(self.zipfian.draw(rng)) as i64).unsigned_abs() % key_count
            }
            Distribution::Latest => {
                self.zipfian.grow(key_count);
                key_count - 1 - self.zipfian.draw(rng).min(key_count - 1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAW_COUNT: u64 = 200_000;

    #[test]
    fn zeta_agrees_with_the_constant_of_ycsb() {
        assert!((zeta(SCRAMBLED_ITEM_COUNT) - SCRAMBLED_ZETA).abs() < 1e-6);
        assert!((zeta(2) - (1.0 + 0.5_f64.powf(0.99))).abs() < 1e-12);
    }

    #[test]
    fn growing_equals_starting_larger() {
        let mut grown = Zipfian::new(10);
        grown.grow(1000);
        let fresh = Zipfian::new(1000);
        assert!((grown.zeta - fresh.zeta).abs() < 1e-9);
        assert!((grown.eta - fresh.eta).abs() < 1e-9);
    }

    #[test]
    fn ranks_have_the_frequency_of_their_law() {
        let zipfian = Zipfian::new(1000);
        let mut rng = Rng::new(42);
        let mut counts = vec![0_u64; 1000];
        for _ in 0..DRAW_COUNT {
            counts[zipfian.draw(&mut rng) as usize] += 1;
        }
        for rank in [0_usize, 1] {
            let expected = ((rank + 1) as f64).powf(-0.99) / zeta(1000);
            let seen = counts[rank] as f64 / DRAW_COUNT as f64;
            assert!((seen / expected - 1.0).abs() < 0.05, "rank {rank}: {seen} for {expected}");
        }
        // The approximation is off for single ranks in the middle but right for ranges of them.
        for bound in [10_u64, 100, 500] {
            let expected = zeta(bound) / zeta(1000);
            let seen = counts[..bound as usize].iter().sum::<u64>() as f64 / DRAW_COUNT as f64;
            assert!((seen / expected - 1.0).abs() < 0.05, "below {bound}: {seen} for {expected}");
        }
    }

    #[test]
    fn scrambled_draws_are_skewed_and_spread() {
        let key_count = 10_000;
        let mut chooser = KeyChooser::new(Distribution::Zipfian, key_count);
        let mut rng = Rng::new(7);
        let mut counts = vec![0_u64; key_count as usize];
        for _ in 0..DRAW_COUNT {
            counts[chooser.choose(&mut rng, key_count) as usize] += 1;
        }
        let hottest = counts.iter().max().copied().unwrap_or(0);
        let place = counts.iter().position(|&count| count == hottest).unwrap_or(0);
        let share = hottest as f64 / DRAW_COUNT as f64;
        // The first rank alone has 1 / zeta = 3.8 % of all draws.
        assert!((0.034..0.045).contains(&share), "the hottest key has {share}");
        let expected = (fnv64(0) as i64).unsigned_abs() % key_count;
        assert_eq!(place as u64, expected, "the hottest key is where the hash puts rank 0");
        let untouched = counts.iter().filter(|&&count| count == 0).count();
        assert!(untouched < 1000, "{untouched} keys were never drawn");
    }

    #[test]
    fn latest_prefers_the_newest_key() {
        let mut chooser = KeyChooser::new(Distribution::Latest, 1000);
        let mut rng = Rng::new(3);
        let mut newest = 0;
        for _ in 0..10_000 {
            newest += u64::from(chooser.choose(&mut rng, 2000) == 1999);
        }
        let expected = 10_000.0 / zeta(2000);
        assert!((newest as f64 / expected - 1.0).abs() < 0.1, "{newest} for {expected}");
    }

    #[test]
    fn uniform_draws_are_even() {
        let mut chooser = KeyChooser::new(Distribution::Uniform, 10);
        let mut rng = Rng::new(9);
        let mut counts = [0_u64; 10];
        for _ in 0..100_000 {
            counts[chooser.choose(&mut rng, 10) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
    }

    #[test]
    fn one_key_is_always_chosen() {
        for distribution in [Distribution::Uniform, Distribution::Zipfian, Distribution::Latest] {
            let mut chooser = KeyChooser::new(distribution, 1);
            let mut rng = Rng::new(1);
            assert!((0..100).all(|_| chooser.choose(&mut rng, 1) == 0));
        }
    }
}
