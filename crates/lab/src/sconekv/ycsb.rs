//! Figures 5 to 9: YCSB's mixes in transactions of five operations, against the number of clients.

use super::engine;
use super::paper;
use super::real::{HEAD, Mix, cells, fill, measure, none_aborted, others};
use super::size::Size;
use crate::cluster::Cluster;
use crate::page::{Page, Table};
use quorate_bench::{Asking, Distribution, TransactionsReport, Workload};
use quorate_chart::svg::{Axis, Chart, Scale, Series, render};
use quorate_cli::exit::Failure;
use quorate_kernel::engine::Engine;
use quorate_protocols::serializable;

/// The keyspace of these figures.
const KEYSPACE: &str = "scone";
/// The keyspace of the engine that logs also what only reads.
const LOGGED: &str = "logged";

/// One line of a figure.
#[derive(Clone, Copy, Debug)]
struct Line {
    name: &'static str,
    keyspace: &'static str,
    mix: Mix,
}

/// What a figure is of.
struct Figure {
    number: u8,
    title: &'static str,
    lines: Vec<Line>,
    note: &'static str,
}

/// The figures that are asked for, from one cluster; lines that two figures share are measured
/// once. The pages are told one after the other, each when it is done.
///
/// # Errors
/// The cluster did not start, a run failed, a transaction that only reads was aborted, or the page
/// could not be kept.
pub fn figures(
    size: &Size,
    numbers: &[u8],
    mut keep: impl FnMut(Page) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if numbers.is_empty() {
        return Ok(());
    }
    let figures: Vec<Figure> = numbers.iter().map(|number| figure(*number)).collect();
    let all = [(KEYSPACE, &serializable::ENGINE), (LOGGED, &engine::LOGGED_READS)];
    let is_named = |name: &str| {
        figures.iter().flat_map(|figure| &figure.lines).any(|line| line.keyspace == name)
    };
    let named = || all.iter().filter(|(name, _)| is_named(name));
    let spec =
        |(name, engine): &(&str, &Engine)| size.spec(name, engine, size.groups(), size.durability);
    let specs: Vec<String> = named().map(spec).collect();
    let specs: Vec<&str> = specs.iter().map(String::as_str).collect();
    let cluster = Cluster::start(size.port_base, size.hosts, &specs)?;
    named().try_for_each(|(name, _)| fill(&cluster, name, size))?;
    let mut measured: Vec<(Line, Vec<TransactionsReport>)> = Vec::new();
    for figure in &figures {
        let mut found = Vec::new();
        for line in &figure.lines {
            let is_it = |other: &Line| (other.keyspace, other.mix) == (line.keyspace, line.mix);
            if !measured.iter().any(|(other, _)| is_it(other)) {
                measured.push((*line, sweep(&cluster, size, figure, line)?));
            }
            let runs = measured.iter().find(|(other, _)| is_it(other));
            found.push((*line, runs.map(|(_, runs)| runs.clone()).unwrap_or_default()));
        }
        keep(page(size, figure, &found))?;
    }
    Ok(())
}

/// The runs of a line, for all numbers of clients.
fn sweep(
    cluster: &Cluster,
    size: &Size,
    figure: &Figure,
    line: &Line,
) -> Result<Vec<TransactionsReport>, Failure> {
    let run = |clients: &u32| {
        eprintln!("figure {}: {}, {clients} clients", figure.number, line.name);
        let report = measure(cluster, line.keyspace, size, line.mix, *clients)?;
        none_aborted(line.mix.workload, &report, 0)?;
        Ok(report)
    };
    size.clients.iter().map(run).collect()
}

fn figure(number: u8) -> Figure {
    let line = |name, mix| Line { name, keyspace: KEYSPACE, mix };
    let paper = Mix::paper;
    let whole = |mix: Mix| Mix { asking: Asking::Whole, ..mix };
    let uniform = |mix: Mix| Mix { distribution: Distribution::Uniform, ..mix };
    let (title, lines, note) = match number {
        5 => ("workload A", vec![line("A", paper(Workload::A))], paper::A),
        6 => (
            "zipfian and uniform keys",
            vec![
                line("A zipfian", paper(Workload::A)),
                line("A uniform", uniform(paper(Workload::A))),
            ],
            paper::UNIFORM,
        ),
        7 => ("workload B", vec![line("B", paper(Workload::B))], paper::B),
        8 => (
            "workload C",
            vec![
                line("C one by one", paper(Workload::C)),
                line("C in one request", whole(paper(Workload::C))),
                Line { keyspace: LOGGED, ..line("C logged", paper(Workload::C)) },
            ],
            paper::C,
        ),
        _ => ("workload F", vec![line("F", paper(Workload::F))], paper::F),
    };
    Figure { number, title, lines, note }
}

fn page(size: &Size, figure: &Figure, found: &[(Line, Vec<TransactionsReport>)]) -> Page {
    let name = format!("fig{}", figure.number);
    let head = [&["mix", "clients"][..], &HEAD[..], &["other load (cores)"][..]].concat();
    let title = "Runs; op/s are operations, five of each transaction";
    let mut table = Table::new(&name, title, &head);
    for (line, runs) in found {
        for (clients, report) in size.clients.iter().zip(runs) {
            let mut row = vec![line.name.to_owned(), clients.to_string()];
            row.extend(cells(report));
            row.push(others(report));
            table.push(row);
        }
    }
    let heading = format!("Figure {}: {}", figure.number, figure.title);
    Page {
        name,
        title: heading.clone(),
        notes: notes(size, figure),
        tables: vec![table],
        picture: render(&format!("SCONEKV {heading}"), &[chart(size, found)]),
    }
}

fn chart(size: &Size, found: &[(Line, Vec<TransactionsReport>)]) -> Chart {
    let series = |(line, runs): &(Line, Vec<TransactionsReport>)| {
        let of = |what: &str, of: fn(&TransactionsReport) -> f64| Series {
            name: format!("{}: {what}", line.name),
            points: size.clients.iter().zip(runs).map(|(x, it)| (f64::from(*x), of(it))).collect(),
        };
        let goodput = of("goodput", |it| it.goodput);
        match runs.iter().all(|it| it.aborted == 0) {
            true => vec![goodput],
            false => vec![of("throughput", |it| it.throughput), goodput],
        }
    };
    Chart {
        title: "operations per second".to_owned(),
        x: Axis { label: "clients (logarithmic)".to_owned(), scale: Scale::Log },
        y: Axis { label: "op/s".to_owned(), scale: Scale::Linear },
        series: found.iter().flat_map(series).collect(),
        marks: Vec::new(),
    }
}

fn notes(size: &Size, figure: &Figure) -> Vec<String> {
    vec![
        format!(
            "{}. {} keys of 1,000 bytes. Clients ask as the paper's do, unless a row says \
             otherwise: five operations, one after the other; a key is read when it is first \
             named, also if it is only written; the commit rests on all that was read. A client \
             asks for one transaction after the other; one that is aborted is not tried again. \
             Throughput counts operations of all transactions that have ended, goodput those of \
             transactions that were committed. Each point: {} s after {} s.",
            size.words(),
            size.keys,
            size.window.as_secs_f64(),
            size.warm_up.as_secs_f64(),
        ),
        figure.note.to_owned(),
        paper::PEERS.to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_has_lines_that_differ() {
        for number in 5..=9 {
            let figure = figure(number);
            assert_eq!(figure.number, number);
            for (at, line) in figure.lines.iter().enumerate() {
                let of = |line: &Line| (line.keyspace, line.mix);
                assert!(figure.lines[..at].iter().all(|other| of(other) != of(line)));
            }
        }
        assert!(figure(8).lines.iter().all(|line| line.mix.workload == Workload::C));
    }
}
