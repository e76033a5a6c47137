//! Means and their confidence intervals.

/// A mean with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// The lower end of the interval; the mean itself if one sample is all there is.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// The 97.5 % quantiles of Student's distribution for 1, 2, 3, … degrees of freedom.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// The 97.5 % quantile of the normal distribution.
const NORMAL: f64 = 1.959_964;

impl Estimate {
    /// Half of the interval.
    #[must_use]
    pub fn half(&self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

/// The share of the lowest, and of the highest, samples that a trimmed mean leaves out.
const TRIMMED: f64 = 0.2;

/// The mean ratio of pairs: geometric, so that A to B and B to A say the same. The interval is
/// Student's on the logarithms. Pairs with something that is not positive say nothing.
#[must_use]
pub fn ratio(pairs: &[(f64, f64)]) -> Estimate {
    of_logs(pairs, mean)
}

/// The same of the middle of the pairs: now and then something else takes the machine for one of
/// the two runs, and such a pair says nothing of them.
#[must_use]
pub fn trimmed_ratio(pairs: &[(f64, f64)]) -> Estimate {
    of_logs(pairs, trimmed)
}

fn of_logs(pairs: &[(f64, f64)], mean: fn(&[f64]) -> Estimate) -> Estimate {
    let logs: Vec<f64> = pairs
        .iter()
        .filter(|(one, other)| *one > 0.0 && *other > 0.0)
        .map(|(one, other)| (one / other).ln())
        .collect();
    let Estimate { mean, low, high } = mean(&logs);
    Estimate { mean: mean.exp(), low: low.exp(), high: high.exp() }
}

/// The mean of samples; zero of none.
#[must_use]
pub fn mean(samples: &[f64]) -> Estimate {
    let count = samples.len() as f64;
    let mean = if samples.is_empty() { 0.0 } else { samples.iter().sum::<f64>() / count };
    let Some(freedom) = samples.len().checked_sub(1).filter(|freedom| *freedom > 0) else {
        return Estimate { mean, low: mean, high: mean };
    };
    let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
    let error = (squares / freedom as f64 / count).sqrt();
    let width = error * student(freedom);
    Estimate { mean, low: mean - width, high: mean + width }
}

/// The mean of what is left without the lowest and the highest fifth, with the interval of Tukey
/// and McLaughlin: Student's, with the variance of all samples after those left out were moved to
/// the nearest that count.
#[must_use]
pub fn trimmed(samples: &[f64]) -> Estimate {
    let cut = (samples.len() as f64 * TRIMMED) as usize;
    let mut moved = samples.to_vec();
    moved.sort_by(f64::total_cmp);
    let upper = moved.len() - cut;
    let kept = mean(&moved[cut..upper]);
    if upper - cut < 2 {
        return kept;
    }
    let (lowest, highest) = (moved[cut], moved[upper - 1]);
    moved.iter_mut().for_each(|sample| *sample = sample.clamp(lowest, highest));
    let all = mean(&moved);
    let error = all.half() / student(moved.len() - 1) / (1.0 - 2.0 * TRIMMED);
    let width = error * student(upper - cut - 1);
    Estimate { mean: kept.mean, low: kept.mean - width, high: kept.mean + width }
}

/// The share of `hits` among `of` trials with Wilson's interval (1927), which also says something
/// where there is no hit, or no other. Trials that hang together count as fewer than they are: the
/// interval is too narrow then.
#[must_use]
pub fn proportion(hits: u64, of: u64) -> Estimate {
    if of == 0 {
        return Estimate { mean: 0.0, low: 0.0, high: 1.0 };
    }
    let (count, share, z) = (of as f64, hits as f64 / of as f64, NORMAL);
    let middle = share + z * z / (2.0 * count);
    let half = z * (share * (1.0 - share) / count + z * z / (4.0 * count * count)).sqrt();
    let scale = 1.0 + z * z / count;
    let low = if hits == 0 { 0.0 } else { (middle - half) / scale };
    let high = if hits == of { 1.0 } else { (middle + half) / scale };
    Estimate { mean: share, low, high }
}

fn student(freedom: usize) -> f64 {
    STUDENT.get(freedom - 1).copied().unwrap_or(1.96)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_students() {
        let estimate = mean(&[1.0, 2.0, 3.0]);
        assert!((estimate.mean - 2.0).abs() < 1e-9);
        // Standard error 1/√3, two degrees of freedom.
        assert!((estimate.high - 2.0 - 4.303 / 3.0_f64.sqrt()).abs() < 1e-9);
        assert_eq!(mean(&[5.0]), Estimate { mean: 5.0, low: 5.0, high: 5.0 });
        assert_eq!(mean(&[]).mean, 0.0);
    }

    /// The examples of Newcombe, "Two-sided confidence intervals for the single proportion"
    /// (1998), table I, method 3.
    #[test]
    fn an_interval_of_a_share_is_wilsons() {
        let known = [
            ((81, 263), (0.2553, 0.3662)),
            ((15, 148), (0.0624, 0.1605)),
            ((0, 20), (0.0, 0.1611)),
            ((1, 29), (0.0061, 0.1718)),
        ];
        for ((hits, of), (low, high)) in known {
            let found = proportion(hits, of);
            assert!((found.low - low).abs() < 6e-5, "{hits} of {of}: {found:?}");
            assert!((found.high - high).abs() < 6e-5, "{hits} of {of}: {found:?}");
            let other = proportion(of - hits, of);
            assert!((other.low + found.high - 1.0).abs() < 1e-9, "misses mirror hits");
        }
        assert_eq!(proportion(0, 0), Estimate { mean: 0.0, low: 0.0, high: 1.0 });
    }

    #[test]
    fn a_trimmed_mean_is_not_moved_by_outliers() {
        let calm: Vec<f64> = (0..20).map(|n| f64::from(n % 5)).collect();
        let mut wild = calm.clone();
        wild[4] = 1e6;
        let (calm, wild) = (trimmed(&calm), trimmed(&wild));
        assert!((calm.mean - 2.0).abs() < 1e-9 && (wild.mean - 2.0).abs() < 1e-9);
        assert!((calm.half() - wild.half()).abs() < 1e-9);
        // Twelve are kept; the variance is that of four each of 1, 1, 2, 3 and 3.
        let error = (16.0 / 19.0 / 20.0_f64).sqrt() / 0.6;
        assert!((calm.half() - 2.201 * error).abs() < 1e-9, "{calm:?}");
        assert_eq!(trimmed(&[3.0]), mean(&[3.0]));
    }

    #[test]
    fn a_ratio_reads_the_same_from_both_sides() {
        let pairs = [(2.0, 1.0), (8.0, 1.0), (0.0, 1.0)];
        let turned: Vec<(f64, f64)> = pairs.iter().map(|(one, other)| (*other, *one)).collect();
        let (one, other) = (ratio(&pairs), ratio(&turned));
        assert!((one.mean - 4.0).abs() < 1e-9, "the pair with a zero says nothing");
        assert!((one.mean * other.mean - 1.0).abs() < 1e-9);
        assert!((one.low * other.high - 1.0).abs() < 1e-9);
    }
}
