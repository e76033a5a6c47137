//! Draws the faults of a seed.
//!
//! In the manner of swarm testing each seed switches some of its scenario's kinds off: a world in
//! which everything goes wrong at once hides what only some faults together show.

use crate::fault::{Fault, Kind, What};
use crate::queue::HostIndex;
use crate::scenario::Scenario;
use quorate_kernel::rng::Rng;

/// How many of a million kinds stay on.
const ON_PPM: u32 = 650_000;
/// How many of a million delays of single frames last ten seconds.
const LONG_DELAY_PPM: u32 = 500_000;
const LONG_DELAY_US: u64 = 10_000_000;
/// How long an operator waits for a drain.
const RETIRE_US: u64 = 10_000_000;

/// Draws a plan: faults in the order of their beginnings.
#[must_use]
pub fn draw(scenario: &Scenario, rng: &mut Rng) -> Vec<Fault> {
    let kinds = swarm(scenario, rng);
    let total: u64 = kinds.iter().map(|(_, weight)| u64::from(*weight)).sum();
    let mut plan: Vec<Fault> = Vec::new();
    if total > 0 {
        draw_chance(scenario, &kinds, total, rng, &mut plan);
    }
    draw_cycles(scenario, rng, &mut plan);
    plan.sort_by_key(|fault| fault.at_us);
    plan
}

/// Adds the directed faults, cycle after cycle, each cycle begun a little later than due.
fn draw_cycles(scenario: &Scenario, rng: &mut Rng, plan: &mut Vec<Fault>) {
    let faults = &scenario.faults;
    let cycles = scenario.liveness.heal_ms.checked_div(faults.cycle_ms).unwrap_or(0);
    for cycle in 0..cycles {
        let begin_us = cycle * faults.cycle_ms * 1000 + rng.below(faults.cycle_ms * 100);
        let at = |fault: &Fault| Fault { at_us: begin_us + fault.at_us, ..fault.clone() };
        plan.extend(faults.cycle.iter().map(at));
    }
}

fn draw_chance(
    scenario: &Scenario,
    kinds: &[(Kind, u32)],
    total: u64,
    rng: &mut Rng,
    plan: &mut Vec<Fault>,
) {
    let faults = &scenario.faults;
    let span_us = scenario.liveness.heal_ms * 1000;
    for _ in 0..rng.between(faults.count_min, faults.count_max) {
        let kind = pick(kinds, rng.below(total));
        let what = draw_what(kind, scenario, rng);
        // One fault in four follows close behind the one before: what two faults do together shows
        // only when they meet.
        let at_us = match plan.last() {
            Some(last) if rng.chance_ppm(250_000) => last.at_us + rng.below(20_000),
            _ => rng.below(span_us),
        };
        let mut for_us = rng.between(faults.for_ms_min * 1000, faults.for_ms_max * 1000);
        if matches!(what, What::Delay { .. }) && rng.chance_ppm(LONG_DELAY_PPM) {
            for_us = LONG_DELAY_US;
        }
        if matches!(what, What::Retire { .. }) {
            for_us = RETIRE_US;
        }
        plan.push(Fault { at_us, for_us, what });
    }
}

/// The kinds that are on in this seed, at least one of those that have a weight.
fn swarm(scenario: &Scenario, rng: &mut Rng) -> Vec<(Kind, u32)> {
    let weights = scenario.faults.weights.iter();
    let all: Vec<(Kind, u32)> =
        weights.filter(|(_, weight)| **weight > 0).map(|(kind, weight)| (*kind, *weight)).collect();
    let mut on = all.clone();
    on.retain(|_| rng.chance_ppm(ON_PPM));
    if on.is_empty() && !all.is_empty() {
        on.push(all[rng.below(all.len() as u64) as usize]);
    }
    on
}

fn pick(kinds: &[(Kind, u32)], mut drawn: u64) -> Kind {
    for (kind, weight) in kinds {
        match drawn.checked_sub(u64::from(*weight)) {
            Some(rest) => drawn = rest,
            None => return *kind,
        }
    }
    unreachable!("the number drawn is below the sum of the weights")
}

fn draw_what(kind: Kind, scenario: &Scenario, rng: &mut Rng) -> What {
    let hosts = scenario.hosts;
    let host = rng.below(hosts as u64) as usize;
    let other = (host + 1 + rng.below(hosts as u64 - 1) as usize) % hosts;
    match kind {
        Kind::Kill => What::Kill { host },
        Kind::Power => What::Power { hosts: vec![host] },
        Kind::PowerAll => What::Power { hosts: (0..hosts).collect() },
        Kind::PowerSome => What::Power { hosts: draw_side(hosts, rng) },
        Kind::Pause => What::Pause { host },
        Kind::Partition => What::Partition { side: draw_side(hosts, rng) },
        Kind::OneWay => What::OneWay { from: host, to: other },
        Kind::Partial => What::Partial { one: host, other },
        Kind::Loss => What::Loss { ppm: rng.between(20_000, 400_000) as u32 },
        Kind::Duplicate => What::Duplicate { ppm: rng.between(50_000, 500_000) as u32 },
        Kind::Delay => What::Delay { from: host, to: other },
        Kind::SlowDisk => What::SlowDisk { host, factor: rng.between(5, 200) },
        Kind::FailSync => What::FailSync { host },
        Kind::ClockJump => {
            What::ClockJump { host, by_ms: rng.between(0, 7_200_000) as i64 - 3_600_000 }
        }
        Kind::Wipe => What::Wipe { host },
        Kind::Drain => What::Drain { host },
        Kind::Retire => What::Retire { host, other },
        Kind::Remove => What::Remove { host },
        Kind::Shutdown => What::Shutdown { host },
        Kind::Restore => What::Restore { host },
    }
}

/// A side of a partition: neither nobody nor everybody.
fn draw_side(hosts: usize, rng: &mut Rng) -> Vec<HostIndex> {
    let all = u64::MAX >> (64 - hosts);
    let bits = rng.between(1, all - 1);
    (0..hosts).filter(|host| bits >> host & 1 == 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shipped;
    use std::collections::BTreeSet;

    #[test]
    fn plans_are_in_order_and_within_their_scenario() {
        for scenario in shipped::scenarios() {
            for seed in 0..200 {
                let plan = draw(&scenario, &mut Rng::new(seed));
                assert_eq!(plan, draw(&scenario, &mut Rng::new(seed)));
                let faults = &scenario.faults;
                let cycles = scenario.liveness.heal_ms.checked_div(faults.cycle_ms).unwrap_or(0);
                let directed = cycles * faults.cycle.len() as u64;
                assert!(plan.len() as u64 <= faults.count_max + directed, "{}", scenario.name);
                assert!(plan.is_sorted_by_key(|fault| fault.at_us));
            }
        }
    }

    #[test]
    fn some_kinds_are_off_in_some_seeds_and_none_in_all() {
        let scenario = shipped::find("churn").expect("it ships");
        let weights = &scenario.faults.weights;
        let (mut seen, mut fewer) = (BTreeSet::new(), 0);
        for seed in 0..100 {
            let on = swarm(&scenario, &mut Rng::new(seed));
            assert!(!on.is_empty());
            fewer += usize::from(on.len() < weights.len());
            seen.extend(on.into_iter().map(|(kind, _)| kind));
        }
        assert!(fewer > 50);
        assert_eq!(seen.len(), weights.values().filter(|weight| **weight > 0).count());
    }

    #[test]
    fn a_side_is_neither_nobody_nor_everybody() {
        let mut rng = Rng::new(9);
        for _ in 0..1000 {
            let side = draw_side(3, &mut rng);
            assert!((1..=2).contains(&side.len()), "{side:?}");
        }
    }
}
