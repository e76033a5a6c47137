//! One host joins, or is drained, under load: what clients see, and how long the move takes beside
//! a plain copy of the same records.

use super::background::{Part, load, under_load};
use super::cluster::Cluster;
use super::copy::{loopback_seconds, store_seconds};
use super::page::{Table, fixed};
use quorate_bench::{Config, Pace, Report, Workload};
use quorate_cli::config::values::Size;
use quorate_cli::dev::ctl::Order;
use quorate_cli::exit::Failure;
use quorate_cli::provision::keyspace;
use quorate_kernel::storage::Durability;
use std::io::{Write, stdout};
use std::str::FromStr;
use std::time::{Duration, Instant};

/// The size of every value.
pub const VALUE_BYTES: usize = 1024;
/// Connections of the load.
const CONNECTIONS: usize = 32;
/// How long a move may take at most.
const MOVE_MAX: Duration = Duration::from_secs(1800);

/// What the commands on one host share.
#[derive(Clone, Debug, clap::Args)]
pub struct Common {
    /// How many megabytes of values the cluster holds, each key counted once
    #[arg(long, default_value_t = 100, value_name = "MB")]
    pub megabytes: u64,
    /// How many hosts there are before
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(4..=16))]
    #[arg(value_name = "COUNT")]
    pub hosts: u32,
    /// Operations per second, 95 % of them reads
    #[arg(long, default_value_t = 2000, value_name = "PER_SECOND")]
    pub rate: u64,
    /// How durable the data is: sync, periodic=MS or memory
    #[arg(long, default_value = "memory", value_name = "LEVEL")]
    pub durability: Durability,
    /// How much a host that takes over data may receive each second, such as 60MB: a network of
    /// that speed, or the setting cluster.transfer_rate; 0 is all it can
    #[arg(long, default_value = "0", value_name = "SIZE", value_parser = Size::from_str)]
    pub transfer_rate: Size,
    /// How long the load runs before and after, in seconds
    #[arg(long, default_value_t = 10, value_name = "SECONDS")]
    pub around: u64,
    /// Host i has ports PORT + 10 i + 1 to + 3
    #[arg(long, default_value_t = 7700, value_name = "PORT")]
    pub port_base: u16,
}

/// The arguments of `lab join`.
#[derive(Debug, clap::Args)]
#[command(after_help = "All hosts share this machine.\n\n\
                        Example: quorate-lab join --megabytes 1000 --hosts 6 --transfer-rate 60MB")]
pub struct JoinArgs {
    #[command(flatten)]
    common: Common,
    /// Drain the last host instead
    #[arg(long)]
    drain: bool,
}

impl Common {
    /// Starts the cluster and writes its data; the load that then runs asks all hosts but the last.
    ///
    /// # Errors
    /// The cluster did not start, or could not take the data.
    pub fn prepare(&self) -> Result<(Cluster, Config), Failure> {
        let spec = format!("default=linearizable,durability={}", self.durability);
        let spec = keyspace::parse(&spec).map_err(Failure::failed)?;
        let settings = [format!("cluster.transfer_rate={}", self.transfer_rate)];
        let cluster = Cluster::with(self.port_base, self.hosts, vec![spec], &settings)?;
        let mut config = cluster.load(Workload::B);
        config.endpoints.pop();
        config.server_pids.clear();
        config.key_count = (self.megabytes * 1_000_000 / VALUE_BYTES as u64).max(1);
        config.value_bytes = VALUE_BYTES;
        config.connection_count = CONNECTIONS;
        eprintln!("{} keys are written", config.key_count);
        load(&config)?;
        config.load = false;
        config.pace = Pace::Open { rate_per_second: self.rate };
        config.warm_up = Duration::from_secs(1);
        config.interval = Duration::from_secs(1);
        Ok((cluster, config))
    }

    /// Lets the load alone for a while.
    pub fn wait(&self) {
        std::thread::sleep(Duration::from_secs(self.around));
    }
}

/// When things happened, in seconds since the time line began.
struct Moved {
    ordered: f64,
    settled: Option<f64>,
    keys: u64,
    bytes: u64,
}

/// Runs `lab join`.
///
/// # Errors
/// The cluster did not start, the host could not join, or the load failed.
pub fn run(args: &JoinArgs) -> Result<(), Failure> {
    let common = &args.common;
    let (mut cluster, config) = common.prepare()?;
    let (moved, report) = under_load(config, |begun| {
        std::thread::sleep(begun.saturating_duration_since(Instant::now()));
        common.wait();
        let moved = change(&mut cluster, args.drain, begun)?;
        common.wait();
        Ok(moved)
    })?;
    drop(cluster);
    let loopback = loopback_seconds(moved.bytes)?;
    let rate = common.transfer_rate.0;
    let copy = store_seconds(common.durability, moved.keys, VALUE_BYTES, rate)?;
    writeln!(stdout(), "{}", table(args, &moved, &report, (loopback, copy)).text())?;
    Ok(())
}

fn change(cluster: &mut Cluster, is_drain: bool, begun: Instant) -> Result<Moved, Failure> {
    let (keys, bytes) = cluster.moved()?;
    let ordered = begun.elapsed().as_secs_f64();
    let leaver = is_drain.then(|| cluster.last());
    cluster.tell(&leaver.map_or(Order::Add, |host| Order::Drain { host }))?;
    let settled = cluster.settled(leaver, Instant::now() + MOVE_MAX)?;
    let (keys_after, bytes_after) = cluster.moved()?;
    Ok(Moved {
        ordered,
        settled: settled.map(|when| when.saturating_duration_since(begun).as_secs_f64()),
        keys: keys_after.saturating_sub(keys),
        bytes: bytes_after.saturating_sub(bytes),
    })
}

fn table(args: &JoinArgs, moved: &Moved, report: &Report, (loopback, copy): (f64, f64)) -> Table {
    let end = moved.settled.unwrap_or(f64::MAX);
    let before = Part::of(report, 0.0, moved.ordered - 1.0);
    let during = Part::of(report, moved.ordered, end);
    let what = if args.drain { "drain" } else { "join" };
    let mut table = Table::new("join", &format!("One host: {what}"), &["what", "value"]);
    let mut push = |what: &str, value: String| table.push(vec![what.to_owned(), value]);
    push("hosts before", args.common.hosts.to_string());
    push("durability", args.common.durability.to_string());
    push("data (MB, once)", args.common.megabytes.to_string());
    let rate = match args.common.transfer_rate {
        Size(0) => "none".to_owned(),
        Size(bytes) => fixed(bytes as f64 / 1e6, 1),
    };
    push("limit of what one host receives (MB/s)", rate);
    push("moved (keys)", moved.keys.to_string());
    push("moved (MB)", fixed(moved.bytes as f64 / 1e6, 1));
    let took = moved.settled.map(|end| end - moved.ordered);
    let unseen = || "not seen to end".to_owned();
    push("time of the move (s)", took.map_or_else(unseen, |took| fixed(took, 2)));
    push("plain copy from store to store over loopback (s)", fixed(copy, 2));
    let ratio = took.map(|took| took / copy);
    push("time of the move / plain copy", ratio.map_or_else(unseen, |ratio| fixed(ratio, 2)));
    push("loopback alone, as many bytes (s)", fixed(loopback, 2));
    push("p99 before, median of seconds (ms)", fixed(before.p99_median_ms, 2));
    push("p99 during, median of seconds (ms)", fixed(during.p99_median_ms, 2));
    push("p99 during / before, medians", fixed(during.p99_median_ms / before.p99_median_ms, 2));
    push("p99 before, whole part (ms)", fixed(before.p99_whole_ms, 2));
    push("p99 during, whole part (ms)", fixed(during.p99_whole_ms, 2));
    push("p99 during / before, whole parts", fixed(during.p99_whole_ms / before.p99_whole_ms, 2));
    push("p99 before, worst second (ms)", fixed(before.p99_ms, 2));
    push("p99 during, worst second (ms)", fixed(during.p99_ms, 2));
    push("operations failed", report.errors.values().sum::<u64>().to_string());
    push("longest time without any answer (ms)", fixed(report.gaps.any_ms, 1));
    table
}
