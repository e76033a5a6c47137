//! How long each client waits when a host is killed, try after try.

use super::crash::{ChosenBy, Crash, Fate, LED_MAX, Victim, choose};
use super::real::fill;
use super::size::{Size, VALUE_BYTES};
use crate::background::under_load;
use crate::cluster::Cluster;
use crate::page::{Page, Table, fixed};
use quorate_bench::{Config, Report, Workload};
use quorate_chart::svg::{Axis, Chart, Scale, Series, render};
use quorate_cli::dev::ctl::Order;
use quorate_cli::exit::Failure;
use quorate_cli::verbs::cluster::membership;
use quorate_protocols::serializable;
use serde_json::Value;
use std::thread;
use std::time::{Duration, Instant};

/// The keyspace, of one group.
const KEYSPACE: &str = "gaps";
/// How long clients run before the kill, and after it.
const BEFORE: Duration = Duration::from_secs(1);
const AFTER: Duration = Duration::from_secs(4);
/// Longer than hosts take to renew what they show.
const STALE: Duration = Duration::from_millis(1500);
/// Who is killed.
const VICTIMS: [(Victim, &str); 2] =
    [(Victim::Primary(0), "the primary"), (Victim::Member, "a member")];

/// Measures, and makes the page.
///
/// # Errors
/// The cluster did not start, a run failed, or a host that was started again does not catch up.
pub fn figure(size: &Size) -> Result<Page, Failure> {
    let size = &Size { keys: size.marked_keys, hosts: size.replicas, ..size.clone() };
    let spec = size.spec(KEYSPACE, &serializable::ENGINE, 1, size.durability);
    let mut cluster = Cluster::start(size.port_base, size.hosts, &[&spec])?;
    fill(&cluster, KEYSPACE, size)?;
    let mut table = Table::new("gaps", "The longest time without an answer of any client", &HEAD);
    let mut tries = Table::new("gaps-tries", "Each try", &["killed", "try", "stayed", "moved"]);
    let mut series = Vec::new();
    for (victim, name) in VICTIMS {
        let (mut stayed, mut moved, mut failed) = (Vec::new(), Vec::new(), 0);
        for nth in 1..=size.kills {
            eprintln!("gaps: {name}, {nth} of {}", size.kills);
            let report = once(&mut cluster, size, victim)?;
            let gaps = (report.gaps.stayed_ms, report.gaps.reconnected_ms);
            let shown = |gap: Option<f64>| gap.map_or("-".to_owned(), |gap| fixed(gap, 0));
            tries.push(vec![name.to_owned(), nth.to_string(), shown(gaps.0), shown(gaps.1)]);
            stayed.extend(gaps.0);
            moved.extend(gaps.1);
            failed += report.errors.values().sum::<u64>();
        }
        stayed.sort_by(f64::total_cmp);
        moved.sort_by(f64::total_cmp);
        let first = vec![name.to_owned(), size.kills.to_string()];
        table.push([first, spread(&stayed), spread(&moved), vec![failed.to_string()]].concat());
        let points = stayed.iter().enumerate().map(|(nth, gap)| (nth as f64 + 1.0, *gap));
        series.push(Series { name: name.to_owned(), points: points.collect() });
    }
    let axis = |label: &str, scale| Axis { label: label.to_owned(), scale };
    let chart = Chart {
        title: "longest time without an answer, clients of hosts that stayed".to_owned(),
        x: axis("try, from the shortest to the longest", Scale::Linear),
        y: axis("ms", Scale::Linear),
        series,
        marks: Vec::new(),
    };
    Ok(Page {
        name: "gaps".to_owned(),
        title: "What clients wait for when a host is killed".to_owned(),
        notes: notes(size),
        tables: vec![table, tries],
        picture: render("SCONEKV: fail-over", &[chart]),
    })
}

const HEAD: [&str; 9] = [
    "killed",
    "tries",
    "stayed, least (ms)",
    "stayed, median (ms)",
    "stayed, most (ms)",
    "moved, least (ms)",
    "moved, median (ms)",
    "moved, most (ms)",
    "failed",
];

/// The least, the median (of an even number the upper one) and the most of what is sorted.
fn spread(sorted: &[f64]) -> Vec<String> {
    let (Some(least), Some(most)) = (sorted.first(), sorted.last()) else {
        return vec!["-".to_owned(); 3];
    };
    [*least, sorted[sorted.len() / 2], *most].map(|gap| fixed(gap, 0)).to_vec()
}

/// Clients work, the host is killed, they work on; then it is started again, until it is ready.
fn once(cluster: &mut Cluster, size: &Size, victim: Victim) -> Result<Report, Failure> {
    let by = ChosenBy::Pulse;
    let crash = Crash { by, hosts: size.hosts, groups: 1, victim, fate: Fate::Killed };
    let host = choose(cluster, crash)?;
    let config = Config {
        keyspace: Some(KEYSPACE.to_owned()),
        key_count: size.keys,
        value_bytes: VALUE_BYTES,
        load: false,
        reconnect: true,
        // Those that are started again have others.
        server_pids: Vec::new(),
        ..cluster.load(Workload::A)
    };
    let ((), report) = under_load(config, |begun| {
        thread::sleep((begun + BEFORE).saturating_duration_since(Instant::now()));
        cluster.tell(&Order::Kill { host })?;
        thread::sleep(AFTER);
        Ok(())
    })?;
    cluster.tell(&Order::Start { host })?;
    let until = Instant::now() + LED_MAX;
    while Instant::now() < until {
        thread::sleep(STALE);
        let ready = |number: &u32| Ok(is_ready(&membership::ring(&cluster.http(*number)?)?));
        let all: Result<Vec<bool>, Failure> = cluster.numbers().iter().map(ready).collect();
        // A host that was just started does not answer yet.
        if all.is_ok_and(|all| all.iter().all(|is_ready| *is_ready)) {
            return Ok(report);
        }
    }
    Err(Failure::failed(format!("host {host} was started again, and is not ready")))
}

/// Whether a host shows that it has all of the group.
fn is_ready(ring: &Value) -> bool {
    let is_it = |group: &Value| group["role"].is_string() && group["status"] == "ready";
    membership::groups(ring).any(is_it)
}

fn notes(size: &Size) -> Vec<String> {
    vec![
        format!(
            "{}, {} keys of 1,000 bytes; 64 connections over all hosts (RESP), half reads and half \
             writes of keys chosen uniformly. {} s later one host is killed (SIGKILL), {} s after \
             that the clients end, the host is started again, and the next try begins when all \
             hosts are ready. *Stayed*: of all clients of hosts that stay, the one that waited \
             longest, at any time of the try. *Moved*: the same of clients of the host that was \
             killed, which connect to another one at once. *Failed*: operations of all tries that \
             were answered with an error, or not at all: those that the host that was killed had \
             in hand for its clients, a third of them.",
            size.words(),
            size.keys,
            BEFORE.as_secs(),
            AFTER.as_secs(),
        ),
        "Where a member is killed nobody has to take over: what clients of the hosts that stay \
         wait for then is the disk that all hosts share, and processors that others have."
            .to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn who_has_a_role_and_all_of_the_group_is_ready() {
        let ring = |role: Value, status: &str| {
            let group = json!({"role": role, "status": status});
            json!({"keyspaces": [{"groups": [group]}]})
        };
        assert!(is_ready(&ring(Value::from("member"), "ready")));
        assert!(!is_ready(&ring(Value::from("member"), "copying")));
        assert!(!is_ready(&ring(Value::Null, "ready")));
    }

    #[test]
    fn spreads_are_of_what_is_there() {
        assert_eq!(spread(&[1.0, 2.4, 9.0]), ["1", "2", "9"]);
        assert_eq!(spread(&[1.0, 2.0, 6.0, 9.0]), ["1", "6", "9"]);
        assert_eq!(spread(&[]), ["-", "-", "-"]);
    }
}
