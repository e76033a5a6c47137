//! What a sweep has done, and how it is printed.

use crate::prepared::Prepared;
use crate::seed::Report;
use crate::world::grid::{self, Met};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

/// The most cells never met that are named.
const UNMET_MAX: usize = 12;
/// The most violations that are kept in full.
const VIOLATIONS_MAX: usize = 100;
/// What the table says of each scenario, and how wide that is; the last is of one busy core.
const COLUMNS: [(&str, usize); 9] = [
    ("seeds", 9),
    ("counted", 9),
    ("events", 13),
    ("operations", 12),
    ("unknown", 10),
    ("faults", 10),
    ("violations", 10),
    ("busy ms", 9),
    ("events/s", 9),
];

/// The sums over the seeds of one scenario, or of all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sums {
    /// The scenario.
    pub scenario: String,
    /// Seeds that ran.
    pub seeds: u64,
    /// Seeds that did enough to count.
    pub counted: u64,
    /// Events.
    pub events: u64,
    /// Operations answered.
    pub operations: u64,
    /// Operations whose outcome is unknown.
    pub unknown: u64,
    /// Operations refused.
    pub refused: u64,
    /// Faults applied.
    pub faults: u64,
    /// Views decided.
    pub views: u64,
    /// Time of the simulated worlds in seconds.
    pub simulated_seconds: u64,
    /// Seeds with a violation.
    pub violations: u64,
    /// How long cores were busy with them, in microseconds.
    pub busy_us: u64,
}

impl Sums {
    fn add(&mut self, other: &Sums) {
        self.seeds += other.seeds;
        self.counted += other.counted;
        self.events += other.events;
        self.operations += other.operations;
        self.unknown += other.unknown;
        self.refused += other.refused;
        self.faults += other.faults;
        self.views += other.views;
        self.simulated_seconds += other.simulated_seconds;
        self.violations += other.violations;
        self.busy_us += other.busy_us;
    }

    /// The numbers of [`COLUMNS`].
    fn cells(&self) -> [u64; COLUMNS.len()] {
        let Sums { seeds, counted, events, operations, unknown, faults, violations, .. } = *self;
        let (busy_ms, pace) = (self.busy_us / 1000, self.events_per_core_second());
        [seeds, counted, events, operations, unknown, faults, violations, busy_ms, pace]
    }

    /// Events per second of one busy core.
    #[must_use]
    pub fn events_per_core_second(&self) -> u64 {
        (u128::from(self.events) * 1_000_000 / u128::from(self.busy_us.max(1))) as u64
    }
}

/// One violation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Found {
    /// The scenario.
    pub scenario: String,
    /// The seed.
    pub seed: u64,
    /// Who found it.
    pub judge: &'static str,
    /// What it is.
    pub message: String,
    /// Its place in the sweep.
    #[serde(skip)]
    item: u64,
}

/// What a sweep has done.
#[derive(Clone, Debug)]
pub struct Summary {
    /// By scenario.
    pub scenarios: Vec<Sums>,
    /// The violations, in the order of the sweep.
    pub violations: Vec<Found>,
    /// An example of why seeds did not count, by scenario.
    pub idle: Vec<Option<(u64, String)>>,
    /// How often each cell was met, by scenario; of those that are no grid there are none.
    pub cells: Vec<BTreeMap<Met, u64>>,
    /// How long it took.
    pub elapsed: Duration,
    /// How many threads there were.
    pub jobs: usize,
    /// The first seed.
    pub first_seed: u64,
}

impl Summary {
    /// Nothing done yet.
    #[must_use]
    pub fn new(scenarios: &[Prepared]) -> Summary {
        let empty = |prepared: &Prepared| Sums {
            scenario: prepared.scenario.name.clone(),
            ..Sums::default()
        };
        let cells = |prepared: &Prepared| {
            grid::cells(&prepared.scenario).into_iter().map(|cell| (cell, 0)).collect()
        };
        Summary {
            scenarios: scenarios.iter().map(empty).collect(),
            cells: scenarios.iter().map(cells).collect(),
            violations: Vec::new(),
            idle: vec![None; scenarios.len()],
            elapsed: Duration::ZERO,
            jobs: 0,
            first_seed: 0,
        }
    }

    /// Adds the report of a seed, with which a core was busy for so long.
    pub fn add(&mut self, item: u64, scenario: usize, report: Report, busy: Duration) {
        let sums = &mut self.scenarios[scenario];
        sums.seeds += 1;
        sums.busy_us += busy.as_micros() as u64;
        sums.counted += u64::from(report.idle.is_none());
        sums.events += report.events;
        sums.operations += report.counts.answered;
        sums.unknown += report.counts.unknown;
        sums.refused += report.counts.refused;
        sums.faults += report.faults;
        sums.views += report.views;
        sums.simulated_seconds += report.time / 1_000_000_000;
        if let Some(violation) = report.violation {
            sums.violations += 1;
            self.violations.push(Found {
                scenario: sums.scenario.clone(),
                seed: report.seed,
                judge: violation.judge,
                message: violation.message,
                item,
            });
            self.trim();
        }
        for met in report.met {
            *self.cells[scenario].entry(met).or_default() += 1;
        }
        if let Some(why) = report.idle {
            self.idle[scenario].get_or_insert((report.seed, why));
        }
    }

    /// Keeps the first violations of the sweep, whichever thread found them.
    fn trim(&mut self) {
        if self.violations.len() > 2 * VIOLATIONS_MAX {
            self.violations.sort_by_key(|found| found.item);
            self.violations.truncate(VIOLATIONS_MAX);
        }
    }

    /// Adds what another thread has done.
    pub fn merge(&mut self, other: Summary) {
        for (mine, theirs) in self.scenarios.iter_mut().zip(&other.scenarios) {
            mine.add(theirs);
        }
        for (mine, theirs) in self.idle.iter_mut().zip(other.idle) {
            *mine = match (mine.take(), theirs) {
                (Some(one), Some(two)) => Some(one.min(two)),
                (one, two) => one.or(two),
            };
        }
        for (mine, theirs) in self.cells.iter_mut().zip(other.cells) {
            theirs.into_iter().for_each(|(cell, met)| *mine.entry(cell).or_default() += met);
        }
        self.violations.extend(other.violations);
    }

    /// Ends the sweep.
    pub fn finish(&mut self, elapsed: Duration, jobs: usize, first_seed: u64) {
        self.violations.sort_by_key(|found| found.item);
        self.violations.truncate(VIOLATIONS_MAX);
        self.elapsed = elapsed;
        self.jobs = jobs;
        self.first_seed = first_seed;
    }

    /// The sums over all scenarios.
    #[must_use]
    pub fn total(&self) -> Sums {
        let mut total = Sums { scenario: "all".to_owned(), ..Sums::default() };
        self.scenarios.iter().for_each(|sums| total.add(sums));
        total
    }

    /// The scenarios of whose seeds fewer than four of five did enough to count.
    pub fn idle_scenarios(&self) -> impl Iterator<Item = &Sums> {
        self.scenarios.iter().filter(|sums| 5 * sums.counted < 4 * sums.seeds)
    }

    /// The cells of a scenario that no seed has met.
    pub fn unmet(&self, scenario: usize) -> impl Iterator<Item = &Met> {
        self.cells[scenario].iter().filter(|(_, met)| **met == 0).map(|(cell, _)| cell)
    }

    /// The cells that no seed has met of grids with so many seeds that each should be met.
    pub fn missed(&self) -> impl Iterator<Item = (&str, &Met)> {
        let scenarios = self.scenarios.iter().enumerate();
        let large = scenarios.filter(|(_, sums)| sums.seeds >= grid::SEEDS_FOR_ALL);
        large.flat_map(|(at, sums)| self.unmet(at).map(|cell| (sums.scenario.as_str(), cell)))
    }

    /// How many cells of a grid were met, and some of those that were not.
    fn tell_cells(&self, scenario: usize) -> Option<String> {
        let all = self.cells[scenario].len();
        let unmet: Vec<String> = self.unmet(scenario).map(Met::to_string).collect();
        let (name, met) = (&self.scenarios[scenario].scenario, all - unmet.len());
        let shown = unmet[..unmet.len().min(UNMET_MAX)].join("; ");
        let more = match unmet.len().saturating_sub(UNMET_MAX) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let never = if unmet.is_empty() { "" } else { "; never met: " };
        (all > 0).then(|| format!("{name}: {met} of {all} cells met{never}{shown}{more}"))
    }

    /// The table and the last line, for people.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        text.push_str(&row("scenario", COLUMNS.map(|(name, _)| name.to_owned())));
        for sums in &self.scenarios {
            text.push_str(&row(&sums.scenario, sums.cells().map(|number| number.to_string())));
        }
        for (sums, idle) in self.scenarios.iter().zip(&self.idle) {
            if let Some((seed, why)) = idle {
                let _ = writeln!(text, "{}: seed {seed} does not count: {why}", sums.scenario);
            }
        }
        for line in (0..self.scenarios.len()).filter_map(|at| self.tell_cells(at)) {
            let _ = writeln!(text, "{line}");
        }
        for found in &self.violations {
            let Found { scenario, seed, judge, message, .. } = found;
            let _ = writeln!(text, "violation: scenario {scenario}, seed {seed}, judge {judge}");
            let _ = writeln!(text, "{message}");
        }
        text.push_str(&self.last_line());
        text
    }

    fn last_line(&self) -> String {
        let total = self.total();
        let seconds = self.elapsed.as_secs_f64();
        format!(
            "{} seeds from {} on ({} counted, {} not), {} events, {} operations, {} faults, {} \
             violations, {:.1} s, {} events/s per core on {} threads",
            total.seeds,
            self.first_seed,
            total.counted,
            total.seeds - total.counted,
            total.events,
            total.operations,
            total.faults,
            total.violations,
            seconds,
            total.events_per_core_second(),
            self.jobs,
        )
    }

    /// The same as one JSON object.
    #[must_use]
    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct All<'a> {
            seeds: u64,
            first_seed: u64,
            counted: u64,
            events: u64,
            operations: u64,
            faults: u64,
            violations: &'a [Found],
            violations_total: u64,
            seconds: f64,
            events_per_core_second: u64,
            jobs: usize,
            scenarios: &'a [Sums],
            cells: usize,
            cells_unmet: Vec<&'a Met>,
        }
        let total = self.total();
        let all = All {
            seeds: total.seeds,
            first_seed: self.first_seed,
            counted: total.counted,
            events: total.events,
            operations: total.operations,
            faults: total.faults,
            violations: &self.violations,
            violations_total: total.violations,
            seconds: self.elapsed.as_secs_f64(),
            events_per_core_second: total.events_per_core_second(),
            jobs: self.jobs,
            scenarios: &self.scenarios,
            cells: self.cells.iter().map(BTreeMap::len).sum(),
            cells_unmet: (0..self.scenarios.len()).flat_map(|at| self.unmet(at)).collect(),
        };
        serde_json::to_string(&all).expect("numbers and texts always serialize")
    }
}

/// A line of the table.
fn row(name: &str, cells: [String; COLUMNS.len()]) -> String {
    let cells = cells.iter().zip(COLUMNS).map(|(cell, (_, width))| format!(" {cell:>width$}"));
    format!("{name:<15}{}\n", cells.collect::<String>())
}
