//! Clusters of accounts with all faults: replicas that crash, forget and come back, coordinators
//! that are lost, messages that are lost, doubled and late, clients that begin anew.
//!
//! The judge sees only what clients see: could one bank in one place have answered the same?

mod judge;
mod load;

use load::{ACCOUNTS, Bank};
use quorate_accounts::{Accounts, Command, Output};
use quorate_protocols::multicast::Pace;
use quorate_protocols::smr::partitioned::Caching;
use quorate_protocols::testing::partitions::{Ended, Met, Seen, World};

/// What was put into accounts for certain, and what may have been.
fn deposits(history: &[Seen<Accounts>]) -> (u64, u64) {
    let (mut certain, mut possible) = (0, 0);
    for seen in history {
        if let Command::Deposit { amount, .. } = seen.command {
            match &seen.ended {
                Ended::Answered { output: Output::Refused, .. } => {}
                Ended::Answered { .. } => {
                    (certain, possible) = (certain + amount, possible + amount)
                }
                Ended::Unknown => possible += amount,
            }
        }
    }
    (certain, possible)
}

/// What is in all accounts in the end, as the last read says.
fn total(history: &[Seen<Accounts>]) -> u64 {
    let last = history.iter().max_by_key(|seen| seen.asked).expect("there is a last read");
    let Ended::Answered { output: Output::Balances(balances), .. } = &last.ended else {
        panic!("the last command is a read, and answered: {last:?}")
    };
    assert_eq!(balances.len(), ACCOUNTS as usize);
    balances.iter().sum()
}

fn run(seed: u64, pace: Pace, caching: Caching) -> (World<Accounts, Bank>, usize) {
    let mut world = World::new(seed, pace, caching, Bank);
    let history = world.run();
    let (certain, possible) = deposits(&history);
    let total = total(&history);
    let balances = world.objects().into_iter().filter(|(key, _)| key.ends_with(b"m"));
    assert_eq!(balances.map(|(_, amount)| amount).sum::<u64>(), total, "seed {seed}");
    assert!((certain..=possible).contains(&total), "seed {seed}: money is made or lost");
    assert!(judge::is_linearizable(&history), "seed {seed}: no order explains what clients saw");
    (world, history.len())
}

fn run_all(seeds: std::ops::Range<u64>, pace: Pace, caching: Caching) -> Met {
    let (mut met, mut asked) = (Met::default(), 0);
    for seed in seeds {
        let (world, count) = run(seed, pace, caching);
        asked += count;
        let more = world.met;
        met.add(more);
    }
    met.assert_all();
    assert!(asked as u64 > met.of_several, "{met:?}");
    met
}

#[test]
fn accounts_are_linearizable_with_skips_by_demand() {
    let met = run_all(0..60, Pace::Demand, Caching::Off);
    assert_eq!((met.validated, met.rolled_back), (0, 0));
}

#[test]
fn accounts_are_linearizable_with_skips_by_time() {
    run_all(1000..1030, Pace::Time { origin_ms: 0, slots_per_s: 600 }, Caching::Off);
}

#[test]
fn accounts_are_linearizable_with_conservative_caches() {
    let met = run_all(2000..2040, Pace::Demand, Caching::Conservative);
    assert!(met.validated > 0 && met.rolled_back == 0, "{met:?}");
}

#[test]
fn accounts_are_linearizable_with_speculative_caches() {
    let met = run_all(3000..3040, Pace::Demand, Caching::Speculative);
    assert!(met.validated > 0 && met.rolled_back > 0, "{met:?}");
}
