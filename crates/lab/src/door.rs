//! What it costs to prove that a host belongs to the cluster, and to encrypt what hosts say.
//!
//! Two clusters, one with `cluster.encrypt=auto` and one with `always`, take turns under the same
//! load on this machine. Beside them stands what the encryption alone takes.

use super::cluster::Cluster;
use super::load::cpu_us;
use super::page::{Table, fixed};
use bytes::BytesMut;
use quorate_bench::{Extent, Workload};
use quorate_cli::exit::Failure;
use quorate_cli::provision::keyspace;
use quorate_host::proof::{Purpose, Session, answer, ask, next};
use quorate_store::Secret;
use std::hint::black_box;
use std::io::{Write, stdout};
use std::time::{Duration, Instant};

/// How many clients keep the hosts busy.
const CLIENTS: usize = 32;
const KEYS: u64 = 10_000;
/// The sizes of values measured.
const VALUE_BYTES: [usize; 2] = [100, 4096];
/// How many proofs and how many bytes of records are timed.
const PROOFS: u32 = 200;
const SEALED_BYTES: usize = 32 << 20;

/// The arguments of `lab door`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: quorate-lab door --seconds 5")]
pub struct DoorArgs {
    /// How long each run takes, in seconds
    #[arg(long, default_value_t = 5, value_name = "SECONDS")]
    seconds: u64,
    /// How often the two clusters take turns
    #[arg(long, default_value_t = 3, value_name = "COUNT")]
    rounds: usize,
    /// Host i has ports PORT + 10 i + 1 to + 4; the second cluster's are 50 above
    #[arg(long, default_value_t = 7700, value_name = "PORT")]
    port_base: u16,
}

/// Runs `lab door`.
///
/// # Errors
/// A cluster did not start, or a run failed.
pub fn run(args: &DoorArgs) -> Result<(), Failure> {
    let (alone, operations) = (alone(), operations(args)?);
    write!(stdout(), "{}\n{}", alone.text(), operations.text())?;
    Ok(())
}

fn pair() -> (Session, Session) {
    let secret = Secret([7; 32]);
    let (asked, first) = ask(Purpose::Link, &secret);
    let answered = answer(Purpose::Link, &[secret], &first);
    let (_, second, here) = answered.expect("both have the same secret");
    (asked.answered(&second).expect("both have the same secret"), here)
}

/// Microseconds of each of so many repetitions.
fn micros(count: u32, mut step: impl FnMut()) -> f64 {
    let begun = Instant::now();
    (0..count).for_each(|_| step());
    begun.elapsed().as_secs_f64() * 1e6 / f64::from(count)
}

fn alone() -> Table {
    let mut table = Table::new(
        "door",
        "Proof and encryption alone, on one core, microseconds",
        &["what", "one side", "other side"],
    );
    let both = micros(PROOFS, || drop(black_box(pair())));
    table.push(vec![String::from("proof, both sides together"), fixed(both, 1), String::new()]);
    let (_, wrong) = ask(Purpose::Link, &Secret([8; 32]));
    let refused = micros(PROOFS, || {
        black_box(answer(Purpose::Link, &[Secret([7; 32])], &wrong).is_none());
    });
    table.push(vec![String::from("refusal of a wrong secret"), fixed(refused, 1), String::new()]);
    for bytes in [64, 256, 1024, 4096, 65_000] {
        let (mut there, mut here) = pair();
        let plain = vec![1; bytes];
        let count = u32::try_from(SEALED_BYTES / (bytes + 512)).expect("few records");
        let mut wire = BytesMut::new();
        let sealed = micros(count, || wire.extend_from_slice(&there.seal(&plain)));
        let mut into = BytesMut::new();
        let opened = micros(count, || {
            let record = next(&mut wire).expect("it was sealed");
            into.clear();
            here.open(&record, &mut into).expect("it was sealed by the other side");
        });
        let what = format!("a record of {bytes} bytes: seal, open");
        table.push(vec![what, fixed(sealed, 2), fixed(opened, 2)]);
    }
    table
}

fn operations(args: &DoorArgs) -> Result<Table, Failure> {
    let start = |base: u16, encrypt: &str| {
        Cluster::with(base, 3, vec![keyspace::standard()], &[format!("cluster.encrypt={encrypt}")])
    };
    let clusters = [start(args.port_base, "auto")?, start(args.port_base + 50, "always")?];
    let mut table = Table::new(
        "operations",
        "Processor time of all three hosts per operation, microseconds; medians",
        &["operation", "auto", "always", "more"],
    );
    for bytes in VALUE_BYTES {
        let mut is_loaded = [false; 2];
        for (name, workload) in [("put", Workload::Set), ("get", Workload::Get)] {
            let mut costs = [Vec::new(), Vec::new()];
            for _ in 0..args.rounds.max(1) {
                for (index, cluster) in clusters.iter().enumerate() {
                    let mut config = cluster.load(workload);
                    config.key_count = KEYS;
                    config.value_bytes = bytes;
                    config.connection_count = CLIENTS;
                    config.extent = Extent::Time(Duration::from_secs(args.seconds));
                    config.warm_up = Duration::from_secs(1);
                    config.load = !std::mem::replace(&mut is_loaded[index], true);
                    costs[index].push(cpu_us(&quorate_bench::run(&config)?));
                }
            }
            let [plain, sealed] = costs.map(median);
            let more = format!(
                "{} ({} %)",
                fixed(sealed - plain, 1),
                fixed((sealed / plain - 1.0) * 100.0, 0)
            );
            let what = format!("{name} of {bytes} bytes");
            table.push(vec![what, fixed(plain, 1), fixed(sealed, 1), more]);
        }
    }
    Ok(table)
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}
