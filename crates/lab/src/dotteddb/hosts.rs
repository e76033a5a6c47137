//! Configurations of Table I on real hosts: one cluster with a keyspace for each, loaded in turn.

use super::super::cluster::Cluster;
use super::grid::Configuration;
use super::probes::Probes;
use super::simulated::run::Times;
use super::updates::{Asker, Load, Seen, key, run, value};
use quorate_cli::exit::Failure;
use serde_json::Value;
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// Hosts, and replicas of each key: every host holds every key.
pub const HOSTS: u32 = 5;
/// Clients of each host.
pub const CLIENTS: u64 = 4;
/// How often hosts are asked what they keep.
const LOOK: Duration = Duration::from_millis(500);
/// How long a keyspace may take to come to rest.
const REST_MAX: Duration = Duration::from_secs(120);
/// How long hosts may show something old.
const STALE: Duration = Duration::from_millis(1500);

/// How large and how long.
#[derive(Clone, Debug)]
pub struct Extent {
    /// Keys of each keyspace.
    pub keys: u64,
    /// Updates per second, all clients together.
    pub rate: u64,
    /// How long a configuration is loaded before anything counts.
    pub warm_up: Duration,
    /// How long it is measured.
    pub window: Duration,
    /// How many updates are followed to another host.
    pub probes: u64,
    /// How long a keyspace at rest is measured.
    pub idle: Duration,
}

impl Extent {
    /// An extent.
    #[must_use]
    pub fn of(is_quick: bool) -> Extent {
        let seconds = Duration::from_secs;
        match is_quick {
            false => Extent {
                keys: 10_000,
                rate: 500,
                warm_up: seconds(5),
                window: seconds(30),
                probes: 600,
                idle: seconds(10),
            },
            true => Extent {
                keys: 300,
                rate: 100,
                warm_up: seconds(1),
                window: seconds(3),
                probes: 20,
                idle: seconds(2),
            },
        }
    }
}

/// What was found of one configuration.
#[derive(Clone, Debug)]
pub struct Found {
    /// What clients waited for updates.
    pub latency: Times,
    /// How many updates failed.
    pub failed: u64,
    /// Until another host showed an update.
    pub replication: Times,
    /// Bytes per second that the hosts sent each other for the keyspace, loaded and at rest.
    pub sent: (f64, f64),
    /// Entries of a host's dot-key map: the mean and the most.
    pub dot_keys: (f64, u64),
    /// Objects of a host whose clocks have more than their own versions, likewise.
    pub unstripped: (f64, u64),
    /// How long after the load all of that was gone at all hosts; none if it was not in time.
    pub rest: Option<Duration>,
}

/// The name of a configuration's keyspace.
#[must_use]
pub fn keyspace(configuration: &Configuration) -> String {
    configuration.name.to_lowercase().replace(' ', "-")
}

/// Measures the configurations one after the other.
///
/// # Errors
/// The cluster did not start, or a host does not answer.
pub fn measure_all(
    port_base: u16,
    extent: &Extent,
    configurations: &[Configuration],
) -> Result<Vec<Found>, Failure> {
    let spec = |configuration: &Configuration| {
        let replication = if configuration.lost == 100 { "off" } else { "on" };
        let interval_ms = configuration.interval_us(extent.keys, extent.rate) / 1000;
        format!(
            "{}=causal,replicas={HOSTS},durability=memory,replication={replication},\
             sync_interval_ms={interval_ms}",
            keyspace(configuration)
        )
    };
    let specs: Vec<String> = configurations.iter().map(spec).collect();
    let specs: Vec<&str> = specs.iter().map(String::as_str).collect();
    let cluster = Cluster::start(port_base, HOSTS, &specs)?;
    let one = |configuration: &Configuration| {
        eprintln!("real hosts: {}", configuration.name);
        Subject { cluster: &cluster, keyspace: keyspace(configuration) }.measure(extent)
    };
    configurations.iter().map(one).collect()
}

/// What all hosts show of a keyspace at one time.
#[derive(Clone, Debug, Default)]
struct Shown {
    sent_bytes: u64,
    dot_keys: Vec<u64>,
    unstripped: Vec<u64>,
}

/// A keyspace of a cluster.
struct Subject<'a> {
    cluster: &'a Cluster,
    keyspace: String,
}

impl Subject<'_> {
    fn measure(&self, extent: &Extent) -> Result<Found, Failure> {
        self.fill(extent)?;
        self.rest(Instant::now())?;
        let from = Instant::now() + extent.warm_up;
        let window = (from, from + extent.window);
        let end = window.1 + STALE;
        let clients = CLIENTS * u64::from(HOSTS);
        let load = |number| Load {
            number,
            keys: extent.keys,
            gap: Duration::from_secs(1).mul_f64(clients as f64 / extent.rate as f64),
            window,
            end,
        };
        let keys = (extent.keys, extent.probes);
        let probes = Probes { keys, window, seed: extent.keys };
        thread::scope(|scope| {
            let updating: Vec<ScopedJoinHandle<'_, Seen>> = (1..=clients)
                .map(|number| (load(number), self.asker(number)))
                .map(|(load, asker)| scope.spawn(move || run(asker, &load)))
                .collect();
            let mut askers: Vec<Asker> =
                (0..u64::from(HOSTS)).map(|host| self.asker(host)).collect();
            let probing = scope.spawn(move || probes.run(&mut askers));
            let (sent, dot_keys, unstripped) = self.watch(window)?;
            let seen = updating.into_iter().map(|one| one.join().map_err(|_| panicked()));
            let seen = seen.collect::<Result<Vec<_>, _>>()?;
            let rest = self.rest(end)?;
            let replication = probing.join().map_err(|_| panicked())??;
            let idle = self.idle(extent.idle)?;
            let failed = seen.iter().map(|one| one.failed).sum();
            let latency = seen.into_iter().flat_map(|one| one.micros).collect();
            let latency = Times::new(latency, 0);
            let sent = (sent, idle);
            Ok(Found { latency, failed, replication, sent, dot_keys, unstripped, rest })
        })
    }

    /// A connection to one host after the other.
    fn asker(&self, number: u64) -> Asker {
        let doors = self.cluster.endpoints();
        Asker::new(doors[number as usize % doors.len()], &self.keyspace)
    }

    /// Writes all keys once.
    fn fill(&self, extent: &Extent) -> Result<(), Failure> {
        let (all, clients) = (extent.keys + extent.probes, u64::from(HOSTS));
        let fill = |client: u64| -> Result<(), Failure> {
            let mut asker = self.asker(client);
            let mut numbers = (client..all).step_by(clients as usize);
            numbers.try_for_each(|number| asker.put(&key(number), b"", &value(client, all)))
        };
        thread::scope(|scope| {
            let filling: Vec<_> =
                (0..clients).map(|client| scope.spawn(move || fill(client))).collect();
            filling.into_iter().try_for_each(|one| one.join().map_err(|_| panicked())?)
        })
    }

    fn shown(&self) -> Result<Shown, Failure> {
        let mut shown = Shown::default();
        for number in self.cluster.numbers() {
            let status = self.cluster.status(*number)?;
            let all = status["keyspaces"].as_array().into_iter().flatten();
            let found = all.into_iter().find(|one| one["name"] == self.keyspace.as_str());
            let found = found.ok_or_else(|| missing(&self.keyspace))?;
            let state = |name: &str| number_in(&found["state"][name]);
            shown.sent_bytes +=
                found["sent_bytes"].as_u64().ok_or_else(|| missing("sent_bytes"))?;
            shown.dot_keys.push(state("dot_keys").ok_or_else(|| missing("dot_keys"))?);
            shown.unstripped.push(state("unstripped").ok_or_else(|| missing("unstripped"))?);
        }
        Ok(shown)
    }

    /// Looks again and again while it counts: bytes sent per second, and what hosts keep.
    fn watch(&self, window: (Instant, Instant)) -> Result<(f64, Kept, Kept), Failure> {
        thread::sleep(window.0.saturating_duration_since(Instant::now()));
        let (mut all, mut last) = (Vec::new(), (self.shown()?, Instant::now()));
        let first = last.clone();
        while last.1 < window.1 {
            all.push(last.0);
            thread::sleep(LOOK);
            last = (self.shown()?, Instant::now());
        }
        let sent = per_second(&first, &last);
        let dot_keys = all.iter().flat_map(|one| one.dot_keys.iter().copied());
        let unstripped = all.iter().flat_map(|one| one.unstripped.iter().copied());
        Ok((sent, kept(dot_keys), kept(unstripped)))
    }

    /// Waits until hosts keep nothing beside objects; how long that was after this moment.
    fn rest(&self, since: Instant) -> Result<Option<Duration>, Failure> {
        // Until then they may show what was before.
        let shown_by = since + STALE;
        thread::sleep(shown_by.saturating_duration_since(Instant::now()));
        while since.elapsed() < REST_MAX {
            let shown = self.shown()?;
            if shown.dot_keys.iter().chain(&shown.unstripped).all(|count| *count == 0) {
                return Ok(Some(since.elapsed()));
            }
            thread::sleep(LOOK);
        }
        Ok(None)
    }

    /// Bytes per second that hosts send while nothing is written.
    fn idle(&self, length: Duration) -> Result<f64, Failure> {
        thread::sleep(STALE);
        let first = (self.shown()?, Instant::now());
        thread::sleep(length);
        Ok(per_second(&first, &(self.shown()?, Instant::now())))
    }
}

/// The mean and the most of what hosts keep.
type Kept = (f64, u64);

fn kept(counts: impl Iterator<Item = u64> + Clone) -> Kept {
    let (sum, count): (u64, u64) = counts.clone().fold((0, 0), |(sum, n), it| (sum + it, n + 1));
    (sum as f64 / count.max(1) as f64, counts.max().unwrap_or(0))
}

fn per_second(first: &(Shown, Instant), last: &(Shown, Instant)) -> f64 {
    let bytes = last.0.sent_bytes.saturating_sub(first.0.sent_bytes);
    bytes as f64 / (last.1 - first.1).as_secs_f64().max(1e-3)
}

fn number_in(value: &Value) -> Option<u64> {
    value.as_str()?.parse().ok()
}

fn missing(what: &str) -> Failure {
    Failure::failed(format!("a host shows no {what}"))
}

fn panicked() -> Failure {
    Failure::failed("a client panicked")
}

#[cfg(test)]
mod tests {
    use super::super::grid::CONFIGURATIONS;
    use super::*;

    #[test]
    fn intervals_are_long_enough_to_be_set_and_rates_come_from_both_looks() {
        for is_quick in [false, true] {
            let extent = Extent::of(is_quick);
            for configuration in &CONFIGURATIONS[..4] {
                assert!(configuration.interval_us(extent.keys, extent.rate) >= 10_000);
            }
        }
        let begun = Instant::now();
        let shown = |sent_bytes| Shown { sent_bytes, ..Shown::default() };
        let later = begun + Duration::from_secs(2);
        assert_eq!(per_second(&(shown(100), begun), &(shown(500), later)), 200.0);
        assert_eq!(kept([1, 2, 6].into_iter()), (3.0, 6));
    }
}
