//! Processor time and memory of the servers, read from `/proc`, and of the client itself.

use std::collections::BTreeMap;
use std::fs;

use rustix::param::clock_ticks_per_second;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::error::BenchError;

/// What one server process used while the measured window was open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerUsage {
    /// Its process id.
    pub pid: u32,
    /// Processor seconds of all its threads, user and system together.
    pub cpu_seconds: f64,
    /// Resident bytes when the window closed.
    pub rss_bytes: u64,
    /// The most resident bytes it ever had.
    pub rss_peak_bytes: u64,
    /// It ended before the window closed; its figures are from its last second.
    pub ended: bool,
}

/// One look at a process.
#[derive(Clone, Debug, Default, PartialEq)]
struct Sample {
    /// In whole ticks, which are a hundredth of a second.
    cpu_seconds: f64,
    /// Nanoseconds of each thread that runs now; empty if they are not told.
    threads: BTreeMap<u32, u64>,
    rss_bytes: u64,
    rss_peak_bytes: u64,
}

/// Follows the server processes and the thread that runs the client.
#[derive(Debug)]
pub struct Watch {
    servers: Vec<Watched>,
    client_begin_seconds: f64,
    client_seconds: f64,
    machine_begin_seconds: f64,
    machine_seconds: f64,
}

#[derive(Debug)]
struct Watched {
    pid: u32,
    begin: Sample,
    last: Sample,
    ended: bool,
}

impl Watch {
    /// A watch over these processes.
    ///
    /// # Errors
    /// One of them does not exist.
    pub fn new(pids: &[u32]) -> Result<Watch, BenchError> {
        let watched = |&pid: &u32| {
            let begin = look(pid)
                .ok_or_else(|| BenchError::Settings(format!("there is no process {pid}")))?;
            Ok(Watched { pid, last: begin.clone(), begin, ended: false })
        };
        let servers = pids.iter().map(watched).collect::<Result<_, BenchError>>()?;
        Ok(Watch {
            servers,
            client_begin_seconds: thread_seconds(),
            client_seconds: 0.0,
            machine_begin_seconds: machine_seconds(),
            machine_seconds: 0.0,
        })
    }

    /// The measured window opens.
    pub fn open(&mut self) {
        self.sample();
        for server in &mut self.servers {
            server.begin = server.last.clone();
        }
        self.client_begin_seconds = thread_seconds();
        self.machine_begin_seconds = machine_seconds();
    }

    /// Looks at the servers, so that the figures of one that dies are not older than this.
    pub fn sample(&mut self) {
        for server in &mut self.servers {
            match look(server.pid) {
                Some(sample) if !server.ended => server.last = sample,
                _ => server.ended = true,
            }
        }
    }

    /// The measured window closes.
    pub fn close(&mut self) {
        self.client_seconds = thread_seconds() - self.client_begin_seconds;
        self.machine_seconds = machine_seconds() - self.machine_begin_seconds;
        self.sample();
    }

    /// What each server used.
    #[must_use]
    pub fn servers(&self) -> Vec<ServerUsage> {
        let usage = |server: &Watched| ServerUsage {
            pid: server.pid,
            cpu_seconds: server.last.cpu_seconds_since(&server.begin),
            rss_bytes: server.last.rss_bytes,
            rss_peak_bytes: server.last.rss_peak_bytes,
            ended: server.ended,
        };
        self.servers.iter().map(usage).collect()
    }

    /// Processor seconds of everything else on this machine, time stolen from it included; none
    /// if no server is watched, for then the servers would be among the others.
    #[must_use]
    pub fn other_seconds(&self) -> Option<f64> {
        let servers: f64 = self.servers().iter().map(|server| server.cpu_seconds).sum();
        let others = self.machine_seconds - servers - self.client_seconds;
        (!self.servers.is_empty()).then_some(others.max(0.0))
    }

    /// Processor seconds of the client's one thread.
    #[must_use]
    pub fn client_seconds(&self) -> f64 {
        self.client_seconds
    }
}

fn thread_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Processor seconds that were not idle since the machine started; zero if they are not told.
fn machine_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    busy_ticks(&stat).unwrap_or(0) as f64 / clock_ticks_per_second() as f64
}

/// The first line of `/proc/stat` without idling and waiting for disks. Guests are left out too:
/// their time is in that of users already.
fn busy_ticks(stat: &str) -> Option<u64> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks = line.split_whitespace().take(8).map(|ticks| ticks.parse().ok());
    let ticks: Vec<u64> = ticks.collect::<Option<_>>()?;
    let idle = ticks.get(3)? + ticks.get(4)?;
    Some(ticks.iter().sum::<u64>() - idle)
}

/// One look at a process, `None` if there is none.
fn look(pid: u32) -> Option<Sample> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let ticks = cpu_ticks(&stat)?;
    Some(Sample {
        threads: thread_nanos(pid),
        cpu_seconds: ticks as f64 / clock_ticks_per_second() as f64,
        // A process that is about to end has no memory left to speak of.
        rss_bytes: status_bytes(&status, "VmRSS:").unwrap_or(0),
        rss_peak_bytes: status_bytes(&status, "VmHWM:").unwrap_or(0),
    })
}

impl Sample {
    /// Processor seconds since an earlier look: exact while every thread of then still runs, in
    /// ticks if one has ended and taken its time along.
    fn cpu_seconds_since(&self, begin: &Sample) -> f64 {
        let has_all = begin.threads.keys().all(|thread| self.threads.contains_key(thread));
        if self.threads.is_empty() || !has_all {
            return self.cpu_seconds - begin.cpu_seconds;
        }
        let since = |(thread, nanos): (&u32, &u64)| {
            nanos.saturating_sub(begin.threads.get(thread).copied().unwrap_or(0))
        };
        self.threads.iter().map(since).sum::<u64>() as f64 / 1e9
    }
}

/// What each thread of a process has run, in nanoseconds, from `/proc/PID/task/TID/schedstat`.
fn thread_nanos(pid: u32) -> BTreeMap<u32, u64> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let nanos = |task: fs::DirEntry| {
        let thread = task.file_name().to_str()?.parse().ok()?;
        let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
        Some((thread, text.split(' ').next()?.parse().ok()?))
    };
    tasks.filter_map(nanos).collect()
}

/// User and system time of all threads, fields 14 and 15 of `/proc/PID/stat`; none for a zombie.
fn cpu_ticks(stat: &str) -> Option<u64> {
    // The program's name is in parentheses and may itself hold spaces and parentheses.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    let state = fields.next()?;
    let user: u64 = fields.nth(10)?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    (state != "Z").then_some(user + system)
}

/// A line of `/proc/PID/status` that counts kibibytes.
fn status_bytes(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let number: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(number * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_behind_a_hostile_name() {
        let stat = "7 (a) R 1) S 1 7 7 0 -1 4194560 1 2 3 4 250 150 9 9 20 0 4 0 100 1 2";
        assert_eq!(cpu_ticks(stat), Some(400));
        assert_eq!(cpu_ticks(&stat.replace(") S", ") Z")), None);
        assert_eq!(cpu_ticks("7 (short) S 1"), None);
    }

    #[test]
    fn busy_time_leaves_out_idling_and_guests() {
        let stat = "cpu  1 2 4 1000 2000 8 16 32 64 128\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        assert_eq!(busy_ticks(stat), Some(63));
        assert_eq!(busy_ticks("intr 5"), None);
    }

    #[test]
    fn threads_that_ended_leave_ticks() {
        let sample = |cpu_seconds, threads: &[(u32, u64)]| Sample {
            cpu_seconds,
            threads: threads.iter().copied().collect(),
            ..Sample::default()
        };
        let begin = sample(1.0, &[(7, 100), (8, 200)]);
        let exact = sample(2.0, &[(7, 2_000_000_100), (8, 200), (9, 1_000_000_000)]);
        assert!((exact.cpu_seconds_since(&begin) - 3.0).abs() < 1e-9);
        assert!((sample(2.0, &[(7, 300)]).cpu_seconds_since(&begin) - 1.0).abs() < 1e-9);
        assert!((sample(2.0, &[]).cpu_seconds_since(&sample(1.0, &[])) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn memory_lines_are_found() {
        let status = "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!(status_bytes(status, "VmRSS:"), Some(1024 * 1024));
        assert_eq!(status_bytes(status, "VmHWM:"), Some(2 * 1024 * 1024));
        assert_eq!(status_bytes(status, "VmSwap:"), None);
    }

    #[test]
    fn this_process_uses_time_and_memory() {
        let mut watch = Watch::new(&[std::process::id()]).unwrap();
        watch.open();
        let busy: u64 = (0..30_000_000_u64).fold(1, |sum, n| std::hint::black_box(sum ^ n));
        watch.close();
        assert!(busy > 0 && watch.client_seconds() > 0.0);
        assert!(watch.other_seconds().is_some_and(|seconds| seconds >= 0.0));
        let server = &watch.servers()[0];
        assert!(server.rss_bytes > 0 && server.rss_peak_bytes >= server.rss_bytes / 2);
        assert!(!server.ended);
    }

    #[test]
    fn a_missing_process_is_an_error() {
        // Process ids end below 2^22 on Linux.
        assert!(Watch::new(&[u32::MAX]).is_err());
    }
}
