//! Delay distributions as tables of quantiles: one draw and one interpolation per sample.
//!
//! The tables are built from additions, multiplications and divisions alone, which every machine
//! computes alike; a mathematics library may differ in the last bit, and with it the trace.

use quorate_kernel::rng::Rng;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A distribution of times, as a scenario states it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Distribution {
    /// Always the same.
    Constant {
        /// The time in microseconds.
        us: u64,
    },
    /// Every time in a range is equally likely.
    Uniform {
        /// The shortest time in microseconds.
        low_us: u64,
        /// The longest time in microseconds.
        high_us: u64,
    },
    /// Exponential: often short, sometimes long.
    Exponential {
        /// The mean in microseconds.
        mean_us: u64,
    },
    /// Log-normal: never near zero, with a long tail.
    LogNormal {
        /// The median in microseconds.
        median_us: u64,
        /// The standard deviation of the logarithm in percent; 100 makes one sample in forty
        /// over seven times the median.
        sigma_percent: u32,
    },
}

/// How many pieces a table has. The longest sample is the quantile of its last half piece.
const PIECES: usize = 1024;

/// A distribution ready to be sampled, in nanoseconds.
#[derive(Clone, Debug)]
pub struct Delay {
    /// Quantiles at equal steps, ascending; at least two.
    quantiles: Arc<[u64]>,
}

impl Delay {
    /// Tabulates a distribution.
    #[must_use]
    pub fn new(distribution: &Distribution) -> Delay {
        let quantiles = match *distribution {
            Distribution::Constant { us } => vec![us * 1000; 2],
            Distribution::Uniform { low_us, high_us } => {
                vec![low_us * 1000, high_us.max(low_us) * 1000]
            }
            Distribution::Exponential { mean_us } => {
                quantiles(|p| -ln(1.0 - p) * mean_us as f64 * 1000.0)
            }
            Distribution::LogNormal { median_us, sigma_percent } => {
                let normal = Normal::new();
                let sigma = f64::from(sigma_percent) / 100.0;
                quantiles(|p| exp(normal.quantile(p) * sigma) * median_us as f64 * 1000.0)
            }
        };
        Delay { quantiles: quantiles.into() }
    }

    /// Draws a time in nanoseconds.
    pub fn sample(&self, rng: &mut Rng) -> u64 {
        let pieces = (self.quantiles.len() - 1) as u64;
        let place = u128::from(rng.next()) * u128::from(pieces);
        let piece = (place >> 64) as usize;
        let part = (place as u64) >> 32;
        let (low, high) = (self.quantiles[piece], self.quantiles[piece + 1]);
        low + ((u128::from(high - low) * u128::from(part)) >> 32) as u64
    }
}

fn quantiles(at: impl Fn(f64) -> f64) -> Vec<u64> {
    let last = PIECES as f64;
    let inner = |index: usize| at((index as f64).clamp(0.5, last - 0.5) / last) as u64;
    (0..=PIECES).map(inner).collect()
}

/// The natural logarithm of a positive number: halved or doubled into `2/3..4/3`, then the series
/// of the inverse hyperbolic tangent.
fn ln(mut x: f64) -> f64 {
    let mut powers = 0.0;
    while x > 4.0 / 3.0 {
        x /= 2.0;
        powers += 1.0;
    }
    while x < 2.0 / 3.0 {
        x *= 2.0;
        powers -= 1.0;
    }
    series(x) + powers * series_of_two()
}

fn series(x: f64) -> f64 {
    let ratio = (x - 1.0) / (x + 1.0);
    let square = ratio * ratio;
    let (mut sum, mut term) = (0.0, ratio);
    for n in 0..24 {
        sum += term / f64::from(2 * n + 1);
        term *= square;
    }
    2.0 * sum
}

fn series_of_two() -> f64 {
    series(4.0 / 3.0) - series(2.0 / 3.0)
}

/// The exponential function: the power series of a part below one half, squared up again.
fn exp(mut x: f64) -> f64 {
    let mut squarings = 0;
    while !(-0.5..=0.5).contains(&x) {
        x /= 2.0;
        squarings += 1;
    }
    let (mut sum, mut term) = (1.0, 1.0);
    for n in 1..20 {
        term *= x / f64::from(n);
        sum += term;
    }
    (0..squarings).fold(sum, |power, _| power * power)
}

/// The standard normal distribution between -4 and 4, integrated in small steps.
struct Normal {
    /// The share below -4 + step · (index + 1).
    below: Vec<f64>,
    step: f64,
}

impl Normal {
    fn new() -> Normal {
        let step = 0.01;
        let density = |index: u32| {
            let x = -4.0 + step * (f64::from(index) + 0.5);
            exp(-x * x / 2.0)
        };
        let mut sum = 0.0;
        let mut below: Vec<f64> = Vec::new();
        for index in 0..800 {
            sum += density(index);
            below.push(sum);
        }
        below.iter_mut().for_each(|share| *share /= sum);
        Normal { below, step }
    }

    fn quantile(&self, p: f64) -> f64 {
        let index = self.below.partition_point(|share| *share < p);
        let low = if index == 0 { 0.0 } else { self.below[index - 1] };
        let high = self.below.get(index).copied().unwrap_or(1.0);
        let part = if high > low { (p - low) / (high - low) } else { 0.0 };
        -4.0 + self.step * (index as f64 + part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(distribution: &Distribution) -> Vec<u64> {
        let delay = Delay::new(distribution);
        let mut rng = Rng::new(1);
        let mut all: Vec<u64> = (0..100_000).map(|_| delay.sample(&mut rng)).collect();
        all.sort_unstable();
        all
    }

    fn is_near(value: u64, expected: u64, percent: u64) -> bool {
        value.abs_diff(expected) * 100 <= expected * percent
    }

    #[test]
    fn own_functions_agree_with_the_library() {
        for n in 1..500 {
            let x = f64::from(n) / 37.0;
            assert!((ln(x) - x.ln()).abs() < 1e-12, "ln {x}");
            assert!((exp(x) / x.exp() - 1.0).abs() < 1e-12, "exp {x}");
            assert!((exp(-x) / (-x).exp() - 1.0).abs() < 1e-12, "exp -{x}");
        }
    }

    #[test]
    fn samples_follow_their_distribution() {
        let constant = samples(&Distribution::Constant { us: 7 });
        assert_eq!((constant[0], constant[99_999]), (7000, 7000));
        let uniform = samples(&Distribution::Uniform { low_us: 100, high_us: 300 });
        assert!(uniform[0] >= 100_000 && uniform[99_999] <= 300_000);
        assert!(is_near(uniform[50_000], 200_000, 2));
        let exponential = samples(&Distribution::Exponential { mean_us: 1000 });
        let mean = exponential.iter().sum::<u64>() / 100_000;
        assert!(is_near(mean, 1_000_000, 2) && is_near(exponential[50_000], 693_147, 2));
        let log_normal = Distribution::LogNormal { median_us: 1000, sigma_percent: 100 };
        let log_normal = samples(&log_normal);
        assert!(is_near(log_normal[50_000], 1_000_000, 2));
        assert!(is_near(log_normal[97_500], 7_099_000, 5));
    }
}
