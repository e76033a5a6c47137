//! The scenario that stands for a cluster.

use super::{Kept, Load};
use quorate_sim::delay::Distribution;
use quorate_sim::keyspace::Word;
use quorate_sim::prepared::Prepared;
use quorate_sim::shipped;

/// How often hosts look for tombstones, and compare what they hold; there is nothing to find.
const PURGE_MS: u64 = 60_000;

/// The scenario that stands for the cluster; only what concerns hosts is used of it.
pub(super) fn prepared(load: &Load) -> Prepared {
    let Kept { engine, replicas, durability, settings, write, sync } = load.kept.clone();
    let mut scenario = shipped::find("calm").expect("the scenario ships");
    scenario.hosts = load.hosts;
    scenario.net.delay = Distribution::Constant { us: load.network_us };
    (scenario.disk.write, scenario.disk.sync) = (write, sync);
    // Cores alone make a host wait, and nothing is slow now and then.
    (scenario.net.slower_max, scenario.disk.slower_max) = (1, 1);
    scenario.turn_us_max = 0;
    (scenario.clock.skew_ms, scenario.clock.drift_ppm) = (0, 0);
    let keyspace = &mut scenario.keyspaces[0];
    keyspace.engine = Some(engine.name.to_owned());
    let first = [("replicas", replicas.to_string()), ("durability", durability.to_string())];
    let others = settings.iter().map(|(name, word)| (*name, (*word).to_owned()));
    let words = first.into_iter().chain(others);
    keyspace.settings = words.map(|(name, word)| (name.to_owned(), Word::Text(word))).collect();
    let periods = ["purge", "compare"].map(|name| (name.to_owned(), PURGE_MS));
    keyspace.pace.extend(periods);
    Prepared::new(scenario).expect("the engine takes plain values, and can be kept so")
}
