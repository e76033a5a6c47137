//! What the threads that write to the disks of hosts say of themselves, asked at the end of a run.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::Deserialize;

use crate::report::longest::{DiskStep, LongGap};

/// How long an answer is waited for: a host that was killed does not hold a report up.
const ANSWER_MAX: Duration = Duration::from_secs(2);
/// The longest answer taken.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// What a host answers of itself, as far as it matters here.
#[derive(Debug, Deserialize)]
struct Status {
    host: u32,
    /// Its wall clock, in microseconds since 1970.
    time_us: u64,
    disk: Disk,
}

#[derive(Debug, Deserialize)]
struct Disk {
    slow_steps: Vec<Slow>,
}

/// A slow step, in microseconds.
#[derive(Debug, Deserialize)]
struct Slow {
    step: String,
    at_us: u64,
    us: u64,
    bytes: u64,
}

/// Microseconds since 1970 by the wall clock.
pub(crate) fn wall_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// Asks hosts, by their HTTP doors, for the slow steps of their disks, and lays those beside the
/// gaps. Returns why hosts could not be asked.
pub(crate) fn join(hosts: &[String], gaps: &mut [LongGap]) -> BTreeMap<String, String> {
    let mut failures = BTreeMap::new();
    for address in hosts {
        match ask(address) {
            Ok((status, ahead_us)) => lay(&status, ahead_us, gaps),
            Err(why) => drop(failures.insert(address.clone(), why)),
        }
    }
    for gap in gaps {
        gap.disks.sort_by(|one, other| one.at_ms.total_cmp(&other.at_ms));
    }
    failures
}

/// What a host says, and how far its wall clock is ahead of this one.
fn ask(address: &str) -> Result<(Status, i64), String> {
    let before = wall_us();
    let answer = status_of(address).map_err(|error| error.to_string())?;
    let after = wall_us();
    let status: Status = serde_json::from_str(&answer)
        .map_err(|error| format!("the answer does not tell of slow steps: {error}"))?;
    let ahead_us = ahead(before, after, status.time_us);
    Ok((status, ahead_us))
}

/// The body of the answer to one request over one connection, which ends it.
fn status_of(address: &str) -> io::Result<String> {
    let deadline = Instant::now() + ANSWER_MAX;
    let unknown = || io::Error::new(ErrorKind::InvalidInput, "the name has no address");
    let first = address.to_socket_addrs()?.next().ok_or_else(unknown)?;
    let mut stream = TcpStream::connect_timeout(&first, ANSWER_MAX)?;
    stream.set_write_timeout(Some(ANSWER_MAX))?;
    // Hosts answer to their addresses, and may not know every name that leads to them.
    let head = format!("GET /status HTTP/1.1\r\nHost: {first}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    let (mut answer, mut piece) = (Vec::new(), [0; 16 * 1024]);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let count = stream.read(&mut piece)?;
        if count == 0 {
            break;
        }
        answer.extend_from_slice(&piece[..count]);
        if answer.len() > ANSWER_BYTES_MAX {
            return Err(io::Error::new(ErrorKind::InvalidData, "the answer is too long"));
        }
    }
    let answer = String::from_utf8(answer).map_err(|_| io::Error::from(ErrorKind::InvalidData))?;
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
    body.ok_or_else(|| ErrorKind::InvalidData.into())
}

/// How far a clock is ahead that showed this at some time between both: not at all, if that may be.
fn ahead(before: u64, after: u64, theirs: u64) -> i64 {
    if (before..=after).contains(&theirs) {
        return 0;
    }
    signed(theirs) - signed(before.midpoint(after))
}

fn signed(us: u64) -> i64 {
    i64::try_from(us).unwrap_or(i64::MAX)
}

/// Lays the steps of a host beside the gaps that they overlap.
fn lay(status: &Status, ahead_us: i64, gaps: &mut [LongGap]) {
    for gap in gaps {
        let overlapping = status.disk.slow_steps.iter().filter_map(|slow| {
            let at_us = signed(slow.at_us).saturating_sub(ahead_us);
            let at_ms = at_us.saturating_sub(signed(gap.at_us)) as f64 / 1e3;
            let ms = slow.us as f64 / 1e3;
            let (host, step, bytes) = (status.host, slow.step.clone(), slow.bytes);
            let is_within = at_ms < gap.ms && at_ms + ms > 0.0;
            is_within.then_some(DiskStep { host, step, at_ms, ms, bytes })
        });
        gap.disks.extend(overlapping);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::record::Class;

    #[test]
    fn steps_stand_beside_the_gaps_that_they_overlap() {
        let gap = |at_us, ms| LongGap {
            class: Class::Write,
            at_seconds: 0.0,
            at_us,
            ms,
            disks: Vec::new(),
        };
        let mut gaps = [gap(1_000_000, 50.0), gap(2_000_000, 10.0)];
        let slow = |at_us, us| Slow { step: String::from("sync"), at_us, us, bytes: 7 };
        let slow_steps = vec![
            slow(990_000, 10_000),
            slow(990_000, 10_001),
            slow(1_049_999, 5000),
            slow(1_050_000, 5000),
            slow(500_000, 1_600_000),
        ];
        let mut status = Status { host: 3, time_us: 0, disk: Disk { slow_steps } };
        lay(&status, 0, &mut gaps);
        let begun = |gap: &LongGap| -> Vec<i64> {
            gap.disks.iter().map(|step| (step.at_ms * 1e3).round() as i64).collect()
        };
        assert_eq!(begun(&gaps[0]), [-10_000, 49_999, -500_000]);
        assert_eq!(begun(&gaps[1]), [-1_500_000]);
        assert_eq!((gaps[1].disks[0].host, gaps[1].disks[0].bytes), (3, 7));
        // Of a host whose clock is a second ahead.
        status.disk.slow_steps = vec![slow(3_005_000, 1000)];
        lay(&status, 1_000_000, &mut gaps);
        assert_eq!(begun(&gaps[1]), [-1_500_000, 5000]);
    }

    #[test]
    fn clocks_that_may_agree_are_taken_to() {
        assert_eq!(ahead(100, 200, 100), 0);
        assert_eq!(ahead(100, 200, 200), 0);
        assert_eq!(ahead(100, 200, 1150), 1000);
        assert_eq!(ahead(1100, 1200, 150), -1000);
    }
}
