//! Keyspaces of both engines on the same hosts: neither slows nor breaks the other.

use quorate_check::Judges;
use quorate_kernel::error::WireError;
use quorate_kernel::ids::{Incarnation, Ticket};
use quorate_kernel::lane::{Env, Lane};
use quorate_kernel::news::{News, Topic};
use quorate_kernel::operation::Control;
use quorate_kernel::part::Part;
use quorate_kernel::process::{Inspect, Recovery, Request};
use quorate_kernel::time::Time;
use quorate_kernel::watch::Watch;
use quorate_kernel::wire::Decoder;
use quorate_sim::delay::Distribution;
use quorate_sim::fault::{Fault, What};
use quorate_sim::host::Wrap;
use quorate_sim::keyspace::Word;
use quorate_sim::prepared::Prepared;
use quorate_sim::scenario::Scenario;
use quorate_sim::shipped;
use quorate_sim::trace::Trace;
use quorate_sim::world::{End, Ledger, LedgerEntry, World};

const SECOND: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;
/// The keyspaces of the scenario, in its order.
const REGISTERS: usize = 0;
const SIBLINGS: usize = 1;

/// Lanes around those of the keyspaces.
type Wraps = [Option<Wrap>; 2];

/// A scenario of both engines whose seeds differ in nothing but chance, with these clients.
fn scenario(hosts: usize, partitions: u16, operations: u32, think_us: u64) -> Scenario {
    let mut scenario = shipped::find("both-calm").expect("it ships");
    (scenario.hosts, scenario.turn_us_max) = (hosts, 0);
    (scenario.net.slower_max, scenario.disk.slower_max) = (1, 1);
    for keyspace in &mut scenario.keyspaces {
        let workload = &mut keyspace.workload;
        (workload.clients, workload.operations) = (6, operations);
        (workload.resp_ppm, workload.burst_ppm, workload.scan) = (0, 0, 0);
        workload.think = Distribution::Exponential { mean_us: think_us };
    }
    let settings = &mut scenario.keyspaces[SIBLINGS].settings;
    settings.insert("partitions".to_owned(), Word::Number(u64::from(partitions)));
    settings.insert("w".to_owned(), Word::Number(1));
    scenario
}

/// What was asked of registers and of siblings, and what was found wrong.
struct Ran {
    registers: Ledger,
    siblings: Ledger,
    violation: Option<String>,
}

fn run(scenario: &Scenario, seed: u64, plan: Vec<Fault>, wraps: Wraps) -> Ran {
    let prepared = Prepared::new(scenario.clone()).expect("it is valid");
    let mut world = World::new(&prepared, seed, plan, &wraps, Trace::default());
    world.run();
    let violation = world.report(seed, &mut Judges::new()).violation;
    let violation = violation.map(|found| format!("{}: {}", found.judge, found.message));
    let [registers, siblings] = [REGISTERS, SIBLINGS].map(|at| world.tenants[at].ledger.clone());
    Ran { registers, siblings, violation }
}

/// A lane that never does anything: as stuck as a lane can be.
struct Stuck;

impl Lane for Stuck {
    fn start(&mut self, _: Recovery, _: &mut Env<'_>) {}

    fn on_frame(&mut self, _: Incarnation, _: &Decoder, _: &mut Env<'_>) -> Result<(), WireError> {
        Ok(())
    }

    fn on_local(&mut self, _: u32, _: &mut Env<'_>) {}

    fn on_request(&mut self, _: Ticket, _: Request, _: &mut Env<'_>) {}

    fn on_watch(&mut self, _: Ticket, _: Watch, _: &mut Env<'_>) {}

    fn on_unwatch(&mut self, _: Ticket, _: &mut Env<'_>) {}

    fn on_timer(&mut self, _: u32, _: &mut Env<'_>) {}

    fn on_control(&mut self, _: Ticket, _: Control, _: Time, _: &mut Env<'_>) {}

    fn hears(&self, _: Topic) -> bool {
        false
    }

    fn on_news(&mut self, _: News<'_>, _: &mut Env<'_>) {}

    fn parts(&self) -> Vec<Part> {
        vec![Part::unknown()]
    }

    fn inspect(&self, _: &mut dyn Inspect) {}

    fn check(&self) {}
}

fn stuck(_: Box<dyn Lane>) -> Box<dyn Lane> {
    Box::new(Stuck)
}

/// The latency that this share of operations, in hundredths, does not pass.
fn quantile(sorted: &[u64], percent: usize) -> u64 {
    sorted[(sorted.len() - 1) * percent / 100]
}

/// The median and the 99th hundredth of what was asked while nothing was demanded, over seeds.
fn speed(runs: &[Ran], of: fn(&Ran) -> &Ledger) -> (usize, u64, u64) {
    let free = |ran: &Ran| of(ran).latencies(SECOND, 8 * SECOND);
    let mut all: Vec<u64> = runs.iter().flat_map(free).collect();
    all.sort_unstable();
    (all.len(), quantile(&all, 50), quantile(&all, 99))
}

fn registers(ran: &Ran) -> &Ledger {
    &ran.registers
}

fn siblings(ran: &Ran) -> &Ledger {
    &ran.siblings
}

#[test]
fn a_keyspace_whose_engine_is_stuck_does_not_slow_the_other() {
    let scenario = scenario(4, 6, 600, 50_000);
    let all = |wraps: Wraps| -> Vec<Ran> {
        (0..3).map(|seed| run(&scenario, seed, Vec::new(), wraps)).collect()
    };
    let whole = all([None; 2]);
    assert!(whole.iter().all(|ran| ran.violation.is_none()));
    for (wraps, of) in [
        ([None, Some(stuck as Wrap)], registers as fn(&Ran) -> &Ledger),
        ([Some(stuck as Wrap), None], siblings),
    ] {
        let (count, median, late) = speed(&whole, of);
        let (alone, median_alone, late_alone) = speed(&all(wraps), of);
        println!("{count} {median} {late}; beside a stuck one {alone} {median_alone} {late_alone}");
        assert!(count > 1000 && alone * 100 >= count * 95, "{alone} operations, and {count}");
        assert!(median_alone * 100 <= median * 110, "median {median_alone} ns, and {median}");
        assert!(late_alone * 100 <= late * 125, "the slowest {late_alone} ns, and {late}");
    }
}

#[test]
fn a_keyspace_under_load_slows_the_other_by_no_more_than_the_disk_they_share() {
    // Eight times as many clients as the other keyspace has.
    let light = scenario(4, 6, 600, 50_000);
    let all = |scenario: &Scenario| -> Vec<Ran> {
        (0..6).map(|seed| run(scenario, seed, Vec::new(), [None; 2])).collect()
    };
    let calm = all(&light);
    let heavy = |at: usize| {
        let mut scenario = light.clone();
        let workload = &mut scenario.keyspaces[at].workload;
        (workload.clients, workload.operations) = (8 * workload.clients, 8 * workload.operations);
        scenario
    };
    let (more_siblings, more_registers) = (heavy(SIBLINGS), heavy(REGISTERS));
    for (scenario, of) in
        [(more_siblings, registers as fn(&Ran) -> &Ledger), (more_registers, siblings)]
    {
        let loaded = all(&scenario);
        assert!(loaded.iter().all(|ran| ran.violation.is_none()));
        let (count, median, late) = speed(&calm, of);
        let (many, median_loaded, late_loaded) = speed(&loaded, of);
        println!(
            "{count} {median} {late}; beside one under load {many} {median_loaded} {late_loaded}"
        );
        assert!(many * 100 >= count * 95, "{many} operations, and {count}");
        // What waits for a disk waits for the sync that is under way, too.
        assert!(median_loaded * 100 <= median * 130, "median {median_loaded} ns, and {median}");
        assert!(late_loaded * 100 <= late * 130, "the slowest {late_loaded} ns, and {late}");
    }
}

#[test]
fn a_minority_refuses_registers_at_once_and_goes_on_with_siblings() {
    let scenario = scenario(3, 3, 1800, 30_000);
    let cut =
        Fault { at_us: 2_000_000, for_us: 5_000_000, what: What::Partition { side: vec![0] } };
    let mut asked_alone = 0;
    for seed in 0..5 {
        let ran = run(&scenario, seed, vec![cut.clone()], [None; 2]);
        assert_eq!(ran.violation, None, "seed {seed}: both judges, and both at rest in the end");
        let during = |ledger: &Ledger, is_alone: bool| {
            // By then the cut is known on both sides.
            let is_meant = |asked: &&LedgerEntry| {
                (4 * SECOND..6 * SECOND).contains(&asked.at) && (asked.host == 0) == is_alone
            };
            ledger.asked.iter().filter(is_meant).cloned().collect::<Vec<_>>()
        };
        let alone = during(&ran.registers, true);
        asked_alone += alone.len();
        for asked in &alone {
            let Some((at, End::Refused)) = asked.end else { panic!("seed {seed}: {asked:?}") };
            assert!(at - asked.at < 200 * MS, "seed {seed}: {asked:?}, of 1500 ms it has");
        }
        for (ledger, is_alone) in
            [(&ran.registers, false), (&ran.siblings, true), (&ran.siblings, false)]
        {
            let asked = during(ledger, is_alone);
            let writes = asked.iter().filter(|asked| asked.is_write).count();
            assert!(writes >= 10, "seed {seed}: {writes} writes");
            for asked in asked {
                let is_done = asked.end.is_some_and(|(_, end)| end == End::Done);
                assert!(is_done, "seed {seed}: {asked:?}");
            }
        }
    }
    // Whom one side refuses goes to the other in time.
    assert!(asked_alone > 5, "{asked_alone} registers were asked for on the smaller side");
}
