//! What servers that speak ZooKeeper's protocol do, side by side.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::error::BenchError;
use crate::load::mixes::Workload;
use crate::report::findings::{grouped, ratio};
use crate::rounds::compare::Side;
use crate::rounds::turns::{Live, Rounds, Target};

/// What to measure.
#[derive(Clone, Debug)]
pub(crate) struct TableConfig {
    /// The servers; ratios are those of the first by the others.
    pub targets: Vec<Target>,
    /// Mixes, each at one number of requests that a connection has on their way.
    pub cells: Vec<(Workload, usize)>,
    /// How often each cell is measured on each server.
    pub round_count: usize,
    /// Everything else; its endpoints, processes, mix, depth and plot are not used.
    pub base: Config,
}

/// The outcome. The field names are stable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Connections.
    pub connections: usize,
    /// Nodes.
    pub nodes: u64,
    /// The size of what each node has.
    pub value_bytes: usize,
    /// How often each row was measured.
    pub rounds: usize,
    /// One row for each mix, depth and server.
    pub rows: Vec<TableRow>,
}

/// One mix on one server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableRow {
    /// The mix.
    pub workload: Workload,
    /// Requests that a connection has on their way.
    pub outstanding: usize,
    /// The server.
    pub name: String,
    /// What it did.
    pub side: Side,
    /// Throughput of the first server by this one's; null in the first server's own row.
    pub throughput_ratio: Option<f64>,
    /// Processor time of the first server for an operation by this one's.
    pub cpu_ratio: Option<f64>,
    /// Peak resident bytes of the first server's largest host by this one's.
    pub memory_ratio: Option<f64>,
}

/// Starts the servers, runs all rounds in turn, and puts them side by side.
///
/// # Errors
/// See [`BenchError`]; servers that were started are stopped.
pub(crate) fn table(config: &TableConfig) -> Result<Table, BenchError> {
    if config.cells.is_empty() || config.round_count == 0 {
        let text = "a measurement needs a workload and a round";
        return Err(BenchError::Settings(text.to_owned()));
    }
    let start = |target: &Target| target.start(config.base.wire, &config.base.stop);
    let lives = config.targets.iter().map(start).collect::<Result<Vec<Live>, BenchError>>()?;
    let rounds = Rounds {
        cells: config.cells.clone(),
        distribution: None,
        count: config.round_count,
        base: &config.base,
    };
    let mut rows = Vec::new();
    for (&(workload, outstanding), reports) in config.cells.iter().zip(rounds.run(&lives)?) {
        let sides: Vec<Side> = reports.iter().map(|reports| Side::new(reports)).collect();
        for (index, side) in sides.iter().enumerate() {
            let first = (index > 0).then(|| &sides[0]);
            rows.push(TableRow {
                workload,
                outstanding,
                name: lives[index].name.clone(),
                side: side.clone(),
                throughput_ratio: first.map(|one| ratio(one.throughput, side.throughput)),
                cpu_ratio: first.and_then(|one| {
                    let cpu = one.server_cpu_seconds_per_1000?;
                    Some(ratio(cpu, side.server_cpu_seconds_per_1000?))
                }),
                memory_ratio: first.and_then(|one| {
                    Some(ratio(one.rss_peak_bytes? as f64, side.rss_peak_bytes? as f64))
                }),
            });
        }
    }
    Ok(Table {
        connections: config.base.connection_count,
        nodes: config.base.key_count,
        value_bytes: config.base.value_bytes,
        rounds: config.round_count,
        rows,
    })
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} connections, {} nodes of {} bytes, medians of {} rounds; latencies are those of \
             reads where there are reads; × is the first server by this one\n",
            self.connections,
            grouped(self.nodes as f64),
            grouped(self.value_bytes as f64),
            self.rounds
        )?;
        let head = "| mix | outstanding | server | per second | × | p50 ms | p99 ms \
                    | CPU ms per 1,000 | × | MiB | × | errors | other CPU |";
        writeln!(f, "{head}\n|---|---:|---|{}", "---:|".repeat(10))?;
        for row in &self.rows {
            row.fmt(f)?;
        }
        Ok(())
    }
}

impl TableRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = &self.side;
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
        let times = |ratio: Option<f64>| or_none(ratio.map(|ratio| format!("{ratio:.2}")));
        let cpu = side.server_cpu_seconds_per_1000.map(|seconds| format!("{:.1}", seconds * 1e3));
        let memory = side.rss_peak_bytes.map(|bytes| grouped((bytes >> 20) as f64));
        let others = side.other_cpu_cores.map(|cores| format!("{cores:.2}"));
        writeln!(
            f,
            "| {} | {} | {} | {} | {} | {:.2} | {:.2} | {} | {} | {} | {} | {} | {} |",
            self.workload,
            self.outstanding,
            self.name,
            grouped(side.throughput),
            times(self.throughput_ratio),
            side.p50_us / 1e3,
            side.p99_us / 1e3,
            or_none(cpu),
            times(self.cpu_ratio),
            or_none(memory),
            times(self.memory_ratio),
            grouped(side.errors as f64),
            or_none(others)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_stand_in_the_rows_of_the_others() {
        let side = Side {
            throughput: 12_345.0,
            p50_us: 1_500.0,
            server_cpu_seconds_per_1000: Some(0.04),
            rss_peak_bytes: Some(300 << 20),
            other_cpu_cores: Some(0.5),
            ..Side::new(&[])
        };
        let row = |name: &str, ratio| TableRow {
            workload: Workload::Set,
            outstanding: 25,
            name: name.to_owned(),
            side: side.clone(),
            throughput_ratio: ratio,
            cpu_ratio: ratio,
            memory_ratio: None,
        };
        let rows = vec![row("quorate", None), row("zookeeper", Some(3.0))];
        let table = Table { connections: 64, nodes: 1000, value_bytes: 1024, rounds: 3, rows };
        let text = table.to_string();
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("| set")).collect();
        let rest = "300 | – | 0 | 0.50 |";
        let both = [
            format!("| set | 25 | quorate | 12,345 | – | 1.50 | 0.00 | 40.0 | – | {rest}"),
            format!("| set | 25 | zookeeper | 12,345 | 3.00 | 1.50 | 0.00 | 40.0 | 3.00 | {rest}"),
        ];
        assert_eq!(lines, both);
    }
}
