//! What the command line of the simulator takes. The server's `quorate sim` takes the same.

use crate::forger::WORLDS;
use crate::overlay::OverlayArgs;
use clap::{Args, Subcommand, ValueEnum};
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Lines for people.
    #[default]
    Text,
    /// One JSON object, on the last line.
    Json,
}

/// Runs simulated clusters under faults and judges what their clients saw.
#[derive(Args, Clone, Debug, Default)]
pub struct SimArgs {
    /// Something else than scenarios.
    #[command(subcommand)]
    pub command: Option<SimCommand>,
    /// Lists the scenarios and ends.
    #[arg(long)]
    pub list: bool,
    /// Which scenarios to run, by name or by the path of a file; all of them if none is given.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub scenario: Vec<String>,
    /// Runs this one seed and prints what it did.
    #[arg(long, value_name = "N", conflicts_with_all = ["seeds", "duration"])]
    pub seed: Option<u64>,
    /// Runs these seeds of each scenario; the end is not included.
    #[arg(long, value_name = "A..B", value_parser = range)]
    pub seeds: Option<Range<u64>>,
    /// Runs fresh seeds for this long, such as 90s, 10m or 8h.
    #[arg(long = "for", value_name = "TIME", value_parser = duration, conflicts_with = "seeds")]
    pub duration: Option<Duration>,
    /// Stops at the first violation.
    #[arg(long)]
    pub until_violation: bool,
    /// Prints the trace of the one seed.
    #[arg(long)]
    pub trace: bool,
    /// Reduces the faults and clients of a seed that fails, and prints what is left as a replay
    /// file.
    #[arg(long)]
    pub shrink: bool,
    /// Runs what a replay file says.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["scenario", "seed", "seeds", "duration"]
    )]
    pub replay: Option<PathBuf>,
    /// Where `--shrink` writes the replay file, instead of printing it.
    #[arg(long, value_name = "FILE", requires = "shrink")]
    pub output: Option<PathBuf>,
    /// How results are printed.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// How many seeds run at once; as many as there are cores if not given.
    #[arg(long, value_name = "N")]
    pub jobs: Option<usize>,
    /// Fails unless every mark of the simulator's list of rare paths was reached, four of five
    /// seeds of each scenario did enough to count, and, from 20,000 seeds of a grid on, each of its
    /// cells was met.
    #[arg(long)]
    pub require_probes: bool,
}

/// What the simulator does beside running scenarios.
#[derive(Subcommand, Clone, Debug)]
pub enum SimCommand {
    /// Runs many overlays and nothing else, and tells what membership costs
    Overlay(OverlayArgs),
    /// Adds frames with odd contents to those of clusters, and tells by which of them a host ends
    Forge(ForgeArgs),
}

/// What is forged.
#[derive(Args, Clone, Debug)]
pub struct ForgeArgs {
    /// In which clusters.
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_values = WORLDS)]
    pub scenario: Vec<String>,
    /// Which seeds of each; the end is not included.
    #[arg(long, value_name = "A..B", value_parser = range, default_value = "0..100")]
    pub seeds: Range<u64>,
    /// One forged frame for so many real ones.
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub one_in: u64,
    /// How many events a seed has.
    #[arg(long, value_name = "N", default_value_t = 60_000)]
    pub events: u64,
}

/// Reads `A..B`.
fn range(text: &str) -> Result<Range<u64>, String> {
    let bounds = text.split_once("..").map(|(from, to)| (from.parse::<u64>(), to.parse::<u64>()));
    match bounds {
        Some((Ok(from), Ok(to))) if from < to => Ok(from..to),
        _ => Err("expected A..B with A below B".to_owned()),
    }
}

/// Reads a number and `s`, `m` or `h`.
fn duration(text: &str) -> Result<Duration, String> {
    let expected = || "expected a time such as 90s, 10m or 8h".to_owned();
    let unit = text.chars().last().ok_or_else(expected)?;
    let number: u64 = text[..text.len() - unit.len_utf8()].parse().map_err(|_| expected())?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        _ => return Err(expected()),
    };
    Ok(Duration::from_secs(number.checked_mul(seconds).ok_or_else(expected)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_times_are_read() {
        assert_eq!(range("3..10"), Ok(3..10));
        for wrong in ["3", "3..", "..3", "5..5", "6..5", "a..b"] {
            assert!(range(wrong).is_err(), "{wrong}");
        }
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("10m"), Ok(Duration::from_secs(600)));
        for wrong in ["", "s", "10", "10d", "-5s", "1µ"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
