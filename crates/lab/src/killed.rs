//! One host is killed under load: how long until every key has all its replicas again, step by
//! step, and what clients of the other hosts see meanwhile.

use super::background::{Part, under_load};
use super::cluster::Cluster;
use super::moved::Common;
use super::page::{Table, fixed};
use quorate_bench::Report;
use quorate_cli::dev::ctl::Order;
use quorate_cli::exit::Failure;
use quorate_cli::verbs::cluster::membership;
use serde_json::Value;
use std::io::{Write, stdout};
use std::time::{Duration, Instant};

/// How often the hosts that are left are asked.
const AGAIN: Duration = Duration::from_millis(50);
/// How long replication may take to come back.
const BACK_MAX: Duration = Duration::from_secs(600);

/// The arguments of `lab kill`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Clients are connected to the hosts that are left.\n\n\
                        Example: quorate-lab kill --megabytes 100 --hosts 6")]
pub struct KillArgs {
    #[command(flatten)]
    common: Common,
}

/// When things happened, in seconds since the kill; none if they were not seen.
#[derive(Clone, Copy, Debug, Default)]
struct Killed {
    /// On the time line of the load.
    at: f64,
    /// A host suspects it.
    suspected: Option<f64>,
    /// A group has a view without it.
    replaced: Option<f64>,
    /// Nothing has it as a member and nothing moves.
    whole: Option<f64>,
    moved_bytes: u64,
}

/// Runs `lab kill`.
///
/// # Errors
/// The cluster did not start, or the load failed.
pub fn run(args: &KillArgs) -> Result<(), Failure> {
    let common = &args.common;
    let (mut cluster, config) = common.prepare()?;
    let (killed, report) = under_load(config, |begun| {
        std::thread::sleep(begun.saturating_duration_since(Instant::now()));
        common.wait();
        let killed = kill(&mut cluster, begun)?;
        common.wait();
        Ok(killed)
    })?;
    writeln!(stdout(), "{}", table(args, &killed, &report).text())?;
    Ok(())
}

fn kill(cluster: &mut Cluster, begun: Instant) -> Result<Killed, Failure> {
    let victim = cluster.last();
    let node = cluster.node(victim)?;
    let before = cluster.moved_bytes()?;
    // What the victim itself has fetched goes with it, so only the others are counted.
    let own = cluster.moved_bytes_of(victim)?;
    let at = begun.elapsed().as_secs_f64();
    let mut killed = Killed { at, ..Killed::default() };
    let struck = Instant::now();
    cluster.tell(&Order::Kill { host: victim })?;
    let most = member_count(cluster, &node)?;
    while struck.elapsed() < BACK_MAX {
        if killed.suspected.is_none() && is_suspected(cluster, &node)? {
            killed.suspected = Some(struck.elapsed().as_secs_f64());
        }
        let left = member_count(cluster, &node)?;
        if killed.replaced.is_none() && left < most {
            killed.replaced = Some(struck.elapsed().as_secs_f64());
        }
        if left == 0 {
            break;
        }
        std::thread::sleep(AGAIN);
    }
    let settled = cluster.settled(None, Instant::now() + BACK_MAX)?;
    killed.whole = settled.map(|when| when.saturating_duration_since(struck).as_secs_f64());
    killed.moved_bytes = cluster.moved_bytes()?.saturating_sub(before.saturating_sub(own));
    Ok(killed)
}

/// How often a node is a member of a group, over all that hosts know.
fn member_count(cluster: &Cluster, node: &str) -> Result<usize, Failure> {
    let count =
        |number: &u32| Ok(membership::groups_of(&membership::ring(&cluster.http(*number)?)?, node));
    cluster.numbers().iter().map(count).sum()
}

/// Whether some host suspects a node.
fn is_suspected(cluster: &Cluster, node: &str) -> Result<bool, Failure> {
    let is_it = |host: &Value| host["node"] == node && host["suspected"] == true;
    for number in cluster.numbers() {
        let ring = membership::ring(&cluster.http(*number)?)?;
        if ring["hosts"].as_array().into_iter().flatten().any(is_it) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn table(args: &KillArgs, killed: &Killed, report: &Report) -> Table {
    let before = Part::of(report, 0.0, killed.at - 1.0);
    let during = Part::of(report, killed.at, killed.whole.map_or(f64::MAX, |end| killed.at + end));
    let mut table = Table::new("kill", "One host is killed", &["what", "value"]);
    let mut push = |what: &str, value: String| table.push(vec![what.to_owned(), value]);
    let seconds =
        |when: Option<f64>| when.map_or_else(|| "not seen".to_owned(), |seconds| fixed(seconds, 2));
    let step =
        |from: Option<f64>, to: Option<f64>| seconds(from.zip(to).map(|(from, to)| to - from));
    push("hosts before", args.common.hosts.to_string());
    push("data (MB, once)", args.common.megabytes.to_string());
    push("moved (MB)", fixed(killed.moved_bytes as f64 / 1e6, 1));
    push("detection: until a host suspects it (s)", seconds(killed.suspected));
    push("settling: until a group has a new view (s)", step(killed.suspected, killed.replaced));
    push("transfer: until nothing moves any more (s)", step(killed.replaced, killed.whole));
    push("back at full replication after (s)", seconds(killed.whole));
    push("p99 before, median of seconds (ms)", fixed(before.p99_median_ms, 2));
    push("p99 during, worst second (ms)", fixed(during.p99_ms, 2));
    push("operations failed", report.errors.values().sum::<u64>().to_string());
    push("longest time without any answer (ms)", fixed(report.gaps.any_ms, 1));
    let stayed = report.gaps.stayed_ms.map_or_else(|| "–".to_owned(), |gap| fixed(gap, 1));
    push("longest time one connection waited (ms)", stayed);
    table
}
