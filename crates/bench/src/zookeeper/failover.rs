//! How long clients wait when the host that leads is killed.

use std::fmt;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

use crate::config::{Config, Extent};
use crate::error::BenchError;
use crate::load::mixes::Workload;
use crate::report::findings::Report;
use crate::rounds::turns::{Live, Target};
use crate::run::run;
use crate::zookeeper::ensemble::{is_leading, srvr};

/// How long clients run before the kill, warm-up apart.
const KILL_AFTER: Duration = Duration::from_secs(1);
/// How long they run in all: longer than any of the servers needs to choose another leader.
const RUN: Duration = Duration::from_secs(8);
/// How long to look for the server that leads.
const LOOK: Duration = Duration::from_secs(10);

/// What to measure.
#[derive(Clone, Debug)]
pub(crate) struct FailoverConfig {
    /// The servers, each started anew for each try.
    pub targets: Vec<Target>,
    /// How often the host that leads is killed.
    pub tries: usize,
    /// Everything else; its endpoints, processes, length and plot are not used.
    pub base: Config,
}

/// The outcome. The field names are stable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failover {
    /// Connections.
    pub connections: usize,
    /// The mix.
    pub workload: Workload,
    /// One row for each server.
    pub rows: Vec<FailoverRow>,
}

/// The longest time without a success of any one client, try by try.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailoverRow {
    /// The server.
    pub name: String,
    /// Milliseconds of clients of hosts that stayed.
    pub stayed_ms: Vec<f64>,
    /// Milliseconds of clients of the host that was killed, connecting again included.
    pub moved_ms: Vec<f64>,
}

/// Kills and measures.
///
/// # Errors
/// See [`BenchError`]; servers that were started are stopped.
pub(crate) fn failover(config: &FailoverConfig) -> Result<Failover, BenchError> {
    let mut rows = Vec::new();
    for target in &config.targets {
        let name = target.name().to_owned();
        let mut row = FailoverRow { name, stayed_ms: Vec::new(), moved_ms: Vec::new() };
        for _ in 0..config.tries {
            let live = target.start(config.base.wire, &config.base.stop)?;
            let report = with_a_kill(&config.base, &live)?;
            row.stayed_ms.extend(report.gaps.stayed_ms);
            row.moved_ms.extend(report.gaps.reconnected_ms);
        }
        rows.push(row);
    }
    let (connections, workload) = (config.base.connection_count, config.base.workload);
    Ok(Failover { connections, workload, rows })
}

/// Runs the load, and kills the leader's process meanwhile.
fn with_a_kill(base: &Config, live: &Live) -> Result<Report, BenchError> {
    let config = Config {
        endpoints: live.endpoints.clone(),
        server_pids: live.pids.clone(),
        extent: Extent::Time(RUN),
        reconnect: true,
        load: true,
        ..base.clone()
    };
    config.check()?;
    crate::run::load(&config)?;
    let leader = leader(&live.endpoints)
        .and_then(|index| live.pids.get(index))
        .and_then(|&pid| Pid::from_raw(i32::try_from(pid).ok()?))
        .ok_or_else(|| BenchError::Settings("no server says that it leads".to_owned()))?;
    let delay = config.warm_up + KILL_AFTER;
    let killer = thread::spawn(move || {
        thread::sleep(delay);
        kill_process(leader, Signal::KILL)
    });
    let report = run(&Config { load: false, ..config })?;
    let killed = killer.join().expect("it only sleeps and kills");
    killed.map_err(|error| BenchError::system("kill the leader")(error.into()))?;
    if report.interrupted {
        return Err(BenchError::Interrupted);
    }
    Ok(report)
}

/// The one that leads, once one does.
fn leader(endpoints: &[SocketAddr]) -> Option<usize> {
    let begin = Instant::now();
    loop {
        let leads = |address: &SocketAddr| is_leading(&srvr(*address));
        let found = endpoints.iter().position(leads);
        if found.is_some() || begin.elapsed() > LOOK {
            return found;
        }
    }
}

impl fmt::Display for Failover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "The leader's host is killed under load: {} connections, workload {}; the longest \
             time without a success of any one client, in milliseconds\n",
            self.connections, self.workload
        )?;
        writeln!(f, "| server | clients | tries | least | median | most |")?;
        writeln!(f, "|---|---|---:|---:|---:|---:|")?;
        for row in &self.rows {
            let both = [("of other hosts", &row.stayed_ms), ("of the killed host", &row.moved_ms)];
            for (clients, gaps) in both {
                let mut gaps = gaps.clone();
                gaps.sort_by(f64::total_cmp);
                let (Some(least), Some(most)) = (gaps.first(), gaps.last()) else { continue };
                let (count, median) = (gaps.len(), gaps[gaps.len() / 2]);
                let name = &row.name;
                write!(f, "| {name} | {clients} | {count} ")?;
                writeln!(f, "| {least:.0} | {median:.0} | {most:.0} |")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_told_by_where_the_client_was() {
        let row = FailoverRow {
            name: "quorate".to_owned(),
            stayed_ms: vec![300.0, 100.0, 200.4],
            moved_ms: Vec::new(),
        };
        let told = Failover { connections: 64, workload: Workload::A, rows: vec![row] };
        let text = told.to_string();
        let lines: Vec<&str> = text.lines().filter(|line| line.contains("quorate")).collect();
        assert_eq!(lines, ["| quorate | of other hosts | 3 | 100 | 200 | 300 |"]);
    }
}
