//! Runs many seeds on all cores.

use crate::args::SimArgs;
use crate::prepared::Prepared;
use crate::seed::{Report, Runner, Setup};
use crate::summary::Summary;
use indicatif::{ProgressBar, ProgressStyle};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Which seeds to run.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The seeds of each scenario.
    pub seeds: Range<u64>,
    /// When to stop, if not at the last seed.
    pub limit: Option<Duration>,
    /// Whether to stop at the first violation.
    pub until_violation: bool,
    /// How many threads.
    pub jobs: usize,
}

impl Sweep {
    /// What the command line asks for. Without seeds each scenario runs a few hundred; with a time
    /// the seeds begin at a number that no earlier sweep had.
    #[must_use]
    pub fn new(args: &SimArgs) -> Sweep {
        const SEEDS_DEFAULT: Range<u64> = 0..200;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let seeds = match (&args.seeds, args.duration) {
            (Some(seeds), _) => seeds.clone(),
            (None, None) => SEEDS_DEFAULT,
            (None, Some(_)) => {
                let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
                let seconds = since.map_or(1, |since| since.as_secs());
                seconds * 1_000_000..u64::MAX
            }
        };
        Sweep {
            seeds,
            limit: args.duration,
            until_violation: args.until_violation,
            jobs: args.jobs.unwrap_or(cores).max(1),
        }
    }

    /// How many runs there are, if that is known.
    fn count(&self, scenarios: usize) -> Option<u64> {
        let seeds = self.seeds.end - self.seeds.start;
        if self.limit.is_some() { None } else { seeds.checked_mul(scenarios as u64) }
    }

    /// Runs the seeds of every scenario, seed by seed; of costly scenarios among others only some.
    /// The result does not depend on the number of threads unless a time limit cuts it off.
    #[must_use]
    pub fn run(&self, scenarios: &[Prepared]) -> Summary {
        let begun = Instant::now();
        let bar = self.bar(scenarios.len());
        let total = Mutex::new(Summary::new(scenarios));
        let next = AtomicU64::new(0);
        // Runs from here on need not be done any more.
        let end = AtomicU64::new(self.count(scenarios.len()).unwrap_or(u64::MAX));
        std::thread::scope(|scope| {
            for _ in 0..self.jobs {
                scope.spawn(|| self.work(scenarios, &next, &end, begun, &bar, &total));
            }
        });
        bar.finish_and_clear();
        let mut total = total.into_inner().expect("no thread panicked while it added a report");
        total.finish(begun.elapsed(), self.jobs, self.seeds.start);
        if self.until_violation {
            total.violations.truncate(1);
        }
        total
    }

    fn work(
        &self,
        scenarios: &[Prepared],
        next: &AtomicU64,
        end: &AtomicU64,
        begun: Instant,
        bar: &ProgressBar,
        total: &Mutex<Summary>,
    ) {
        let mut runner = Runner::default();
        let mut mine = Summary::new(scenarios);
        let mut busy_before = busy(begun);
        loop {
            let item = next.fetch_add(1, Ordering::Relaxed);
            let is_late = self.limit.is_some_and(|limit| begun.elapsed() >= limit);
            if item >= end.load(Ordering::Relaxed) || is_late {
                break;
            }
            let scenario = (item % scenarios.len() as u64) as usize;
            let seed = self.seeds.start + item / scenarios.len() as u64;
            if scenarios.len() > 1 && !seed.is_multiple_of(scenarios[scenario].scenario.every) {
                bar.inc(1);
                continue;
            }
            let report = runner.run(&scenarios[scenario], Setup { seed, ..Setup::default() });
            if report.violation.is_some() && self.until_violation {
                // Every run before this one was taken by a thread that finishes it, so the first
                // violation of all is found whatever the threads do.
                end.fetch_min(item, Ordering::Relaxed);
            }
            tell(bar, &scenarios[scenario], &report);
            let busy_now = busy(begun);
            mine.add(item, scenario, report, busy_now.saturating_sub(busy_before));
            busy_before = busy_now;
        }
        total.lock().expect("no thread panicked while it added a report").merge(mine);
    }

    fn bar(&self, scenarios: usize) -> ProgressBar {
        const COUNTED: &str =
            "{elapsed_precise} {wide_bar} {pos}/{len} seeds, {per_sec}, {eta} left {msg}";
        const OPEN: &str = "{elapsed_precise} {spinner} {pos} seeds, {per_sec} {msg}";
        let (bar, template) = match self.count(scenarios) {
            Some(count) => (ProgressBar::new(count), COUNTED),
            None => (ProgressBar::new_spinner(), OPEN),
        };
        let style = ProgressStyle::with_template(template).expect("the template is valid");
        bar.set_style(style);
        bar.enable_steady_tick(Duration::from_millis(200));
        bar
    }
}

/// How long this thread was on a core, where the system tells: other work on the machine does not
/// count. Elsewhere, how long ago it began.
pub fn busy(begun: Instant) -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|nanos| nanos.parse().ok());
    nanos.map_or_else(|| begun.elapsed(), Duration::from_nanos)
}

fn tell(bar: &ProgressBar, prepared: &Prepared, report: &Report) {
    bar.inc(1);
    if let Some(violation) = &report.violation {
        let (name, seed, judge) = (&prepared.scenario.name, report.seed, violation.judge);
        bar.println(format!("violation: scenario {name}, seed {seed}, judge {judge}"));
    }
}
