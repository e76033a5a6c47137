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

/// The mean ratio of pairs: geometric, so that A to B and B to A say the same. The interval is
/// Student's on the logarithms. Pairs with something that is not positive say nothing.
#[must_use]
pub fn ratio(pairs: &[(f64, f64)]) -> Estimate {
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
    let width = error * STUDENT.get(freedom - 1).copied().unwrap_or(1.96);
    Estimate { mean, low: mean - width, high: mean + width }
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
