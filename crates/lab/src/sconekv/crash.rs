//! Figure 13: throughput around the crash of a host, real hosts.

use super::engine;
use super::paper;
use super::size::{Size, groups};
use super::tpcc::{config, ended, run, start};
use crate::cluster::Cluster;
use crate::page::{Page, Table, fixed};
use quorate_bench::{Extent, Interval, TpccConfig, TpccReport};
use quorate_chart::svg::{Axis, Chart, Scale, Series, render};
use quorate_cli::dev::ctl::Order;
use quorate_cli::exit::Failure;
use quorate_cli::verbs::cluster::membership;
use quorate_protocols::serializable;
use serde_json::Value;
use std::thread;
use std::time::{Duration, Instant};

/// How long a cluster may take until each group has a primary that its host shows.
pub(super) const LED_MAX: Duration = Duration::from_secs(20);
/// How often hosts are asked.
const AGAIN: Duration = Duration::from_millis(100);
/// How often a primary shall be killed, at most, of several groups.
const PRIMARIES_MAX: u32 = 2;

/// Which host is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Victim {
    /// The primary of the group of this number, from 0.
    Primary(usize),
    /// One that is a member, and primary of nothing.
    Member,
}

/// What becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Its process is gone, and its connections with it.
    Killed,
    /// Its process stands still, and says nothing any more.
    Frozen,
}

/// By what a group comes to choose another primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChosenBy {
    /// Its own pulse, and connections that end.
    Pulse,
    /// The membership, kept so, has removed the one that it has.
    Membership(&'static str),
}

/// A crash.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crash {
    pub by: ChosenBy,
    pub hosts: u32,
    pub groups: u32,
    pub victim: Victim,
    pub fate: Fate,
}

impl Crash {
    fn name(self) -> String {
        let fate = match self.fate {
            Fate::Killed => "killed",
            Fate::Frozen => "frozen",
        };
        let who = match self.victim {
            Victim::Member => "a member".to_owned(),
            Victim::Primary(_) if self.groups == 1 => "the primary".to_owned(),
            Victim::Primary(nth) => format!("the primary of group {}", nth + 1),
        };
        match self.by {
            ChosenBy::Pulse => format!("{who} {fate}"),
            ChosenBy::Membership(roll) => format!("{who} {fate}, fail-over by {roll}"),
        }
    }

    fn start(self, size: &Size) -> Result<Cluster, Failure> {
        let shape = (self.hosts, self.groups);
        match self.by {
            ChosenBy::Pulse => start(size, shape, &serializable::ENGINE, &[]),
            ChosenBy::Membership(roll) => {
                let setting = format!("membership.roll={roll}");
                start(size, shape, &engine::BY_MEMBERSHIP, &[setting])
            }
        }
    }
}

/// What was seen.
struct Seen {
    report: TpccReport,
    /// When it happened to the host, in seconds on the time line.
    at: f64,
}

/// Measures, and makes the page.
///
/// # Errors
/// A cluster did not start, a run failed, or a condition of the standard does not hold afterwards.
pub fn figure(size: &Size) -> Result<Page, Failure> {
    let title = "TPC-C-like while something happens to one host";
    let mut table = Table::new("fig13", title, &HEAD);
    let mut line = Table::new(
        "fig13-time",
        "Commits per second, against seconds since it happened",
        &["hosts", "groups", "what happens", "from (s)", "commits per second"],
    );
    let mut series = Vec::new();
    for crash in crashes(size) {
        let name = crash.name();
        eprintln!("figure 13: {} hosts, {}, {name}", crash.hosts, groups(crash.groups));
        let seen = measure(size, crash)?;
        let first = [crash.hosts.to_string(), crash.groups.to_string(), name.clone()];
        table.push([&first[..], &cells(&seen)[..]].concat());
        let points = points(&seen);
        for (at, rate) in &points {
            let last = [fixed(*at, 1), fixed(*rate, 0)];
            line.push([&first[..], &last[..]].concat());
        }
        let name = format!("{} hosts: {name}", crash.hosts);
        series.push(Series { name, points });
    }
    let axis = |label: &str| Axis { label: label.to_owned(), scale: Scale::Linear };
    let chart = Chart {
        title: "commits per second".to_owned(),
        x: axis("seconds since it happened"),
        y: axis("tx/s"),
        series,
        marks: vec![(0.0, "it happens".to_owned())],
    };
    Ok(Page {
        name: "fig13".to_owned(),
        title: "Figure 13: a host crashes (real hosts)".to_owned(),
        notes: notes(size),
        tables: vec![table, line],
        picture: render("SCONEKV Figure 13: recovery", &[chart]),
    })
}

fn crashes(size: &Size) -> Vec<Crash> {
    let of = |hosts: u32, groups: u32| {
        let primaries = (0..groups.min(PRIMARIES_MAX)).map(|nth| Victim::Primary(nth as usize));
        let killed = primaries.chain([Victim::Member]).map(|victim| (victim, Fate::Killed));
        killed.chain([(Victim::Primary(0), Fate::Frozen)]).map(move |(victim, fate)| Crash {
            by: ChosenBy::Pulse,
            hosts,
            groups,
            victim,
            fate,
        })
    };
    let mut all: Vec<Crash> = of(size.replicas, 1).collect();
    if size.groups() > 1 {
        all.extend(of(size.hosts, size.groups()));
    }
    // The same once more, as the paper's groups fail over: on as many hosts as there are.
    let (hosts, victim, fate) = (size.hosts, Victim::Primary(0), Fate::Killed);
    let ways = ["rapid", "prime"].map(ChosenBy::Membership);
    let crash = |by| Crash { by, hosts, groups: 1, victim, fate };
    all.extend([ChosenBy::Pulse].into_iter().chain(ways).map(crash));
    all
}

fn measure(size: &Size, crash: Crash) -> Result<Seen, Failure> {
    let mut cluster = crash.start(size)?;
    let terminals = size.terminals.last().copied().unwrap_or(1);
    // The tables are loaded by a run of their own: how long that takes nobody knows.
    run(&TpccConfig {
        extent: Extent::Operations(1),
        warm_up: Duration::ZERO,
        ..config(&cluster, size, true, 1)
    })?;
    let victim = choose(&cluster, crash)?;
    let mut config = TpccConfig {
        extent: Extent::Time(size.before * 4),
        ..config(&cluster, size, false, terminals)
    };
    // Founders are in the order of their numbers, which begin at 1.
    config.endpoints.remove(victim as usize - 1);
    let opens = Instant::now() + config.warm_up;
    let running = thread::spawn(move || run(&config));
    thread::sleep((opens + size.before).saturating_duration_since(Instant::now()));
    let at = opens.elapsed().as_secs_f64();
    cluster.tell(&match crash.fate {
        Fate::Killed => Order::Kill { host: victim },
        Fate::Frozen => Order::Freeze { host: victim },
    })?;
    let report = running.join().map_err(|_| Failure::failed("a client panicked"))??;
    if crash.fate == Fate::Frozen {
        cluster.tell(&Order::Thaw { host: victim })?;
    }
    Ok(Seen { report, at })
}

/// The number of the host that is to be killed. Hosts renew what they show once a second.
pub(super) fn choose(cluster: &Cluster, crash: Crash) -> Result<u32, Failure> {
    let until = Instant::now() + LED_MAX;
    while Instant::now() < until {
        let mut shown = Vec::new();
        for number in cluster.numbers() {
            shown.push((*number, roles(&membership::ring(&cluster.http(*number)?)?)));
        }
        if let Some(victim) = victim(&shown, crash) {
            return Ok(victim);
        }
        thread::sleep(AGAIN);
    }
    Err(Failure::failed("hosts show no primary of each group"))
}

/// The role of a host in each group that it is in.
type Roles = Vec<(String, String)>;

fn roles(ring: &Value) -> Roles {
    let role = |group: &Value| {
        let role = group["role"].as_str()?;
        Some((group["group"].to_string(), role.to_owned()))
    };
    membership::groups(ring).filter_map(role).collect()
}

/// The host that is meant, once each group has one primary.
fn victim(shown: &[(u32, Roles)], crash: Crash) -> Option<u32> {
    let leads = |(number, roles): &(u32, Roles)| -> Vec<(String, u32)> {
        let led = roles.iter().filter(|(_, role)| role == "primary");
        led.map(|(group, _)| (group.clone(), *number)).collect()
    };
    let mut led: Vec<(String, u32)> = shown.iter().flat_map(leads).collect();
    led.sort();
    if led.len() != crash.groups as usize {
        return None;
    }
    match crash.victim {
        Victim::Primary(nth) => led.get(nth).map(|(_, number)| *number),
        Victim::Member => {
            let is_idle = |(number, roles): &&(u32, Roles)| {
                !roles.is_empty() && led.iter().all(|(_, leader)| leader != number)
            };
            shown.iter().find(is_idle).map(|(number, _)| *number)
        }
    }
}

const HEAD: [&str; 10] = [
    "hosts",
    "groups",
    "what happens",
    "tx/s before",
    "longest without a commit (s)",
    "tx/s after",
    "aborted",
    "unknown",
    "failed",
    "conditions checked",
];

fn cells(seen: &Seen) -> Vec<String> {
    let Seen { report, at } = seen;
    let gap = report.gap_ms / 1e3;
    let (_, retries) = ended(report);
    let unknown: u64 = report.transactions.iter().map(|kind| kind.unknown).sum();
    let failed: u64 = report.errors.values().sum::<u64>().saturating_sub(unknown);
    let conditions = report.audit.as_ref().map_or(0, |audit| audit.conditions.len());
    let rate = |from: f64, to: f64| fixed(rate(&report.intervals, from, to), 0);
    vec![
        rate(0.0, at - 0.2),
        fixed(gap, 3),
        rate(at + gap + 1.0, f64::MAX),
        retries.to_string(),
        unknown.to_string(),
        failed.to_string(),
        conditions.to_string(),
    ]
}

/// Commits per second of a part of the time line.
fn rate(intervals: &[Interval], from: f64, to: f64) -> f64 {
    let is_within =
        |piece: &&Interval| piece.at_seconds >= from && piece.at_seconds + piece.seconds <= to;
    let (count, length) = intervals
        .iter()
        .filter(is_within)
        .fold((0, 0.0), |sum, piece| (sum.0 + piece.reads + piece.writes, sum.1 + piece.seconds));
    if length > 0.0 { count as f64 / length } else { 0.0 }
}

fn points(seen: &Seen) -> Vec<(f64, f64)> {
    let point = |piece: &Interval| {
        let count = (piece.reads + piece.writes) as f64;
        (piece.at_seconds - seen.at, count / piece.seconds.max(1e-3))
    };
    seen.report.intervals.iter().map(point).collect()
}

fn notes(size: &Size) -> Vec<String> {
    vec![
        format!(
            "Real hosts on loopback, {} replicas, durability `{}`; TPC-C-like with {} warehouses, \
             customers, orders and items divided by {}, {} clients. Each row is a cluster of its \
             own: tables are loaded, the run begins, after {} s one host is killed (SIGKILL) or \
             frozen (SIGSTOP), and the run goes on for {} s. Clients ask the other hosts alone. \
             Then all rows are read, and the consistency conditions of the standard checked: \
             nothing that was acknowledged is half there. When it happened is told on the time \
             line to some tenths of a second, the longest time without a commit to a \
             millisecond; one that lasts until the end is cut off there. `tx/s after` is from a \
             second after that on.",
            size.replicas,
            size.durability,
            size.warehouses,
            size.scale,
            size.terminals.last().copied().unwrap_or(1),
            size.before.as_secs_f64(),
            (size.before * 3).as_secs_f64(),
        ),
        "The gap is detection and change of view. Primaries tell their members that they are \
         there every 50 ms; a member doubts one that it has not heard for 200 ms, and more by its \
         place in the order; a majority that doubts makes the next view. So it is with a host \
         that is frozen. One whose process is gone closes its connections, and that is seen at \
         once."
            .to_owned(),
        "Three ways are compared in the last rows: the group's own pulse, and beside it \
         connections that end, which is what the engine has; and, as the paper has it, the \
         membership, which an engine of the lab alone goes by: members doubt a primary because the \
         roll has removed it, not because it is silent. The roll is kept by Rapid \
         (`membership.roll=rapid`) or by PRIME, the paper's own (`prime`). How long Rapid takes \
         with many nodes stands in [its own pages](../rapid/fig8.md)."
            .to_owned(),
        paper::CRASH.to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_killed_leads_what_it_should() {
        let role = |group: &str, role: &str| (group.to_owned(), role.to_owned());
        let shown = vec![
            (1, vec![role("0", "member")]),
            (2, vec![role("0", "primary"), role("1", "member")]),
            (3, vec![role("1", "primary")]),
            (4, vec![]),
        ];
        let of = |victim, groups| {
            let by = ChosenBy::Pulse;
            super::victim(&shown, Crash { by, hosts: 4, groups, victim, fate: Fate::Killed })
        };
        assert_eq!(of(Victim::Primary(0), 2), Some(2));
        assert_eq!(of(Victim::Primary(1), 2), Some(3));
        assert_eq!(of(Victim::Member, 2), Some(1));
        assert_eq!(of(Victim::Member, 3), None, "one group has no primary yet");
    }

    #[test]
    fn a_rate_is_of_whole_pieces() {
        let piece = |at_seconds, writes| Interval {
            at_seconds,
            seconds: 0.5,
            writes,
            ..Interval::default()
        };
        let pieces = [piece(0.0, 10), piece(0.5, 20), piece(1.0, 0)];
        assert_eq!(rate(&pieces, 0.0, 1.0), 30.0);
        assert_eq!(rate(&pieces, 0.4, f64::MAX), 20.0);
        assert_eq!(rate(&pieces, 9.0, 10.0), 0.0);
    }
}
