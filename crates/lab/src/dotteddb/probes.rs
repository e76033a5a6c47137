//! How long until another real host shows an update: keys that nothing else writes, each written
//! once and then looked for at one other host.

use super::simulated::run::Times;
use super::updates::{Asker, key, micros, value};
use quorate_cli::exit::Failure;
use quorate_kernel::rng::Rng;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

/// The writer that values of these updates name.
const WRITER: u64 = 0;
/// How soon another look is taken, at the least.
const LOOK_MIN: Duration = Duration::from_millis(1);
/// Later looks are this part of the age apart: so inexact are times at most.
const PART: u32 = 20;
/// How long an update is looked for.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is written and when.
#[derive(Clone, Debug)]
pub struct Probes {
    /// The keys that are written: so many, from this number on.
    pub keys: (u64, u64),
    /// When the first is written, and when the last has been.
    pub window: (Instant, Instant),
    /// Decides at which hosts.
    pub seed: u64,
}

/// An update that has not been seen elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    look_at: Instant,
    written: Instant,
    key: u64,
    host: usize,
}

impl Probes {
    /// Writes and looks. Times are from an acknowledgement until the reply that showed the value
    /// at the other host.
    ///
    /// # Errors
    /// A host does not answer.
    pub fn run(&self, askers: &mut [Asker]) -> Result<Times, Failure> {
        let mut rng = Rng::new(self.seed);
        let hosts = askers.len() as u64;
        let (first, count) = self.keys;
        let length = self.window.1.saturating_duration_since(self.window.0);
        let due = |nth: u64| self.window.0 + length.mul_f64(nth as f64 / count.max(1) as f64);
        let mut waiting: BinaryHeap<Reverse<Waiting>> = BinaryHeap::new();
        let (mut written, mut times, mut open) = (0, Vec::new(), 0);
        loop {
            let write_at = (written < count).then(|| due(written));
            let look_at = waiting.peek().map(|Reverse(next)| next.look_at);
            let Some(next) = write_at.into_iter().chain(look_at).min() else { break };
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
            if write_at == Some(next) {
                let at = rng.below(hosts);
                let host = (at + 1 + rng.below(hosts - 1)) % hosts;
                let number = first + written;
                askers[at as usize].update(&key(number), &value(WRITER, number))?;
                let now = Instant::now();
                let host = host as usize;
                waiting.push(Reverse(Waiting { look_at: now, written: now, key: number, host }));
                written += 1;
            } else if let Some(Reverse(one)) = waiting.pop() {
                let (_, values) = askers[one.host].get(&key(one.key))?;
                let age = one.written.elapsed();
                if values.contains(&value(WRITER, one.key).into()) {
                    times.push(micros(age));
                } else if age > PATIENCE {
                    open += 1;
                } else {
                    let look_at = Instant::now() + (age / PART).max(LOOK_MIN);
                    waiting.push(Reverse(Waiting { look_at, ..one }));
                }
            }
        }
        Ok(Times::new(times, open))
    }
}
