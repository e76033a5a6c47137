//! The marks: how many transactions three hosts commit, and what a second group costs.

use super::real::{HEAD, Mix, cells, fill, measure, others};
use super::size::{LENGTH, Size};
use crate::cluster::Cluster;
use crate::page::{Page, Table, fixed};
use quorate_bench::{Asking, Distribution, TransactionsReport, Workload};
use quorate_chart::svg::{Axis, Chart, Scale, Series, render};
use quorate_cli::exit::Failure;
use quorate_protocols::serializable;

/// The keyspace of one group.
const ONE: &str = "one";
/// The keyspace of two groups, on twice the hosts.
const TWO: &str = "two";
/// What stands above the first and the last column of what was measured.
const COMMITS: &str = "commits per second";
const OTHERS: &str = "other load (cores)";

/// Measures, and makes the page.
///
/// # Errors
/// A cluster did not start, or nothing was committed in a run.
pub fn figure(size: &Size) -> Result<Page, Failure> {
    let size = &Size { keys: size.marked_keys, hosts: size.replicas, ..size.clone() };
    let (rates, series) = rates(size)?;
    let costs = costs(&Size { hosts: 2 * size.replicas, ..size.clone() })?;
    let axis = |label: &str, scale| Axis { label: label.to_owned(), scale };
    let chart = Chart {
        title: "transactions committed per second".to_owned(),
        x: axis("clients (logarithmic)", Scale::Log),
        y: axis("tx/s", Scale::Linear),
        series,
        marks: Vec::new(),
    };
    Ok(Page {
        name: "marks".to_owned(),
        title: "Marks".to_owned(),
        notes: notes(size),
        tables: vec![rates, costs],
        picture: render("SCONEKV: marks", &[chart]),
    })
}

/// A cluster with these keyspaces, by their numbers of groups, and all keys in each.
fn cluster(size: &Size, keyspaces: &[(&str, u32)]) -> Result<Cluster, Failure> {
    let spec = |(name, groups): &(&str, u32)| {
        size.spec(name, &serializable::ENGINE, *groups, size.durability)
    };
    let specs: Vec<String> = keyspaces.iter().map(spec).collect();
    let specs: Vec<&str> = specs.iter().map(String::as_str).collect();
    let cluster = Cluster::start(size.port_base, size.hosts, &specs)?;
    keyspaces.iter().try_for_each(|(name, _)| fill(&cluster, name, size))?;
    Ok(cluster)
}

/// The ways in which clients ask, and what they are called.
const ASKED: [(&str, Asking); 2] =
    [("one request", Asking::Whole), ("one by one", Asking::Versions)];

fn rates(size: &Size) -> Result<(Table, Vec<Series>), Failure> {
    let head =
        [&["mix", "keys", "asked", "clients", COMMITS][..], &HEAD[..], &[OTHERS][..]].concat();
    let title = format!("{} hosts, one group, {} keys", size.hosts, size.keys);
    let mut table = Table::new("marks", &title, &head);
    let mut series = Vec::new();
    let cluster = cluster(size, &[(ONE, 1)])?;
    let keys = [("zipfian", Distribution::Zipfian), ("uniform", Distribution::Uniform)];
    for (workload, (drawn, distribution), (asked, asking)) in [Workload::A, Workload::B]
        .into_iter()
        .flat_map(|workload| keys.map(|keys| (workload, keys)))
        .flat_map(|(workload, keys)| ASKED.map(|asked| (workload, keys, asked)))
    {
        let mix = Mix { workload, distribution, asking };
        let name = workload.name().to_uppercase();
        let mut points = Vec::new();
        for clients in &size.marked_clients {
            eprintln!("marks: {name}, {drawn} keys, {asked}, {clients} clients");
            let report = measure(&cluster, ONE, size, mix, *clients)?;
            points.push((f64::from(*clients), commits(&report)));
            let first = [name.clone(), drawn.to_owned(), asked.to_owned(), clients.to_string()];
            table.push(row(&first, &report));
        }
        series.push(Series { name: format!("{name}, {drawn}, {asked}"), points });
    }
    Ok((table, series))
}

fn costs(size: &Size) -> Result<Table, Failure> {
    let head =
        [&["groups", "mix", "asked", "clients", COMMITS][..], &HEAD[..], &[OTHERS][..]].concat();
    let title = format!(
        "{} hosts: nearly all transactions of two groups are of both; uniform keys, {} of them",
        size.hosts, size.keys
    );
    let mut table = Table::new("marks-groups", &title, &head);
    let cluster = cluster(size, &[(ONE, 1), (TWO, 2)])?;
    let clients = size.marked_clients.first().copied().unwrap_or(1);
    for workload in [Workload::A, Workload::B] {
        for (asked, asking) in ASKED {
            for (keyspace, groups) in [(ONE, "1"), (TWO, "2")] {
                let name = workload.name().to_uppercase();
                eprintln!("marks: {name}, {asked}, groups: {groups}");
                let mix = Mix { workload, distribution: Distribution::Uniform, asking };
                let report = measure(&cluster, keyspace, size, mix, clients)?;
                let first = [groups.to_owned(), name, asked.to_owned(), clients.to_string()];
                table.push(row(&first, &report));
            }
        }
    }
    Ok(table)
}

fn commits(report: &TransactionsReport) -> f64 {
    report.goodput / LENGTH as f64
}

fn row(first: &[String], report: &TransactionsReport) -> Vec<String> {
    let mut row = first.to_vec();
    row.push(fixed(commits(report), 0));
    row.extend(cells(report));
    row.push(others(report));
    row
}

fn notes(size: &Size) -> Vec<String> {
    vec![
        format!(
            "Real hosts on loopback, {} replicas of each key, durability `{}`, values of 1,000 \
             bytes, transactions of {LENGTH} operations over the native client (gRPC). Each row: \
             {} s after {} s. *One by one*: as the paper's clients, so up to {} requests for a \
             transaction, and one is aborted if what it has read is changed before it commits. \
             *One request*: all operations at once; the host reads and commits, so nothing is \
             aborted. The clients share the cores with the hosts.",
            size.replicas,
            size.durability,
            size.window.as_secs_f64(),
            size.warm_up.as_secs_f64(),
            LENGTH + 1,
        ),
        "The second table says what a second group costs. What writes takes two-phase commit \
         between the two then, which is nearly all of mix A; what only reads asks both, and logs \
         nothing in either case: three quarters of mix B. One group is on three of the six hosts, \
         and clients ask all of them, so what is asked elsewhere is handed on."
            .to_owned(),
    ]
}
