//! The four configurations of DottedDB on real hosts: what clients wait for, how long replication
//! takes, what is sent and what is kept.

use super::super::page::{Page, Table, fixed};
use super::grid::{CONFIGURATIONS, Configuration};
use super::hosts::{CLIENTS, Extent, Found, HOSTS, measure_all};
use super::latency::PAPER;
use super::replication::{cdf, millis};
use super::simulated::run::Times;
use super::updates::VALUE_BYTES;
use quorate_chart::svg::{Axis, Chart, Scale, render};
use quorate_cli::exit::Failure;

/// Measures, and makes the page.
///
/// # Errors
/// The cluster did not start, or a host does not answer.
pub fn figure(port_base: u16, extent: &Extent) -> Result<Page, Failure> {
    let dotted = &CONFIGURATIONS[..4];
    let found = measure_all(port_base, extent, dotted)?;
    let rows: Vec<Row<'_>> = dotted.iter().zip(&found).collect();
    let lines = |of: fn(&Found) -> &Times| {
        rows.iter().map(|(configuration, found)| cdf(configuration.name, of(found))).collect()
    };
    let chart = |title: &str, what: &str, of: fn(&Found) -> &Times| Chart {
        title: title.to_owned(),
        x: Axis { label: millis(what), scale: Scale::Log },
        y: Axis { label: "updates".to_owned(), scale: Scale::Nines },
        series: lines(of),
        marks: Vec::new(),
    };
    let charts = [
        chart("Fig. 5: until another host shows an update", "replication latency", |it| {
            &it.replication
        }),
        chart("Table II: updates as clients see them", "get and put", |it| &it.latency),
    ];
    Ok(Page {
        name: "real".to_owned(),
        title: "Real hosts: Table II, Figures 4 and 5, smaller".to_owned(),
        notes: notes(extent),
        tables: vec![
            latency(&rows),
            replication(&rows, extent),
            traffic(&rows, extent),
            kept(&rows, extent),
        ],
        picture: render("DottedDB on real hosts", &charts),
    })
}

/// A configuration and what was found of it.
type Row<'a> = (&'a Configuration, &'a Found);

fn notes(extent: &Extent) -> Vec<String> {
    let Extent { keys, rate, .. } = extent;
    let intervals = [0, 2].map(|at| CONFIGURATIONS[at].interval_us(*keys, *rate) as f64 / 1e6);
    vec![
        format!(
            "{HOSTS} real hosts of one cluster, on loopback, with a causal keyspace for each \
             configuration, loaded one after the other while the others rest: {HOSTS} replicas, so \
             that every host holds every key, `r` = `w` = 1, durability `memory`, {keys} keys, \
             {VALUE_BYTES} B values. {} clients, {CLIENTS} of each host, update random keys at \
             exponential gaps, {rate} times per second together: `CGET`, then `CSET` with its \
             context, at the same host. What is due while its client still waits counts from when \
             it was due. Measured for {} s after {} s.",
            CLIENTS * u64::from(HOSTS),
            extent.window.as_secs(),
            extent.warm_up.as_secs(),
        ),
        format!(
            "The letters are those of Table I. State changed H: 10 % of the keys are updated \
             between two exchanges of a host, which is every {} s; L: 1 %, every {} s. Message \
             loss H: all messages of replication on write are lost, so none is sent \
             (`replication=off`); L is 10 % in the paper, and none here: nothing takes messages \
             from real hosts.",
            intervals[0], intervals[1],
        ),
        "Not as in the paper: it has 64 nodes on five machines, 3 replicas and 500,000 keys, and \
         most updates are forwarded to a replica; here hosts and clients share one machine, no \
         update is forwarded, and an exchange of two hosts is about all the partitions that they \
         hold, so that it has bytes even at rest. So milliseconds cannot be compared, only the \
         configurations with each other. MerkleDB is no engine of hosts, so it is missing here; it \
         is in the simulated pages alone."
            .to_owned(),
        format!(
            "Replication: {} further keys, which nobody else writes, are written at a random host \
             once each, and another random one is asked until it shows the value, every \
             millisecond at first and every twentieth of the age later: so inexact are times at \
             most. They end with the reply.",
            extent.probes,
        ),
        "The paper on Table II: with frequent exchanges DottedDB is 33 % faster on average than \
         the fastest MerkleDB; with rare ones it is slower than all. On figure 5: with LH 99 % are \
         stored in less than 20 s. On figure 4: it sends much less with *L than with *H, and keeps \
         less than 2 MB beside objects with H*, less than 10 KB with L*."
            .to_owned(),
    ]
}

fn latency(rows: &[Row<'_>]) -> Table {
    let mut table = Table::new(
        "real-latency",
        "Table II: latency of updates, get and put together, in milliseconds; the paper's behind \
         ours",
        &[
            "configuration",
            "mean",
            "50 %",
            "95 %",
            "99 %",
            "paper mean",
            "paper 95 %",
            "paper 99 %",
            "updates",
            "failed",
        ],
    );
    for ((configuration, found), paper) in rows.iter().zip(PAPER) {
        let mut row = vec![configuration.name.to_owned(), fixed(found.latency.mean() / 1e3, 3)];
        row.extend([0.5, 0.95, 0.99].map(|share| quantile(&found.latency, share, 1e3, 3)));
        row.extend(paper.map(|it| fixed(it, 1)));
        row.extend([found.latency.len().to_string(), found.failed.to_string()]);
        table.push(row);
    }
    table
}

fn replication(rows: &[Row<'_>], extent: &Extent) -> Table {
    let mut table = Table::new(
        "real-replication",
        "Figure 5: time from an update's acknowledgement until another host shows it, in seconds",
        &[
            "configuration",
            "interval",
            "50 %",
            "90 %",
            "99 %",
            "all",
            "updates",
            "never",
            "99 % in the paper",
        ],
    );
    for (configuration, found) in rows {
        let interval_us = configuration.interval_us(extent.keys, extent.rate);
        let mut row = vec![configuration.name.to_owned(), fixed(interval_us as f64 / 1e6, 2)];
        let times = &found.replication;
        row.extend([0.5, 0.9, 0.99, 1.0].map(|share| quantile(times, share, 1e6, 4)));
        let paper = if configuration.name == "D LH" { "< 20" } else { "-" };
        row.extend([times.len().to_string(), times.open.to_string(), paper.to_owned()]);
        table.push(row);
    }
    table
}

fn traffic(rows: &[Row<'_>], extent: &Extent) -> Table {
    let mut table = Table::new(
        "real-traffic",
        "Figure 4: bytes that the hosts sent each other for the keyspace, all together; with *L \
         replication on write is among them",
        &[
            "configuration",
            "loaded (kB/s)",
            "loaded (B per update)",
            "at rest (kB/s)",
            "in the paper",
        ],
    );
    let probes = extent.probes as f64 / extent.window.as_secs_f64();
    let updates = extent.rate as f64 + probes;
    for (configuration, found) in rows {
        let (loaded, idle) = found.sent;
        let paper =
            if configuration.lost == 100 { "much more than *L" } else { "much less than *H" };
        table.push(vec![
            configuration.name.to_owned(),
            fixed(loaded / 1e3, 1),
            fixed(loaded / updates, 0),
            fixed(idle / 1e3, 1),
            paper.to_owned(),
        ]);
    }
    table
}

fn kept(rows: &[Row<'_>], extent: &Extent) -> Table {
    let mut table = Table::new(
        "real-kept",
        "What a host keeps under load: dots of which it does not know that all have them, and \
         objects whose clocks have more than their own versions; none at rest",
        &[
            "configuration",
            "dots on average",
            "dots at most",
            "such objects on average",
            "at most",
            "of all objects (%)",
            "none after (s)",
        ],
    );
    for (configuration, found) in rows {
        let (dots, dots_most) = found.dot_keys;
        let (unstripped, unstripped_most) = found.unstripped;
        let objects = (extent.keys + extent.probes) as f64;
        table.push(vec![
            configuration.name.to_owned(),
            fixed(dots, 1),
            dots_most.to_string(),
            fixed(unstripped, 1),
            unstripped_most.to_string(),
            fixed(unstripped / objects * 100.0, 2),
            found.rest.map_or("never".to_owned(), |rest| fixed(rest.as_secs_f64(), 1)),
        ]);
    }
    table
}

fn quantile(times: &Times, share: f64, unit: f64, digits: usize) -> String {
    times.quantile(share).map_or("-".to_owned(), |micros| fixed(micros as f64 / unit, digits))
}
