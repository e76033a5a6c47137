//! Fig. 6 and 7: what atomicity costs, in throughput, processor time and latency.

use super::load::{MIXES, cpu_us, mean_ms};
use super::page::{Page, Table, fixed};
use super::paired::{CONNECTIONS, Measured, Runs};
use super::stamps::Stamps;
use super::statistics::{Estimate, mean, ratio};
use quorate_bench::Report;
use quorate_bench::bars::{Bar, BarChart, BarSeries, render};

/// Figure 6: throughput and processor time of the atomic against the eventual mode.
#[must_use]
pub fn overhead(measured: &Measured, stamps: &Stamps) -> Page {
    let mut table = Table::new(
        "fig6",
        "Atomic against eventual, with 95 % confidence intervals over the pairs; a loss below zero \
         means that atomic did more",
        &[
            "mix",
            "value (B)",
            "pairs",
            "atomic (op/s)",
            "eventual (op/s)",
            "throughput lost (%)",
            "95 % interval",
            "atomic CPU per op (µs)",
            "eventual CPU per op (µs)",
            "CPU added (%)",
            "95 % interval of it",
        ],
    );
    for runs in &measured.runs {
        let (lost, added) = (lost(runs), added(runs));
        table.push(vec![
            runs.mix.to_owned(),
            runs.value_bytes.to_string(),
            runs.pairs.len().to_string(),
            fixed(side(runs, |pair| pair.0.throughput), 0),
            fixed(side(runs, |pair| pair.1.throughput), 0),
            fixed(lost.mean, 1),
            interval(lost),
            fixed(side(runs, |pair| cpu_us(&pair.0)), 1),
            fixed(side(runs, |pair| cpu_us(&pair.1)), 1),
            fixed(added.mean, 1),
            interval(added),
        ]);
    }
    let chart = |title: &str, label: &str, of: fn(&Report) -> f64| BarChart {
        title: title.to_owned(),
        x_label: "mix and size of values (bytes)".to_owned(),
        y_label: label.to_owned(),
        groups: groups(measured),
        series: both(measured, of),
    };
    let charts = [
        chart("Throughput of three hosts", "op/s", |report| report.throughput),
        chart("Processor time of all hosts per operation", "µs", cpu_us),
    ];
    Page {
        name: "fig6".to_owned(),
        title: "Figure 6: the price of atomicity".to_owned(),
        notes: vec![
            method(measured),
            "Throughput lost is one less the ratio of throughputs, CPU added the ratio of \
             processor times per operation less one; ratios are geometric means over the pairs."
                .to_owned(),
            "The paper's third variant, CATS without the view stamps of consistent quorums, does \
             not run here: the stamps also carry what keeps replicas that lost their data from \
             being counted and deleted keys from coming back, so no setting takes them off. The \
             second table counts instead what stamps take in bytes and in time to write and read \
             them. It leaves out the comparison of views at the coordinator, and rests on this \
             process, not on the hosts."
                .to_owned(),
            "The paper: atomicity costs less than 5 % with 95 % reads and up to 25 % with 50 % \
             updates; consistent quorums cost 5, 4 and 1 % at 256 B, 1 KB and 4 KB."
                .to_owned(),
        ],
        tables: vec![table, stamps.table(mixes(measured))],
        picture: render("CATS Fig. 6: atomic and eventual mode, 95 % intervals", &charts),
    }
}

/// Figure 7: latency of the atomic and the eventual mode.
#[must_use]
pub fn latency(measured: &Measured) -> Page {
    let mut table = Table::new(
        "fig7",
        "Latency in milliseconds: means over the runs; the ratio is that of the mean latencies of \
         all operations, with its 95 % confidence interval",
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
        ],
    );
    for runs in &measured.runs {
        let ms = |of: fn(&(Report, Report)) -> f64| fixed(side(runs, of) / 1e3, 3);
        let pairs: Vec<_> =
            runs.pairs.iter().map(|(one, other)| (mean_ms(one), mean_ms(other))).collect();
        let ratio = ratio(&pairs);
        table.push(vec![
            runs.mix.to_owned(),
            runs.value_bytes.to_string(),
            ms(|pair| pair.0.reads.mean_us),
            ms(|pair| pair.1.reads.mean_us),
            ms(|pair| pair.0.writes.mean_us),
            ms(|pair| pair.1.writes.mean_us),
            ms(|pair| pair.0.reads.p99_us),
            ms(|pair| pair.1.reads.p99_us),
            fixed(ratio.mean, 3),
            format!("{} to {}", fixed(ratio.low, 3), fixed(ratio.high, 3)),
        ]);
    }
    let chart = |title: &str, class: fn(&Report) -> f64| BarChart {
        title: title.to_owned(),
        x_label: "mix and size of values (bytes)".to_owned(),
        y_label: "mean (ms)".to_owned(),
        groups: groups(measured),
        series: both(measured, class),
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
             Cassandra's, except for reads in the update-intensive mix. No Cassandra was measured \
             here, and no claim is made about one."
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
        found.map_or(0.0, |runs| side(runs, |pair| cpu_us(&pair.0)))
    })
}

/// The mean over the runs of a mix and size.
fn side(runs: &Runs, of: impl Fn(&(Report, Report)) -> f64) -> f64 {
    mean(&runs.pairs.iter().map(of).collect::<Vec<f64>>()).mean
}

/// How much throughput is lost, in percent.
fn lost(runs: &Runs) -> Estimate {
    let pairs: Vec<_> =
        runs.pairs.iter().map(|(one, other)| (one.throughput, other.throughput)).collect();
    let ratio = ratio(&pairs);
    let percent = |ratio: f64| (1.0 - ratio) * 100.0;
    Estimate { mean: percent(ratio.mean), low: percent(ratio.high), high: percent(ratio.low) }
}

/// How much processor time is added, in percent.
fn added(runs: &Runs) -> Estimate {
    let pairs: Vec<_> =
        runs.pairs.iter().map(|(one, other)| (cpu_us(one), cpu_us(other))).collect();
    let ratio = ratio(&pairs);
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    Estimate { mean: percent(ratio.mean), low: percent(ratio.low), high: percent(ratio.high) }
}

fn interval(estimate: Estimate) -> String {
    format!("{} to {}", fixed(estimate.low, 1), fixed(estimate.high, 1))
}

fn groups(measured: &Measured) -> Vec<String> {
    measured.runs.iter().map(|runs| format!("{}, {}", runs.mix, runs.value_bytes)).collect()
}

/// The bars of both modes, each with the interval of its own mean.
fn both(measured: &Measured, of: fn(&Report) -> f64) -> Vec<BarSeries> {
    let bar = |samples: Vec<f64>| {
        let Estimate { mean, low, high } = mean(&samples);
        Bar { height: mean, error: Some((low, high)) }
    };
    let series = |name: &str, bars: Vec<Bar>| BarSeries { name: name.to_owned(), bars };
    let one = |runs: &Runs| bar(runs.pairs.iter().map(|pair| of(&pair.0)).collect());
    let other = |runs: &Runs| bar(runs.pairs.iter().map(|pair| of(&pair.1)).collect());
    vec![
        series("atomic", measured.runs.iter().map(one).collect()),
        series("eventual", measured.runs.iter().map(other).collect()),
    ]
}

fn method(measured: &Measured) -> String {
    format!(
        "Three real hosts with two keyspaces, one in mode `atomic`, one in mode `eventual`: three \
         replicas, durability `memory`, {} keys each, uniform. The runs of {} s, {CONNECTIONS} \
         connections each, alternate as A, B, B, A; a pair is two neighbours. The eventual mode \
         writes in one phase, with the wall clock for a timestamp, where the atomic one asks first \
         for the newest timestamp; and it does not write back what a read found.",
        measured.keys, measured.seconds
    )
}
