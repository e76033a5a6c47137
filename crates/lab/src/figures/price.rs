//! Fig. 6 and 7: what atomicity and consistent quorums cost, in processor time, throughput and
//! latency.

use super::load::{MIXES, cpu_us, mean_ms};
use super::paired::{CONNECTIONS, ENOUGH, KEYSPACES, Measured, Runs};
use super::stamps::Stamps;
use crate::page::{Page, Table, fixed};
use crate::statistics::{Estimate, trimmed};
use quorate_bench::Report;
use quorate_chart::bars::{Bar, BarChart, BarSeries, render};

/// The places of the keyspaces in a round.
const ATOMIC: usize = 0;
const EVENTUAL: usize = 1;
const STATIC: usize = 2;

/// Figure 6: processor time and throughput of the atomic mode beside the two that promise less.
#[must_use]
pub fn overhead(measured: &Measured, stamps: &Stamps) -> Page {
    let processor = prices(
        measured,
        "fig6",
        "Processor time of all hosts per operation, and how much of it the promises add, with 95 % \
         confidence intervals",
        ["atomic (µs)", "eventual (µs)", "static (µs)"],
        (cpu_us, 2),
        Runs::added,
    );
    let throughput = prices(
        measured,
        "fig6-throughput",
        "Operations per second, and how many of them the promises take; below zero the atomic mode \
         did more",
        ["atomic (op/s)", "eventual (op/s)", "static (op/s)"],
        (|report| report.throughput, 0),
        Runs::lost,
    );
    let chart = |title: &str, label: &str, of: fn(&Report) -> f64| BarChart {
        title: title.to_owned(),
        x_label: "mix and size of values (bytes)".to_owned(),
        y_label: label.to_owned(),
        groups: groups(measured),
        series: all(measured, of),
    };
    let charts = [
        chart("Throughput of three hosts", "op/s", |report| report.throughput),
        chart("Processor time of all hosts per operation", "µs", cpu_us),
    ];
    Page {
        name: "fig6".to_owned(),
        title: "Figure 6: the price of atomicity and of consistent quorums".to_owned(),
        notes: vec![
            method(measured),
            "`eventual` writes in one phase, with the wall clock for a timestamp, where `atomic` \
             asks first for the newest timestamp; and it does not write back what a read found. It \
             has consistent quorums. `static` is atomic as long as no view changes: reads, writes \
             and the replies to them carry no views and nothing of who forgot or is behind. It is \
             not linearizable when hosts come, go or fail, and only the program that measures has \
             it."
                .to_owned(),
            "All three are of the engine `quorums`: `linearizable` in a wrapper, which leaves the \
             stamps of `static` out where a message leaves, and fills them in where it arrives, \
             as the paper did it. All the rest is the same code. A register of its own would have \
             differed in more than what is measured. What the wrapper takes is on both sides of \
             each ratio; and so are making stamps and comparing them."
                .to_owned(),
            "Processor time is the figure to go by: load generator and hosts share the cores here, \
             and throughput depends on who gets them. Overheads are ratios of neighbouring runs \
             less one: the geometric mean without the lowest and the highest fifth of the rounds, \
             with the interval of Tukey and McLaughlin. Other load is what neither hosts nor load \
             generator used, in cores."
                .to_owned(),
            "The third table counts what stamps take by themselves, in bytes and in time to write \
             and read them: without the comparing, and in the measuring process, not on the hosts."
                .to_owned(),
            "The paper: atomicity costs less than 5 % with 95 % reads and up to 25 % with 50 % \
             updates; consistent quorums cost 5, 4 and 1 % at 256 B, 1 KB and 4 KB, in throughput."
                .to_owned(),
        ],
        tables: vec![processor, throughput, stamps.table(mixes(measured))],
        picture: render("CATS Fig. 6: atomic, eventual and static, 95 % intervals", &charts),
    }
}

/// A table of one measure at all keyspaces, and of what the atomic one pays for its promises.
fn prices(
    measured: &Measured,
    file: &str,
    title: &str,
    [atomic, eventual, plain]: [&'static str; 3],
    (of, digits): (fn(&Report) -> f64, usize),
    price: fn(&Runs, usize) -> Estimate,
) -> Table {
    let head = [
        "mix",
        "value (B)",
        "rounds",
        atomic,
        eventual,
        plain,
        "atomicity costs (%)",
        "95 % interval",
        "consistent quorums cost (%)",
        "95 % interval of it",
        "other load (cores)",
    ];
    let mut table = Table::new(file, title, &head);
    for runs in &measured.runs {
        let mut row =
            vec![runs.mix.to_owned(), runs.value_bytes.to_string(), runs.rounds.len().to_string()];
        row.extend(
            [ATOMIC, EVENTUAL, STATIC].map(|side| fixed(of_side(runs, side, of).mean, digits)),
        );
        for price in [price(runs, EVENTUAL), price(runs, STATIC)] {
            row.extend([fixed(price.mean, 2), interval(price, 2)]);
        }
        row.push(fixed(other_cores(runs), 2));
        table.push(row);
    }
    table
}

/// Figure 7: latency of the atomic and the eventual mode.
#[must_use]
pub fn latency(measured: &Measured) -> Page {
    let mut table = Table::new(
        "fig7",
        "Latency in milliseconds: trimmed means over the rounds; the ratio is that of the mean \
         latencies of all operations, with its 95 % confidence interval",
        &[
            "mix",
            "value (B)",
            "atomic read",
            "eventual read",
            "atomic update",
            "eventual update",
            "atomic read p99",
            "eventual read p99",
            "atomic / eventual",
            "95 % interval",
            "other load (cores)",
        ],
    );
    for runs in &measured.runs {
        let ms = |side: usize, of: fn(&Report) -> f64| fixed(of_side(runs, side, of).mean / 1e3, 3);
        let ratio = runs.ratio(EVENTUAL, mean_ms);
        table.push(vec![
            runs.mix.to_owned(),
            runs.value_bytes.to_string(),
            ms(ATOMIC, |report| report.reads.mean_us),
            ms(EVENTUAL, |report| report.reads.mean_us),
            ms(ATOMIC, |report| report.writes.mean_us),
            ms(EVENTUAL, |report| report.writes.mean_us),
            ms(ATOMIC, |report| report.reads.p99_us),
            ms(EVENTUAL, |report| report.reads.p99_us),
            fixed(ratio.mean, 3),
            interval(ratio, 3),
            fixed(other_cores(runs), 2),
        ]);
    }
    let chart = |title: &str, class: fn(&Report) -> f64| {
        let mut series = all(measured, class);
        series.truncate(2);
        BarChart {
            title: title.to_owned(),
            x_label: "mix and size of values (bytes)".to_owned(),
            y_label: "mean (ms)".to_owned(),
            groups: groups(measured),
            series,
        }
    };
    let charts = [
        chart("Reads", |report| report.reads.mean_us / 1e3),
        chart("Updates", |report| report.writes.mean_us / 1e3),
    ];
    Page {
        name: "fig7".to_owned(),
        title: "Figure 7: latency beside the eventual mode".to_owned(),
        notes: vec![
            method(measured),
            "The paper compares the eventual mode of CATS with Cassandra 1.1.0 (quorum reads and \
             writes, `commitlog_sync: periodic`) and finds its own latency about three times \
             Cassandra's, except for reads in the update-intensive mix; reads and updates of the \
             eventual mode take the same time, as both have one phase, and latency grows with the \
             size of values. That shape can be compared: here too the columns of the eventual mode \
             stand for one phase each. No Cassandra was measured here, and no claim is made about \
             one."
                .to_owned(),
        ],
        tables: vec![table],
        picture: render("CATS Fig. 7: mean latency, atomic and eventual mode", &charts),
    }
}

/// Processor time per operation of the atomic mode with values of 1 KB, for both mixes.
fn mixes(measured: &Measured) -> [f64; 2] {
    MIXES.map(|(_, mix)| {
        let is_it = |runs: &&Runs| runs.mix == mix && runs.value_bytes == 1024;
        let found = measured.runs.iter().find(is_it);
        found.map_or(0.0, |runs| of_side(runs, ATOMIC, cpu_us).mean)
    })
}

/// The mean of one keyspace over the rounds of a mix and size.
fn of_side(runs: &Runs, side: usize, of: fn(&Report) -> f64) -> Estimate {
    trimmed(&runs.rounds.iter().map(|round| of(&round[side])).collect::<Vec<f64>>())
}

/// How many cores everything else kept busy meanwhile.
fn other_cores(runs: &Runs) -> f64 {
    let reports = runs.rounds.iter().flatten();
    let cores: Vec<f64> = reports.filter_map(|report| report.other_cpu_cores).collect();
    cores.iter().sum::<f64>() / cores.len().max(1) as f64
}

fn interval(estimate: Estimate, digits: usize) -> String {
    format!("{} to {}", fixed(estimate.low, digits), fixed(estimate.high, digits))
}

fn groups(measured: &Measured) -> Vec<String> {
    measured.runs.iter().map(|runs| format!("{}, {}", runs.mix, runs.value_bytes)).collect()
}

/// The bars of all keyspaces, each with the interval of its own mean.
fn all(measured: &Measured, of: fn(&Report) -> f64) -> Vec<BarSeries> {
    let series = |(side, name): (usize, &str)| {
        let bar = |runs: &Runs| {
            let Estimate { mean, low, high } = of_side(runs, side, of);
            Bar { height: mean, error: Some((low, high)) }
        };
        BarSeries { name: name.to_owned(), bars: measured.runs.iter().map(bar).collect() }
    };
    KEYSPACES.into_iter().enumerate().map(series).collect()
}

fn method(measured: &Measured) -> String {
    format!(
        "Three real hosts with three keyspaces in the same processes, `atomic`, `eventual` and \
         `static`: three replicas, durability `memory`, {} keys each, uniform. A round is a run of \
         each, {} s with {CONNECTIONS} connections in a closed loop, in an order that changes from \
         round to round through all six: so short that what else happens on the machine hits all \
         three, and as busy as hosts get, where a fixed rate would leave them to wake up for each \
         operation and hide what is added to it. A row ends when both of its intervals of \
         processor time are within ±{ENOUGH} % or the rounds allowed are used up.",
        measured.keys, measured.seconds
    )
}
