//! TPC-C's terminals as clients of a simulated cluster.

use super::clients::{Ended, transact};
use crate::service::{Clients, Hearing};
use quorate_bench::{AttemptEnd, DrivenTerminal, Sizes};
use quorate_kernel::operation::Operation;
use quorate_kernel::rng::Rng;

/// The terminals.
pub struct Terminals {
    all: Vec<Station>,
    /// What has ended.
    pub ended: Ended,
}

/// A terminal, and what its last attempt is counted by.
struct Station {
    terminal: DrivenTerminal,
    /// When the transaction began that it is at.
    begun: u64,
    /// When it was told last, and whether that counts.
    heard: (u64, bool),
}

impl Terminals {
    /// So many over tables of this size, which they write first.
    #[must_use]
    pub fn new(sizes: Sizes, count: u32, seed: u64) -> Terminals {
        let station = |terminal| Station { terminal, begun: 0, heard: (0, false) };
        let all = DrivenTerminal::all(sizes, seed, count).into_iter().map(station).collect();
        Terminals { all, ended: Ended::default() }
    }
}

impl Clients for Terminals {
    fn are_ready(&self) -> bool {
        self.all.iter().all(|station| station.terminal.is_loaded())
    }

    fn count(&self) -> usize {
        self.all.len()
    }

    fn next(&mut self, client: usize, _rng: &mut Rng) -> Operation {
        let station = &mut self.all[client];
        let items = station.terminal.ask().expect("the tables are as they were written");
        let (at, is_counted) = station.heard;
        for end in station.terminal.ended() {
            let counted = u64::from(is_counted);
            match end {
                AttemptEnd::Aborted => self.ended.aborted += counted,
                AttemptEnd::Failed => self.ended.failed += counted,
                AttemptEnd::RolledBack => {}
                AttemptEnd::Committed => {
                    self.ended.committed += counted;
                    if is_counted {
                        self.ended.times.push(at - station.begun);
                    }
                }
            }
            if end != AttemptEnd::Aborted {
                station.begun = at;
            }
        }
        transact(items)
    }

    fn told(&mut self, client: usize, told: &Hearing<'_>) {
        let station = &mut self.all[client];
        station.heard = (told.at, told.is_counted);
        station.terminal.tell(told.outcome, told.at / 1_000_000);
    }
}
