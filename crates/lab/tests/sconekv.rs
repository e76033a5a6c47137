//! The SCONEKV measurements: simulated clients commit and abort as they should, a seed repeats, and
//! on real hosts no transaction that only reads is aborted. Nothing is said of times.

#[path = "../../server/tests/it/support/ports.rs"]
mod ports;

use quorate_bench::{Sizes, Workload};
use quorate_lab::sconekv::clients::Transactions;
use quorate_lab::sconekv::terminals::Terminals;
use quorate_lab::service::{Costs, Kept, Load, Served, serve};
use quorate_protocols::serializable;
use std::path::Path;
use std::process::Command;

const COSTS: Costs = Costs { request_ns: 5_000, frame_ns: 5_000, byte_ns: 8 };

/// What six simulated hosts with two groups do for so many clients.
fn simulated(workload: Workload, clients: usize, keys: u64) -> (Transactions, Served) {
    let kept = Kept { engine: &serializable::ENGINE, ..Kept::default() };
    let load = Load { kept, hosts: 6, network_us: 50, warm_up_ms: 2, measured_ms: 60, seed: 1 };
    let mut asking = Transactions::new(workload, clients, keys, 1);
    let served = serve(&load, COSTS, &mut asking).expect("nothing fails");
    (asking, served)
}

#[test]
fn few_keys_that_are_written_make_aborts_and_reads_alone_make_none() {
    let (few, served) = simulated(Workload::A, 8, 30);
    assert!(few.ended.committed > 10 && few.ended.aborted > 10, "{:?}", few.ended);
    assert_eq!(few.ended.failed, 0);
    assert!(served.refused >= few.ended.aborted, "an abort is a refusal");
    let (again, same) = simulated(Workload::A, 8, 30);
    assert_eq!((again.ended, same), (few.ended, served), "a seed decides everything");
    let (reads, _) = simulated(Workload::C, 8, 10);
    assert!(reads.ended.committed > 50, "{:?}", reads.ended);
    assert_eq!((reads.ended.aborted, reads.ended.failed), (0, 0));
}

#[test]
fn terminals_of_tpcc_are_served_by_simulated_hosts() {
    let run = || {
        let kept = Kept { engine: &serializable::ENGINE, ..Kept::default() };
        let load = Load { kept, hosts: 6, network_us: 50, warm_up_ms: 2, measured_ms: 60, seed: 1 };
        let mut asking = Terminals::new(Sizes { warehouses: 1, scale: 100 }, 8, 1);
        serve(&load, COSTS, &mut asking).expect("nothing fails");
        asking.ended
    };
    let ended = run();
    assert!(ended.committed > 10 && ended.aborted > 0, "{ended:?}");
    assert_eq!((ended.failed, ended.times.len() as u64), (0, ended.committed), "{ended:?}");
    assert!(ended.times.iter().all(|time| *time <= 63_000_000), "none includes the load");
    assert_eq!(run(), ended, "a seed decides everything");
}

/// The rows of a table without its head, cell by cell.
fn rows(path: &Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(path).expect("the table is there");
    text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

#[test]
fn reads_alone_are_never_aborted_on_real_hosts() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let output = place.path().join("sconekv");
    let (text, base) = (output.display().to_string(), ports::base().to_string());
    let run = ["sconekv", "--quick", "--figure", "8", "--clients", "4", "--port-base", &base];
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorate-lab"));
    let said = command.args(run).args(["--output", &text]).output().expect("the binary starts");
    assert_eq!(said.status.code(), Some(0), "{said:?}");
    let rows = rows(&output.join("fig8.csv"));
    let names: Vec<&str> = rows.iter().map(|row| &row[0][..]).collect();
    assert_eq!(names, ["C one by one", "C in one request", "C logged"]);
    for row in &rows {
        // Committed, aborted and failed.
        assert_ne!(row[5], "0", "{row:?}");
        assert_eq!((&row[6][..], &row[7][..]), ("0", "0"), "{row:?}");
    }
    let page = std::fs::read_to_string(output.join("fig8.md")).expect("written");
    assert!(page.contains("sconekv --figure 8 --quick --clients 4` on one machine"), "{page}");
    let index = std::fs::read_to_string(output.join("README.md")).expect("written");
    assert!(index.contains("(fig8.md)") && index.contains("## How it is counted"), "{index}");
}
