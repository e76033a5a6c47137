//! The grid: every cell can be drawn, and only what has taken place counts.

use quorate_kernel::engine::Placement;
use quorate_sim::fault::{Fault, What};
use quorate_sim::prepared::Prepared;
use quorate_sim::scenario::Scenario;
use quorate_sim::seed::{Report, Runner, Setup, plan};
use quorate_sim::shipped;
use quorate_sim::summary::Summary;
use quorate_sim::world::grid::{Cell, Change, Met, SEEDS_FOR_ALL, cells, scenario_of};
use std::collections::BTreeSet;
use std::time::Duration;

fn grid() -> Scenario {
    shipped::find("grid").expect("it ships")
}

/// All grids, each with how many cells its engines have.
fn grids() -> [(Scenario, usize); 3] {
    let of = |name: &str, cells| (shipped::find(name).expect("it ships"), cells);
    [
        // One engine has two changes fewer.
        of("grid", 3 * 3 * 7 * (8 + 6)),
        // Of one the groups can be altered too, where all is synced.
        of("grid-groups", 3 * 3 * 7 * (7 + 7) + 3 * 7),
        of("grid-everywhere", 3 * 3 * 7 * 4),
    ]
}

fn cell_of(grid: &Scenario, seed: u64) -> Cell {
    scenario_of(grid, seed).and_then(|scenario| scenario.cell).expect("each seed draws a cell")
}

#[test]
fn every_cell_is_drawn_and_no_other() {
    for (grid, count) in grids() {
        let all = cells(&grid);
        assert_eq!(all.len(), count, "{}", grid.name);
        let mut drawn = BTreeSet::new();
        for seed in 0..SEEDS_FOR_ALL {
            let scenario = scenario_of(&grid, seed).expect("it is a grid");
            let cell = scenario.cell.as_ref().expect("it has a cell");
            let engines = scenario.keyspaces.iter().filter_map(|keyspace| keyspace.engine.clone());
            drawn.extend(engines.map(|engine| Met { engine, cell: cell.clone() }));
        }
        assert_eq!(drawn, all);
    }
}

#[test]
fn engines_have_the_changes_that_their_values_allow() {
    for (grid, _) in grids() {
        let listed = &grid.grid.as_ref().expect("it is a grid").change;
        let all = cells(&grid);
        for keyspace in &grid.keyspaces {
            let engine = keyspace.engine().expect("it is one").expect("it is no catalog");
            let its = all.iter().filter(|met| met.engine == engine.name).map(|met| &met.cell);
            let has = |change: Change| its.clone().any(|cell| cell.change == change);
            let placement = engine.placement;
            let is_listed = |change: Change| listed.contains(&change);
            let can_split = is_listed(Change::Split) && placement == Placement::Groups;
            assert_eq!(has(Change::Split), can_split);
            let is_somewhere = placement != Placement::Everywhere;
            assert_eq!(has(Change::Drain) && has(Change::Replace), is_somewhere);
            assert!(has(Change::Renew) && has(Change::Remove) && has(Change::Join));
            let regroups = its.clone().filter(|cell| cell.change == Change::Regroup);
            assert!(regroups.clone().all(|cell| cell.durability == "sync"));
            let has_groups = engine.settings.iter().any(|setting| setting.name == "groups");
            assert_eq!(regroups.count() > 0, is_listed(Change::Regroup) && has_groups);
        }
    }
}

#[test]
fn the_scenario_of_each_cell_is_valid() {
    for (grid, _) in grids() {
        for seed in 0..500 {
            let scenario = scenario_of(&grid, seed).expect("it is a grid");
            assert!(scenario.validate().is_ok(), "seed {seed}");
            assert_eq!(scenario, scenario_of(&grid, seed).expect("it is a grid"));
            assert!(scenario_of(&scenario, seed).is_none(), "a cell is no grid");
        }
    }
}

fn run(prepared: &Prepared, seed: u64, faults: Vec<Fault>) -> Report {
    Runner::default().run(prepared, Setup { seed, plan: Some(faults), ..Setup::default() })
}

/// Of these changes a seed that meets its cell does not meet it without its faults, nor with faults
/// that come too late, nor, where the change is something that is done to a host, without that.
#[test]
fn a_cell_is_met_when_its_change_and_its_fault_took_place() {
    let prepared = Prepared::new(grid()).expect("it is valid");
    for change in [Change::None, Change::Replace, Change::Renew] {
        let is_it = |seed: &u64| cell_of(&prepared.scenario, *seed).change == change;
        let mut seeds = (0..).filter(is_it);
        let met = |seed: &u64| {
            let report = run(&prepared, *seed, plan(&prepared.of_seed(*seed), *seed));
            !report.met.is_empty()
        };
        let seed = seeds.by_ref().take(10).find(met).expect("one of ten meets its cell");
        let of_seed = prepared.of_seed(seed);
        let (cell, hosts) = (cell_of(&prepared.scenario, seed), of_seed.scenario.hosts);
        let all = plan(&of_seed, seed);
        let is_fault = |fault: &Fault| fault.what.kind(hosts) == cell.fault;

        let calm = all.iter().filter(|fault| !is_fault(fault)).cloned().collect();
        assert_eq!(run(&prepared, seed, calm).met, [], "{cell}: nothing went wrong");

        let mut late = all.clone();
        late.iter_mut().filter(|fault| is_fault(fault)).for_each(|fault| {
            fault.at_us += of_seed.scenario.liveness.heal_ms * 1000;
        });
        assert_eq!(run(&prepared, seed, late).met, [], "{cell}: all faults were skipped");

        let is_change = |fault: &Fault| matches!(fault.what, What::Drain { .. });
        if all.iter().any(is_change) {
            let fixed = all.iter().filter(|fault| !is_change(fault)).cloned().collect();
            assert_eq!(run(&prepared, seed, fixed).met, [], "{cell}: nothing has changed");
        }
    }
}

#[test]
fn a_summary_names_what_was_never_met_and_asks_for_all_of_many_seeds() {
    let prepared = Prepared::new(grid()).expect("it is valid");
    let mut summary = Summary::new(std::slice::from_ref(&prepared));
    let seed = (0..).find(|seed| cell_of(&prepared.scenario, *seed).change == Change::None);
    let report =
        Runner::default().run(&prepared, Setup { seed: seed.expect("some"), ..Setup::default() });
    let met = report.met.clone();
    assert!(!met.is_empty());
    summary.add(0, 0, report, Duration::ZERO);
    let all = cells(&prepared.scenario).len();
    assert!(summary.unmet(0).all(|cell| !met.contains(cell)));
    assert_eq!(summary.unmet(0).count(), all - met.len());
    assert!(summary.to_text().contains(&format!("grid: {} of {all} cells met", met.len())));
    assert_eq!(summary.missed().count(), 0, "one seed cannot meet all");
    summary.scenarios[0].seeds = SEEDS_FOR_ALL;
    assert_eq!(summary.missed().count(), all - met.len());
}
