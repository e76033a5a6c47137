//! Turns, and the medians of what they took.

use crate::record::{Kind, RECORD_BYTES, Source, Subject};
use crate::{bare, ours, raft};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Bytes written before a log counts as warm: more than all its files together, twice.
const WARM_BYTES: usize = 768 << 20;
/// Records of a group while a log is made warm.
const WARM_RECORDS: usize = 256;

/// What the columns of the table are.
const HEADINGS: [&str; 11] = [
    "files",
    "records",
    "log",
    "groups/s",
    "p50",
    "p99",
    "longest",
    "longest of all",
    "CPU per record",
    "disk bytes per byte",
    "opening",
];

/// What is measured how often.
pub struct Plan {
    /// How long a turn is.
    pub turn: Duration,
    /// How many turns each log has with each size.
    pub turns: usize,
    /// Where the logs lie.
    pub directory: PathBuf,
}

/// What one turn took.
#[derive(Clone, Copy)]
struct Turn {
    groups_per_second: f64,
    p50_us: f64,
    p99_us: f64,
    longest_ms: f64,
    cpu_us_per_record: f64,
    disk_per_payload: f64,
    /// Of opening, if that belongs to it; what it writes does then too.
    open_ms: f64,
}

/// User and system time of the process so far.
fn cpu() -> Duration {
    let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let seconds = u64::try_from(cpu.tv_sec).expect("time passes");
    Duration::new(seconds, u32::try_from(cpu.tv_nsec).expect("less than a second"))
}

/// Bytes that the device below a directory was told to write so far, by everybody, after all that
/// was left to be written. What `/proc/self/io` counts is no measure: there a page that is written
/// to counts with all of its folio, which may have 2 MiB.
fn disk_bytes(path: &Path) -> u64 {
    let directory = File::open(path).expect("it is there");
    let device = directory.metadata().expect("readable").dev();
    rustix::fs::syncfs(directory).expect("the disk takes it");
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let counts = fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/stat"));
    let counts = counts.expect("the directory is on a block device");
    let sectors = counts.split_whitespace().nth(6).and_then(|text| text.parse::<u64>().ok());
    sectors.expect("the seventh is the sectors written") * 512
}

/// Measures all, and prints it.
pub fn run(plan: &Plan, sizes: &[usize]) {
    let [quorate, prefilled, recycling, bare] = [
        Kind { name: "quorate", open: ours::begin },
        Kind { name: "raft-engine, prefilled", open: raft::prefilled },
        Kind { name: "raft-engine", open: raft::recycling },
        Kind { name: "bare", open: bare::open },
    ];
    println!("{}", machine());
    let mut table = Vec::new();
    for &records in sizes {
        let kinds = [&quorate, &prefilled, &recycling];
        let turns = cold(plan, &kinds, records);
        table.extend(rows("cold", &kinds, records, &turns));
    }
    // Once all its files were used, nothing of the zeros is left in either.
    let kinds = [&quorate, &prefilled, &bare];
    let places: Vec<TempDir> = kinds.iter().map(|_| place(plan)).collect();
    let opened = kinds.iter().zip(&places).map(|(kind, place)| (kind.open)(place.path()));
    let mut logs: Vec<_> = opened.map(|log| (log, 1)).collect();
    for (log, next) in &mut logs {
        let mut source = Source::new(*next, WARM_RECORDS);
        (0..WARM_BYTES / RECORD_BYTES / WARM_RECORDS).for_each(|_| step(&mut **log, &mut source));
        log.settle();
        *next = source.next();
    }
    for &records in sizes {
        let turns = warm(plan, &kinds, &mut logs, records);
        table.extend(rows("warm", &kinds, records, &turns));
    }
    for (kind, place) in kinds.iter().zip(&places) {
        println!("{}: {} MiB on disk at the end", kind.name, space(place.path()) >> 20);
    }
    println!("{}", machine());
    println!("\nMedians of {} turns of {} s:\n", plan.turns, plan.turn.as_secs());
    println!("| {} |", HEADINGS.join(" | "));
    println!("|{}", "---|".repeat(HEADINGS.len()));
    table.iter().for_each(|row| println!("{row}"));
}

/// Each turn has a new directory.
fn cold(plan: &Plan, kinds: &[&Kind], records: usize) -> Vec<Vec<Turn>> {
    let mut turns = vec![Vec::new(); kinds.len()];
    for number in 0..plan.turns {
        for at in order(kinds.len(), number) {
            let place = place(plan);
            let (before, began) = (disk_bytes(place.path()), Instant::now());
            let mut log = (kinds[at].open)(place.path());
            let open_ms = began.elapsed().as_secs_f64() * 1e3;
            let mut source = Source::new(1, records);
            let turn = turn(&mut *log, &mut source, place.path(), records, plan.turn, before);
            let turn = Turn { open_ms, ..turn };
            show("cold", kinds[at], records, &turn);
            turns[at].push(turn);
        }
    }
    turns
}

/// All turns go on in the same directories.
fn warm(
    plan: &Plan,
    kinds: &[&Kind],
    logs: &mut [(Box<dyn Subject>, u64)],
    records: usize,
) -> Vec<Vec<Turn>> {
    let mut turns = vec![Vec::new(); kinds.len()];
    for number in 0..plan.turns {
        for at in order(kinds.len(), number) {
            let before = disk_bytes(&plan.directory);
            let (log, next) = &mut logs[at];
            let mut source = Source::new(*next, records);
            let turn = turn(&mut **log, &mut source, &plan.directory, records, plan.turn, before);
            *next = source.next();
            show("warm", kinds[at], records, &turn);
            turns[at].push(turn);
        }
    }
    turns
}

/// Who begins changes from turn to turn.
fn order(count: usize, number: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |at| (at + number) % count)
}

fn step(log: &mut dyn Subject, source: &mut Source) {
    let (first, group, give_up) = source.group();
    log.write(first, group, give_up);
}

/// Writes groups for a while. What the disk had before all that counts was `disk_before`.
fn turn(
    log: &mut dyn Subject,
    source: &mut Source,
    path: &Path,
    records: usize,
    length: Duration,
    disk_before: u64,
) -> Turn {
    let mut took = Vec::new();
    let (cpu_before, began) = (cpu(), Instant::now());
    while began.elapsed() < length {
        let (first, group, give_up) = source.group();
        let at = Instant::now();
        log.write(first, group, give_up);
        took.push(at.elapsed());
    }
    let elapsed = began.elapsed().as_secs_f64();
    log.settle();
    let used = (cpu() - cpu_before).as_secs_f64();
    let disk = disk_bytes(path) - disk_before;
    let count = took.len();
    assert!(count > 0, "a turn has a group");
    took.sort_unstable();
    let at = |part: f64| took[((count - 1) as f64 * part) as usize].as_secs_f64();
    let written = (count * records) as f64;
    Turn {
        groups_per_second: count as f64 / elapsed,
        p50_us: at(0.5) * 1e6,
        p99_us: at(0.99) * 1e6,
        longest_ms: at(1.0) * 1e3,
        cpu_us_per_record: used * 1e6 / written,
        disk_per_payload: disk as f64 / (written * RECORD_BYTES as f64),
        open_ms: 0.0,
    }
}

fn show(files: &str, kind: &Kind, records: usize, turn: &Turn) {
    println!(
        "{files} {records:>3} {:<23} {:>7.0}/s p50 {:>6.0} us p99 {:>7.0} us longest {:>6.1} ms \
         cpu {:>6.2} us/record disk {:>5.2} B/B open {:>5.0} ms",
        kind.name,
        turn.groups_per_second,
        turn.p50_us,
        turn.p99_us,
        turn.longest_ms,
        turn.cpu_us_per_record,
        turn.disk_per_payload,
        turn.open_ms,
    );
}

/// Rows of the table: medians, and of the longest also the longest of all.
fn rows(files: &str, kinds: &[&Kind], records: usize, turns: &[Vec<Turn>]) -> Vec<String> {
    let row = |kind: &&Kind, turns: &Vec<Turn>| {
        let of = |value: fn(&Turn) -> f64| median(turns.iter().map(value).collect());
        let longest = turns.iter().map(|turn| turn.longest_ms).fold(0.0, f64::max);
        format!(
            "| {files} | {records} | {} | {:.0} | {:.0} µs | {:.0} µs | {:.1} ms | {longest:.0} ms \
             | {:.2} µs | {:.2} | {:.0} ms |",
            kind.name,
            of(|turn| turn.groups_per_second),
            of(|turn| turn.p50_us),
            of(|turn| turn.p99_us),
            of(|turn| turn.longest_ms),
            of(|turn| turn.cpu_us_per_record),
            of(|turn| turn.disk_per_payload),
            of(|turn| turn.open_ms),
        )
    };
    kinds.iter().zip(turns).map(|(kind, turns)| row(kind, turns)).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn place(plan: &Plan) -> TempDir {
    TempDir::new_in(&plan.directory).expect("the directory takes it")
}

/// Bytes of blocks below a directory.
fn space(path: &Path) -> u64 {
    let entries = fs::read_dir(path).expect("it is there").map(|entry| entry.expect("readable"));
    let of = |entry: fs::DirEntry| {
        let metadata = entry.metadata().expect("readable");
        if metadata.is_dir() { space(&entry.path()) } else { metadata.blocks() * 512 }
    };
    entries.map(of).sum()
}

fn machine() -> String {
    let load = fs::read_to_string("/proc/loadavg").expect("Linux tells it");
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{cores} cores, load {}", load.trim())
}
