//! Fig. 3: latency against throughput as load grows, three real hosts.

use super::cats::Size;
use crate::cluster::Cluster;
use crate::page::{Page, Table, fixed};
use quorate_bench::{Extent, Report, Workload};
use quorate_chart::svg::{Axis, Chart, Scale, Series, render};
use quorate_cli::exit::Failure;

/// The mixes of the paper, by the words of its figures.
pub const MIXES: [(Workload, &str); 2] = [(Workload::B, "95/5"), (Workload::A, "50/50")];

/// The mean latency of all operations of a run, in milliseconds.
#[must_use]
pub fn mean_ms(report: &Report) -> f64 {
    let classes = [&report.reads, &report.writes];
    let total: f64 = classes.iter().map(|class| class.mean_us * class.operations as f64).sum();
    let count: u64 = classes.iter().map(|class| class.operations).sum();
    total / 1e3 / count.max(1) as f64
}

/// Processor time of all hosts per operation, in microseconds.
#[must_use]
pub fn cpu_us(report: &Report) -> f64 {
    report.server_cpu_seconds_per_1000.unwrap_or(0.0) * 1e3
}

/// Measures figure 3.
///
/// # Errors
/// The cluster did not start, or a run failed.
pub fn figure(port_base: u16, size: &Size) -> Result<Page, Failure> {
    let cluster = Cluster::start(port_base, 3, &["default=linearizable"])?;
    let mut table = Table::new(
        "fig3",
        "Three hosts, 1 KB values, uniform keys; 95/5 means 95 % reads and 5 % updates",
        &[
            "mix",
            "clients",
            "op/s",
            "mean (ms)",
            "read p99 (ms)",
            "update p99 (ms)",
            "host CPU per op (µs)",
            "failed",
            "other load (cores)",
        ],
    );
    let mut rows = [Vec::new(), Vec::new()];
    let mut points = [Vec::new(), Vec::new()];
    let mut is_loaded = false;
    // The mixes in turn, so that other work on the machine hits both.
    for &connections in &size.connections {
        for (nth, (workload, mix)) in MIXES.into_iter().enumerate() {
            eprintln!("figure 3: {mix}, {connections} clients");
            let mut config = cluster.load(workload);
            config.key_count = size.keys;
            config.connection_count = connections;
            config.extent = Extent::Time(size.point);
            config.warm_up = size.warm_up;
            config.load = !std::mem::replace(&mut is_loaded, true);
            let report = quorate_bench::run(&config)?;
            points[nth].push((report.throughput, mean_ms(&report)));
            rows[nth].push(row(mix, &report));
        }
    }
    rows.into_iter().flatten().for_each(|row| table.push(row));
    let named = MIXES.into_iter().zip(points);
    let series = named.map(|((_, mix), points)| Series { name: mix.to_owned(), points });
    Ok(page(size, table, series.collect()))
}

fn row(mix: &str, report: &Report) -> Vec<String> {
    vec![
        mix.to_owned(),
        report.connections.to_string(),
        fixed(report.throughput, 0),
        fixed(mean_ms(report), 3),
        fixed(report.reads.p99_us / 1e3, 2),
        fixed(report.writes.p99_us / 1e3, 2),
        fixed(cpu_us(report), 1),
        report.errors.values().sum::<u64>().to_string(),
        fixed(report.other_cpu_cores.unwrap_or(0.0), 2),
    ]
}

/// The page of what was measured.
fn page(size: &Size, table: Table, series: Vec<Series>) -> Page {
    let axis = |label: &str| Axis { label: label.to_owned(), scale: Scale::Linear };
    let title = "CATS Fig. 3: latency against throughput, three hosts";
    let chart = Chart {
        title: format!("{} clients, one operation each on its way", list(&size.connections)),
        x: axis("throughput (operations per second)"),
        y: axis("mean (ms)"),
        series,
        marks: Vec::new(),
    };
    Page {
        name: "fig3".to_owned(),
        title: "Figure 3: latency against throughput".to_owned(),
        notes: vec![
            format!(
                "Three real hosts, three replicas, durability `memory`, {} keys of 1,024 bytes \
                 chosen uniformly. Each client is a connection with one operation on its way; \
                 clients are spread over the hosts. Other load is what neither hosts nor load \
                 generator used: the smaller, the better the row.",
                size.keys
            ),
            "The paper's curve (4 to 128 threads) is flat until the servers are busy and then \
             bends upwards: about 4,000 operations a second at 8 ms with 32 threads."
                .to_owned(),
        ],
        tables: vec![table],
        picture: render(title, &[chart]),
    }
}

fn list(numbers: &[usize]) -> String {
    let texts: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    texts.join(", ")
}
