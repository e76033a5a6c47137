//! One thing after the other is switched, on one cluster: what it brings.

use super::engine;
use super::real::{HEAD, Mix, cells, fill, measure, none_aborted, others};
use super::size::{Size, groups};
use crate::cluster::Cluster;
use crate::page::{Page, Table, fixed};
use quorate_bench::{Asking, Distribution, TransactionsReport, Workload};
use quorate_chart::svg::{Axis, Chart, Scale, Series, render};
use quorate_cli::exit::Failure;
use quorate_kernel::engine::Engine;
use quorate_kernel::storage::Durability;
use quorate_protocols::serializable;
use std::thread;
use std::time::Duration;

/// How long hosts may show something old.
const STALE: Duration = Duration::from_millis(1500);
/// Groups where there are many.
const MANY: u32 = 8;
/// How long `periodic` may take until a write is on disk.
const PERIOD_MS: u32 = 100;

/// A keyspace of the cluster.
struct Kept {
    name: &'static str,
    engine: &'static Engine,
    groups: u32,
    durability: Durability,
    reads: &'static str,
}

/// What is switched.
struct Switched {
    what: String,
    keyspace: &'static str,
    mix: Mix,
}

/// Measures, and makes the page.
///
/// # Errors
/// The cluster did not start, a run failed, or a host does not answer.
pub fn figure(size: &Size) -> Result<Page, Failure> {
    let kept = keyspaces(size);
    let spec = |kept: &Kept| {
        let Kept { name, engine, groups, durability, reads } = kept;
        format!("{},reads={reads}", size.spec(name, engine, *groups, *durability))
    };
    let specs: Vec<String> = kept.iter().map(spec).collect();
    let specs: Vec<&str> = specs.iter().map(String::as_str).collect();
    let cluster = Cluster::start(size.port_base, size.hosts, &specs)?;
    for kept in &kept {
        fill(&cluster, kept.name, size)?;
    }
    let head =
        [&["mix", "switched"][..], &HEAD[..], &["tried again by hosts", "other load (cores)"][..]]
            .concat();
    let clients = size.switched_clients;
    let title = format!("{clients} clients; each row but the first of its mix switches one thing");
    let mut table = Table::new("ablations", &title, &head);
    let mut series = Vec::new();
    for workload in [Workload::A, Workload::B, Workload::C] {
        let mut points = Vec::new();
        for (place, row) in rows(size, &kept, workload).iter().enumerate() {
            eprintln!("ablations: {workload}, {}", row.what);
            let (report, conflicts) = run(&cluster, size, row)?;
            none_aborted(workload, &report, conflicts)?;
            points.push((place as f64, report.goodput));
            let mut cells = [vec![name(workload), row.what.clone()], cells(&report)].concat();
            cells.extend([conflicts.to_string(), others(&report)]);
            table.push(cells);
        }
        series.push(Series { name: name(workload), points });
    }
    let axis = |label: &str| Axis { label: label.to_owned(), scale: Scale::Linear };
    let chart = Chart {
        title: "goodput of each row, in the order of the table".to_owned(),
        x: axis("row of the mix"),
        y: axis("op/s"),
        series,
        marks: Vec::new(),
    };
    Ok(Page {
        name: "ablations".to_owned(),
        title: "One thing after the other is switched".to_owned(),
        notes: notes(size),
        tables: vec![table],
        picture: render("SCONEKV: what is switched", &[chart]),
    })
}

/// As it stands in tables.
fn name(workload: Workload) -> String {
    workload.name().to_uppercase()
}

fn keyspaces(size: &Size) -> Vec<Kept> {
    let engine = &serializable::ENGINE;
    let reads = "atomic";
    let kept = |name, groups, durability| Kept { name, engine, groups, durability, reads };
    let usual = size.groups();
    let (sync, memory) = (Durability::Sync, Durability::Memory);
    let periodic = Durability::Periodic { every_ms: PERIOD_MS };
    let mut all = vec![
        kept("usual", usual, size.durability),
        kept("many", MANY, size.durability),
        kept("sync", usual, sync),
        kept("periodic", usual, periodic),
        kept("memory", usual, memory),
    ];
    if usual != 1 {
        all.push(kept("one", 1, size.durability));
    }
    for (name, engine) in [
        ("logged", &engine::LOGGED_READS),
        ("slow", &engine::SLOW_ABORTS),
        ("alone", &engine::ONE_LOCK),
    ] {
        all.push(Kept { engine, ..kept(name, usual, size.durability) });
    }
    all.push(Kept { reads: "any", ..kept("any", usual, size.durability) });
    all.retain(|it| it.name == "usual" || it.name == "many" || is_other(it, size));
    all
}

fn is_other(kept: &Kept, size: &Size) -> bool {
    let is_usual = kept.groups == size.groups() && kept.durability == size.durability;
    !is_usual || kept.engine.name != serializable::ENGINE.name || kept.reads != "atomic"
}

fn rows(size: &Size, kept: &[Kept], workload: Workload) -> Vec<Switched> {
    let paper = Mix::paper(workload);
    let row = |what: &str, keyspace, mix| Switched { what: what.to_owned(), keyspace, mix };
    let uniform = Mix { distribution: Distribution::Uniform, ..paper };
    let mut rows = vec![
        row("nothing", "usual", paper),
        row("writes rest on nothing", "usual", Mix { asking: Asking::Blind, ..paper }),
        row("one request", "usual", Mix { asking: Asking::Whole, ..paper }),
        row("uniform keys", "usual", uniform),
    ];
    for kept in kept.iter().filter(|it| it.name != "usual") {
        let what = match (kept.name, kept.durability == size.durability) {
            ("logged", _) => "reads are logged".to_owned(),
            ("slow", _) => "no fast aborts".to_owned(),
            ("alone", _) => "no read locks".to_owned(),
            ("any", _) => "reads of any replica".to_owned(),
            (_, true) => groups(kept.groups),
            (_, false) => format!("durability {}", kept.durability),
        };
        rows.push(Switched { what, keyspace: kept.name, mix: paper });
    }
    rows
}

/// One run, and how often hosts have tried a transaction again in it.
fn run(
    cluster: &Cluster,
    size: &Size,
    row: &Switched,
) -> Result<(TransactionsReport, u64), Failure> {
    let before = conflicts(cluster, row.keyspace)?;
    let report = measure(cluster, row.keyspace, size, row.mix, size.switched_clients)?;
    thread::sleep(STALE);
    Ok((report, conflicts(cluster, row.keyspace)?.saturating_sub(before)))
}

/// How often all hosts together have tried a transaction of a keyspace again after a conflict.
fn conflicts(cluster: &Cluster, keyspace: &str) -> Result<u64, Failure> {
    let of = |number: &u32| -> Result<u64, Failure> {
        let state = cluster.state(*number, keyspace)?;
        let count = state["conflicts"].as_str().and_then(|text| text.parse().ok());
        count.ok_or_else(|| Failure::failed("a host shows no conflicts"))
    };
    cluster.numbers().iter().map(of).sum()
}

fn notes(size: &Size) -> Vec<String> {
    vec![
        format!(
            "{}, {} keys of 1,000 bytes; each keyspace has the same keys. {} s after {} s each, \
             one after the other. What is switched:",
            size.words(),
            size.keys,
            size.window.as_secs_f64(),
            size.warm_up.as_secs_f64(),
        ),
        "- *nothing*: as in figure 5. Each key is read first, and the commit rests on all.\n- \
         *writes rest on nothing*: keys that are only written are not read; two transactions that \
         write the same key do not abort each other (§4.2 has each write rest on a version).\n- \
         *one request*: the host that serves the client reads and commits, so nothing is aborted; \
         where what it has read is changed it tries again, with the precedence of the first \
         attempt. Such tries are in the column `tried again by hosts`, whose time includes the \
         warm-up.\n- *uniform keys*: no key is asked for by most.\n- *groups*: with one group \
         a transaction is one entry of one log, and one host leads all; with more of them most \
         transactions take two-phase commit.\n- *reads are logged*: transactions that only read \
         run the whole protocol, as the paper's do (§6.1); an engine of the lab alone has it.\n- \
         *durability*: what a majority has of an entry before it counts (`sync`: it is on disk; \
         `periodic`: it will be within that time; `memory`)."
            .to_owned(),
        format!(
            "Of the paper's optimizations (§5) *fast aborts* are in all rows but `no fast aborts` \
             (who rests on a version that has gone waits for its keys there, and fails then), \
             *read-write locks* in all but `no read locks` (a key that is only read is held \
             alone), both by engines of the lab alone; *request targets* are primaries but in \
             `reads of any replica`, where a host reads what it has itself (`reads=any`). What is \
             beyond the paper has no switch: one message for all that a primary has for a member \
             in a turn, transactions of one group that are looked at as if those before them in \
             the log were committed, and the one entry of such a transaction; beside that stands \
             {}.",
            groups(MANY)
        ),
    ]
}

/// The share of a whole, in percent.
#[must_use]
pub fn percent(part: u64, of: u64) -> String {
    fixed(part as f64 * 100.0 / of.max(1) as f64, 1)
}
