//! What must hold of any cluster, whatever its engine and its disks.

use super::*;
use quorate_protocols::causal;

fn load(hosts: usize) -> Load {
    Load { kept: Kept::default(), hosts, network_us: 20, warm_up_ms: 5, measured_ms: 20, seed: 1 }
}

const COSTS: Costs = Costs { request_ns: 20_000, frame_ns: 10_000, byte_ns: 0 };

/// What hosts do for so many clients for each three of them.
fn served(load: &Load, costs: Costs, per_three: usize, read_percent: u64) -> Served {
    let mut clients = Registers::new(load, per_three, read_percent, 100);
    serve(load, costs, &mut clients).expect("nothing fails")
}

#[test]
fn a_busy_cluster_does_what_its_cores_can() {
    let run = || served(&load(3), COSTS, 24, 100);
    let served = run();
    assert_eq!(served.refused, 0);
    assert!(served.busy > 0.9, "{served:?}");
    let work = served.requests * COSTS.request_ns + served.frames * COSTS.frame_ns;
    let most = work as f64 / served.requests as f64;
    let bound = 3e9 / most;
    assert!((served.throughput / bound - 1.0).abs() < 0.1, "{served:?}, bound {bound}");
    assert_eq!(run(), served, "a seed decides everything");
}

#[test]
fn an_update_takes_more_frames_than_a_get() {
    let frames = |read_percent| {
        let served = served(&load(3), COSTS, 24, read_percent);
        served.frames as f64 / served.requests as f64
    };
    let (gets, puts) = (frames(100), frames(0));
    assert!(gets >= 1.5 && puts > gets + 1.0, "{gets} and {puts} frames");
}

#[test]
fn more_hosts_do_more() {
    let of = |hosts| served(&load(hosts), COSTS, 24, 95).throughput;
    let (six, twelve) = (of(6), of(12));
    assert!(twelve > six * 1.7, "{six} and {twelve} operations per second");
}

#[test]
fn any_engine_is_served_with_as_many_replicas_and_as_durably_as_it_is_set() {
    // What two clients write at the same time stands side by side there, unless it is told not to.
    let newest = &[("siblings", "newest")];
    let engines: [(_, &[_]); 2] = [(&linearizable::ENGINE, &[]), (&causal::ENGINE, newest)];
    for (engine, settings) in engines {
        for durability in ["memory", "periodic=5ms", "sync"] {
            for replicas in [1, 3, 5] {
                let durability = durability.parse().expect("a level");
                let kept = Kept { engine, replicas, durability, settings, ..Kept::default() };
                let load = Load { kept, ..load(6) };
                let served = served(&load, COSTS, 3, 50);
                let what = (engine.name, durability, replicas);
                assert_eq!(served.refused, 0, "{what:?}");
                assert!(served.operations > 100, "{what:?}: {served:?}");
            }
        }
    }
}

/// Who must sync waits for the disk, and who need not does not.
#[test]
fn a_put_takes_as_long_as_its_disk_if_it_must_be_there() {
    let mean_ms = |durability: &str, read_percent| {
        let durability = durability.parse().expect("a level");
        let sync = Distribution::Constant { us: 4000 };
        let kept = Kept { durability, sync, ..Kept::default() };
        let load = Load { kept, measured_ms: 100, ..load(3) };
        served(&load, COSTS, 3, read_percent).mean_ns / 1e6
    };
    assert!(mean_ms("sync", 0) >= 4.0, "{}", mean_ms("sync", 0));
    for (durability, read_percent) in [("sync", 100), ("memory", 0), ("periodic=50ms", 0)] {
        let mean = mean_ms(durability, read_percent);
        assert!(mean < 1.0, "{durability}, {read_percent} % gets: {mean} ms");
    }
}

/// A link of little bandwidth makes hosts wait, not work.
#[test]
fn what_a_link_brings_late_is_handled_late() {
    let of = |byte_ns| served(&load(3), Costs { byte_ns, ..COSTS }, 3, 0);
    let (fast, slow) = (of(0), of(2_000));
    assert!(slow.mean_ns > fast.mean_ns + 2.0 * 50.0 * 2_000.0, "{slow:?}, {fast:?}");
    assert!(slow.busy < fast.busy, "{slow:?}, {fast:?}");
}
