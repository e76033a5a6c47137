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
    /// When the transaction began that it is at; none while it writes rows.
    begun: Option<u64>,
    /// When it was told last, and whether that counts.
    heard: (u64, bool),
}

impl Terminals {
    /// So many over tables of this size, which they write first.
    #[must_use]
    pub fn new(sizes: Sizes, count: u32, seed: u64) -> Terminals {
        let station = |terminal| Station { terminal, begun: None, heard: (0, false) };
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
        let items = station.terminal.ask().unwrap_or_else(|error| panic!("{error}"));
        let (at, is_counted) = station.heard;
        for end in station.terminal.take_ended() {
            let counted = u64::from(is_counted);
            match end {
                AttemptEnd::Aborted => self.ended.aborted += counted,
                AttemptEnd::Failed => self.ended.failed += counted,
                AttemptEnd::RolledBack | AttemptEnd::Loaded => {}
                AttemptEnd::Committed => {
                    self.ended.committed += counted;
                    let time = station.begun.map(|begun| at - begun);
                    self.ended.times.extend(time.filter(|_| is_counted));
                }
            }
            if end != AttemptEnd::Aborted {
                station.begun = Some(at);
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
