//! What a request and a frame cost on a real host, for the simulator.
//!
//! Real hosts tell processor time per operation, the simulator how many frames an operation takes
//! on three hosts. Gets and puts take different numbers of frames, so the two measurements give two
//! equations for two costs.

use super::cats::Size;
use super::load::cpu_us;
use crate::cluster::Cluster;
use crate::service::{Costs, Kept, Load, Registers, serve};
use quorate_bench::{Extent, Workload};
use quorate_cli::exit::Failure;

/// How many clients keep three real hosts busy.
const CLIENTS: usize = 32;
/// The way between two machines of one switch, in microseconds.
pub const NETWORK_US: u64 = 50;

/// One kind of operation: what was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kind {
    /// Processor time of all hosts per operation, in microseconds, on real hosts.
    pub cpu_us: f64,
    /// Frames that hosts take per operation, in the simulator.
    pub frames: f64,
}

/// What the costs rest on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    /// Reads only.
    pub gets: Kind,
    /// Updates only.
    pub puts: Kind,
    /// What comes of it.
    pub costs: Costs,
    /// Whether the two equations had no sensible solution, so that one cost stands for both.
    pub is_flat: bool,
}

/// Measures costs.
///
/// # Errors
/// The cluster did not start, or a run failed.
pub fn calibrate(port_base: u16, size: &Size) -> Result<Calibration, Failure> {
    let cluster = Cluster::start(port_base, 3, &["default=linearizable"])?;
    let mut is_loaded = false;
    let mut measure = |workload: Workload, read_percent: u64| -> Result<Kind, Failure> {
        let mut config = cluster.load(workload);
        config.key_count = size.keys;
        config.connection_count = CLIENTS;
        config.extent = Extent::Time(size.point);
        config.warm_up = size.warm_up;
        config.load = !std::mem::replace(&mut is_loaded, true);
        let report = quorate_bench::run(&config)?;
        Ok(Kind { cpu_us: cpu_us(&report), frames: frames(read_percent)? })
    };
    let gets = measure(Workload::Get, 100)?;
    let puts = measure(Workload::Set, 0)?;
    Ok(solve(gets, puts))
}

/// Frames per operation that three simulated hosts take.
///
/// # Errors
/// The simulator failed.
pub fn frames(read_percent: u64) -> Result<f64, Failure> {
    let load = Load {
        kept: Kept::default(),
        hosts: 3,
        network_us: NETWORK_US,
        warm_up_ms: 5,
        measured_ms: 20,
        seed: 1,
    };
    // Any costs will do: they decide how fast operations are, not what they take.
    let costs = Costs { request_ns: 20_000, frame_ns: 10_000, byte_ns: 0 };
    let mut clients = Registers::new(&load, CLIENTS, read_percent, 1000);
    let served =
        serve(&load, costs, &mut clients).map_err(|fatal| Failure::failed(fatal.to_string()))?;
    Ok(served.frames as f64 / served.requests.max(1) as f64)
}

fn solve(gets: Kind, puts: Kind) -> Calibration {
    let frame_us = (puts.cpu_us - gets.cpu_us) / (puts.frames - gets.frames);
    let request_us = gets.cpu_us - gets.frames * frame_us;
    let is_flat = !(frame_us > 0.0 && request_us > 0.0 && frame_us.is_finite());
    let (request_us, frame_us) = match is_flat {
        true => {
            let each = (gets.cpu_us + puts.cpu_us) / (2.0 + gets.frames + puts.frames);
            (each, each)
        }
        false => (request_us, frame_us),
    };
    let nanos = |micros: f64| ((micros * 1e3) as u64).max(1);
    let costs = Costs { request_ns: nanos(request_us), frame_ns: nanos(frame_us), byte_ns: 0 };
    Calibration { gets, puts, costs, is_flat }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_kinds_of_operations_give_two_costs() {
        let kind = |cpu_us, frames| Kind { cpu_us, frames };
        let both = solve(kind(20.0, 2.0), kind(32.0, 6.0));
        assert_eq!(both.costs, Costs { request_ns: 14_000, frame_ns: 3_000, byte_ns: 0 });
        assert!(!both.is_flat);
        let noise = solve(kind(40.0, 2.0), kind(30.0, 6.0));
        assert_eq!(noise.costs, Costs { request_ns: 7_000, frame_ns: 7_000, byte_ns: 0 });
        assert!(noise.is_flat);
    }
}
