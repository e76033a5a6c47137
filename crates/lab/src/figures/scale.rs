//! Fig. 4: throughput as servers are added, simulated at costs measured on real hosts.

use super::calibrate::{Calibration, NETWORK_US, calibrate};
use super::cats::Size;
use crate::page::{Page, Table, fixed};
use crate::service::{Kept, Load, Registers, Served, serve};
use quorate_chart::svg::{Axis, Chart, Scale, Series, render};
use quorate_cli::exit::Failure;

/// How many clients there are for each three servers: enough to keep their cores busy.
const CLIENTS_PER_THREE: usize = 128;
/// Keys for each simulated server. They hold no value: what a value costs is in the calibration.
const KEYS_PER_HOST: u64 = 1000;

/// Simulates figure 4.
///
/// # Errors
/// The cluster of the calibration did not start, or a run failed.
pub fn figure(port_base: u16, size: &Size) -> Result<Page, Failure> {
    eprintln!("figure 4: costs on real hosts");
    let calibration = calibrate(port_base, size)?;
    let mut table = Table::new(
        "fig4",
        "Simulated servers of one core each; slope is throughput per server beside that of three",
        &[
            "mix",
            "servers",
            "clients",
            "op/s",
            "op/s per server",
            "slope",
            "mean (ms)",
            "p99 (ms)",
            "cores busy (%)",
            "frames per op",
        ],
    );
    let mut series = Vec::new();
    for (read_percent, mix) in [(95, "95/5"), (50, "50/50")] {
        let mut points = Vec::new();
        for &servers in &size.servers {
            eprintln!("figure 4: {mix}, {servers} servers");
            let served = simulate(servers, read_percent, &calibration, size)?;
            points.push((servers as f64, served.throughput));
            let (first_servers, first) = points[0];
            let slope = (served.throughput / servers as f64) / (first / first_servers);
            table.push(row(mix, servers, &served, slope));
        }
        series.push(Series { name: mix.to_owned(), points });
    }
    if let Some((servers, throughput)) = series[0].points.first().copied() {
        let linear = |count: &usize| (*count as f64, throughput * *count as f64 / servers);
        let points = size.servers.iter().map(linear).collect();
        series.push(Series { name: "slope 1".to_owned(), points });
    }
    let axis = |label: &str| Axis { label: label.to_owned(), scale: Scale::Log };
    let chart = Chart {
        title: format!("Simulated; {CLIENTS_PER_THREE} clients for each three servers"),
        x: axis("servers (logarithmic)"),
        y: axis("op/s"),
        series,
        marks: Vec::new(),
    };
    Ok(Page {
        name: "fig4".to_owned(),
        title: "Figure 4: throughput as servers are added (simulated)".to_owned(),
        notes: notes(&calibration),
        tables: vec![costs(&calibration), table],
        picture: render("CATS Fig. 4: scalability, in the simulator", &[chart]),
    })
}

fn simulate(
    servers: usize,
    read_percent: u64,
    calibration: &Calibration,
    size: &Size,
) -> Result<Served, Failure> {
    let load = Load {
        kept: Kept::default(),
        hosts: servers,
        network_us: NETWORK_US,
        warm_up_ms: size.simulated_ms / 4 + 1,
        measured_ms: size.simulated_ms,
        seed: 1,
    };
    let mut clients = Registers::new(&load, CLIENTS_PER_THREE, read_percent, KEYS_PER_HOST);
    serve(&load, calibration.costs, &mut clients)
        .map_err(|fatal| Failure::failed(fatal.to_string()))
}

fn row(mix: &str, servers: usize, served: &Served, slope: f64) -> Vec<String> {
    vec![
        mix.to_owned(),
        servers.to_string(),
        (servers * CLIENTS_PER_THREE / 3).to_string(),
        fixed(served.throughput, 0),
        fixed(served.throughput / servers as f64, 0),
        fixed(slope, 3),
        fixed(served.mean_ns / 1e6, 3),
        fixed(served.p99_ns as f64 / 1e6, 3),
        fixed(served.busy * 100.0, 1),
        fixed(served.frames as f64 / served.requests.max(1) as f64, 2),
    ]
}

fn costs(calibration: &Calibration) -> Table {
    let mut table = Table::new(
        "fig4-costs",
        "The costs: what one operation takes on three real hosts, and what was made of it",
        &["operation", "measured host CPU per op (µs)", "simulated frames per op"],
    );
    for (name, kind) in [("get", calibration.gets), ("put", calibration.puts)] {
        table.push(vec![name.to_owned(), fixed(kind.cpu_us, 1), fixed(kind.frames, 2)]);
    }
    table
}

fn notes(calibration: &Calibration) -> Vec<String> {
    let costs = calibration.costs;
    let how = match calibration.is_flat {
        true => {
            " (the two measurements contradicted each other, so one cost stands for requests and \
             frames alike)"
        }
        false => "",
    };
    vec![
        format!(
            "The model: the hosts run the real protocol code in the simulator. Each has one core \
             with a queue: a client's request keeps it for {:.1} µs and a frame of another host \
             for {:.1} µs{how}, first come, first served; what a turn sends leaves when that time \
             is over. Timers, the store and clients cost nothing. A way between two machines takes \
             {NETWORK_US} µs and has no limit of bandwidth. Three replicas, one token for each \
             server, evenly spaced; uniform keys, {KEYS_PER_HOST} for each server; \
             {CLIENTS_PER_THREE} clients for each three servers, each connected to one of them.",
            costs.request_ns as f64 / 1e3,
            costs.frame_ns as f64 / 1e3,
        ),
        "The costs come from runs of reads alone and updates alone on three real hosts with \
         1,024-byte values, in which a turn handles what has come together; the simulator takes \
         requests and frames one by one, and so counts as spread evenly what batching saves."
            .to_owned(),
        "The paper: linear with slope 1, slightly higher at 3 and 6 servers, where a request is \
         more likely to arrive at a replica. Here three servers do better still: each holds every \
         key and answers a get after one question to another, two frames, where a server that \
         holds none of the key's replicas asks a majority, four frames. The column of frames per \
         operation says how far that goes; from where it stays the same, throughput grows with \
         the servers. Handing such a get to a member instead takes four frames too (there, one \
         question and its answer, and back) and twice the ways through the network, so it is not \
         done; a put would take eight frames in place of ten."
            .to_owned(),
    ]
}
