//! What an operation costs the processors of servers, for any number of them in turn.
//!
//! Throughput of servers that share a machine with the load says little: the processor time of all
//! servers for each operation says what a design costs, and a program that leaves out nearly
//! everything says what the machine allows.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::error::BenchError;
use crate::load::mixes::Workload;
use crate::report::findings::grouped;
use crate::rounds::compare::Side;
use crate::rounds::turns::{Live, Rounds, Target};

/// What to measure.
#[derive(Clone, Debug)]
pub struct CeilingConfig {
    /// The kinds of servers, one after the other; only servers of one kind run at a time.
    pub kinds: Vec<Kind>,
    /// How often each mix is run on each server.
    pub round_count: usize,
    /// Everything else; its endpoints, processes, mix, depth and plot are not used.
    pub base: Config,
}

/// Servers that promise the same, such as `memory` or `sync`, and what is run on them.
#[derive(Clone, Debug)]
pub struct Kind {
    /// What they promise.
    pub name: String,
    /// Mixes, each at one pipeline depth.
    pub cells: Vec<(Workload, usize)>,
    /// The servers, each with the name of its column.
    pub targets: Vec<Target>,
}

/// The outcome. The field names are stable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ceiling {
    /// The columns' names.
    pub columns: Vec<String>,
    /// Connections.
    pub connections: usize,
    /// Keys.
    pub keys: u64,
    /// The size of every value.
    pub value_bytes: usize,
    /// How often each row was measured on each server.
    pub rounds: usize,
    /// One row for each kind, mix and pipeline depth.
    pub rows: Vec<CeilingRow>,
}

/// One mix at one pipeline depth on servers of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CeilingRow {
    /// What the servers promise.
    pub kind: String,
    /// The mix.
    pub workload: Workload,
    /// The pipeline depth.
    pub pipeline: usize,
    /// What each column's server did; null where a column has none of this kind.
    pub sides: Vec<Option<Side>>,
}

/// Starts the servers of each kind, runs all rounds in turn, and tells what operations cost.
///
/// # Errors
/// See [`BenchError`]; servers that were started are stopped.
pub fn ceiling(config: &CeilingConfig) -> Result<Ceiling, BenchError> {
    if config.round_count == 0 || config.kinds.iter().any(|kind| kind.cells.is_empty()) {
        let text = "a measurement needs a workload and a round";
        return Err(BenchError::Settings(text.to_owned()));
    }
    let mut columns: Vec<String> = Vec::new();
    let mut rows = Vec::new();
    for kind in &config.kinds {
        let start = |target: &Target| target.start(config.base.wire, &config.base.stop);
        let lives = kind.targets.iter().map(start).collect::<Result<Vec<Live>, BenchError>>()?;
        for live in &lives {
            if !columns.contains(&live.name) {
                columns.push(live.name.clone());
            }
        }
        let rounds = Rounds {
            cells: kind.cells.clone(),
            distribution: None,
            count: config.round_count,
            base: &config.base,
        };
        for (&(workload, pipeline), reports) in kind.cells.iter().zip(rounds.run(&lives)?) {
            let side = |column: &String| {
                let at = lives.iter().position(|live| live.name == *column)?;
                Some(Side::new(&reports[at]))
            };
            let sides = columns.iter().map(side).collect();
            rows.push(CeilingRow { kind: kind.name.clone(), workload, pipeline, sides });
        }
    }
    for row in &mut rows {
        row.sides.resize(columns.len(), None);
    }
    Ok(Ceiling {
        columns,
        connections: config.base.connection_count,
        keys: config.base.key_count,
        value_bytes: config.base.value_bytes,
        rounds: config.round_count,
        rows,
    })
}

impl fmt::Display for Ceiling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "Processor time of all servers for an operation, and operations per second: {} \
             connections, {} keys, values of {} bytes, medians of {} rounds\n",
            self.connections,
            grouped(self.keys as f64),
            grouped(self.value_bytes as f64),
            self.rounds
        )?;
        write!(f, "| |")?;
        for name in &self.columns {
            write!(f, " {name} | |")?;
        }
        writeln!(f, "\n|---|{}", "---:|".repeat(2 * self.columns.len()))?;
        for row in &self.rows {
            write!(f, "| `{}`, {}", row.kind, row.workload)?;
            match row.pipeline {
                1 => write!(f, " |")?,
                depth => write!(f, ", {depth} in a pipeline |")?,
            }
            for side in &row.sides {
                match side {
                    Some(side) => side.fmt_cells(f)?,
                    None => write!(f, " – | – |")?,
                }
            }
            writeln!(f)?;
        }
        for (name, side) in self.rows.iter().flat_map(|row| self.columns.iter().zip(&row.sides)) {
            if let Some(errors) = side.as_ref().map(|side| side.errors).filter(|&count| count > 0) {
                writeln!(f, "\n{name}: {} errors", grouped(errors as f64))?;
            }
        }
        Ok(())
    }
}

impl Side {
    fn fmt_cells(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.server_cpu_seconds_per_1000 {
            // Seconds for a thousand operations are milliseconds for one.
            Some(milliseconds) => write!(f, " {:.1} µs |", milliseconds * 1e3)?,
            None => write!(f, " – |")?,
        }
        write!(f, " {}/s |", grouped(self.throughput))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_a_cell_for_each_column() {
        let side =
            |cpu| Side { throughput: 12_345.0, server_cpu_seconds_per_1000: cpu, ..Side::new(&[]) };
        let row = |pipeline, sides| CeilingRow {
            kind: "memory".to_owned(),
            workload: Workload::Set,
            pipeline,
            sides,
        };
        let table = Ceiling {
            columns: vec!["quorate".to_owned(), "less".to_owned()],
            connections: 64,
            keys: 1000,
            value_bytes: 100,
            rounds: 5,
            rows: vec![
                row(1, vec![Some(side(Some(0.0123))), None]),
                row(16, vec![Some(side(None)), Some(Side { errors: 3, ..side(Some(0.002)) })]),
            ],
        };
        let text = table.to_string();
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
        assert_eq!(
            lines,
            [
                "| | quorate | | less | |",
                "|---|---:|---:|---:|---:|",
                "| `memory`, set | 12.3 µs | 12,345/s | – | – |",
                "| `memory`, set, 16 in a pipeline | – | 12,345/s | 2.0 µs | 12,345/s |",
            ]
        );
        assert!(text.ends_with("less: 3 errors\n"), "{text}");
    }
}
