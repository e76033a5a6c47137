//! Reduces what a failing seed needs to fail: first its faults, then its clients and operations.
//!
//! A smaller run draws other numbers, so it may fail at another place or not at all; what counts is
//! that the same judge condemns it.

use crate::fault::Fault;
use crate::host::Wrap;
use crate::prepared::Prepared;
use crate::replay::Replay;
use crate::scenario::ScenarioError;
use crate::seed::{Report, Runner, Setup, Violation};

/// The most runs a reduction takes.
const RUNS_MAX: u32 = 2_000;

/// What a reduction came to.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The smallest run found that fails.
    pub replay: Replay,
    /// How it fails.
    pub violation: Violation,
    /// How many runs it took.
    pub runs: u32,
}

struct Shrinker<'a> {
    runner: &'a mut Runner,
    wrap: Option<Wrap>,
    best: Replay,
    violation: Violation,
    runs: u32,
}

/// Runs what a replay says.
///
/// # Errors
/// Its scenario cannot be run.
pub fn run(
    runner: &mut Runner,
    replay: &Replay,
    wrap: Option<Wrap>,
) -> Result<Report, ScenarioError> {
    let prepared = Prepared::new(replay.scenario.clone())?;
    let setup =
        Setup { seed: replay.seed, plan: Some(replay.faults.clone()), wrap, ..Setup::default() };
    Ok(runner.run(&prepared, setup))
}

/// Reduces a run; `None` if it does not fail.
///
/// # Errors
/// Its scenario cannot be run.
pub fn shrink(
    runner: &mut Runner,
    replay: Replay,
    wrap: Option<Wrap>,
) -> Result<Option<Shrunk>, ScenarioError> {
    let Some(violation) = run(runner, &replay, wrap)?.violation else { return Ok(None) };
    let mut shrinker = Shrinker { runner, wrap, best: replay, violation, runs: 1 };
    shrinker.drop_faults()?;
    while shrinker.drop_operations()? || shrinker.drop_clients()? {}
    shrinker.drop_faults()?;
    let Shrinker { best, violation, runs, .. } = shrinker;
    Ok(Some(Shrunk { replay: best, violation, runs }))
}

impl Shrinker<'_> {
    /// Takes a smaller run if the same judge condemns it.
    fn take(&mut self, candidate: Replay) -> Result<bool, ScenarioError> {
        if self.runs >= RUNS_MAX {
            return Ok(false);
        }
        self.runs += 1;
        match run(self.runner, &candidate, self.wrap)?.violation {
            Some(violation) if violation.judge == self.violation.judge => {
                self.best = candidate;
                self.violation = violation;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Drops faults: half of them, then a quarter, down to single ones, as long as something goes.
    fn drop_faults(&mut self) -> Result<(), ScenarioError> {
        let mut size = self.best.faults.len();
        while size > 0 {
            let mut from = 0;
            let mut has_dropped = false;
            while from < self.best.faults.len() {
                let rest = without(&self.best.faults, from, size);
                let candidate = Replay { faults: rest, ..self.best.clone() };
                if self.take(candidate)? {
                    has_dropped = true;
                } else {
                    from += size;
                }
            }
            if !has_dropped || size > 1 {
                size /= 2;
            }
        }
        Ok(())
    }

    fn drop_operations(&mut self) -> Result<bool, ScenarioError> {
        for keyspace in 0..self.best.scenario.keyspaces.len() {
            let now = self.best.scenario.keyspaces[keyspace].workload.operations;
            for less in [now / 2, now - now / 4, now.saturating_sub(1)] {
                if less > 0 && less < now {
                    let mut candidate = self.best.clone();
                    candidate.scenario.keyspaces[keyspace].workload.operations = less;
                    if self.take(candidate)? {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }

    fn drop_clients(&mut self) -> Result<bool, ScenarioError> {
        for keyspace in 0..self.best.scenario.keyspaces.len() {
            let mut candidate = self.best.clone();
            let workload = &mut candidate.scenario.keyspaces[keyspace].workload;
            if workload.clients >= 2 {
                // The operations of the client that goes go with it.
                workload.operations -= workload.operations / workload.clients as u32;
                workload.clients -= 1;
                if self.take(candidate)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

fn without(faults: &[Fault], from: usize, count: usize) -> Vec<Fault> {
    let end = (from + count).min(faults.len());
    faults[..from].iter().chain(&faults[end..]).cloned().collect()
}
