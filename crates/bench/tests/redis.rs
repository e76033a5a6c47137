//! Measurements of a real redis-server, where one is installed.

use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use quorate_bench::{CompareConfig, Config, Extent, Target, Workload, compare};

/// Two ports that nobody uses.
fn free_ports() -> [u16; 2] {
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
    listeners.map(|listener| listener.local_addr().expect("its address").port())
}

#[test]
fn two_redis_servers_are_compared_in_turn() {
    let version = Command::new("redis-server").arg("--version").stdout(Stdio::null()).status();
    if version.is_err() {
        println!("skipped: redis-server is not installed, so nothing was compared");
        return;
    }
    let ports = free_ports();
    let redis = |port: u16| Target::Redis { program: "redis-server".to_owned(), port };
    let base = Config {
        key_count: 1000,
        connection_count: 8,
        extent: Extent::Operations(2000),
        warm_up: Duration::ZERO,
        ..Config::new(Vec::new(), Workload::Set)
    };
    let config = CompareConfig {
        left: redis(ports[0]),
        right: redis(ports[1]),
        first_endpoint_only: false,
        workloads: vec![Workload::Set, Workload::D, Workload::F],
        distribution: None,
        pipeline_depths: vec![1, 16],
        round_count: 2,
        base,
    };
    let comparison = compare(&config).unwrap();
    assert_eq!(comparison.rows.len(), 6);
    for row in &comparison.rows {
        for side in [&row.left, &row.right] {
            assert_eq!((side.throughputs.len(), side.errors), (2, 0), "{row:?}");
            assert!(side.throughput_min <= side.throughput, "{side:?}");
            assert!(side.throughput <= side.throughput_max, "{side:?}");
            assert!(side.rss_peak_bytes.is_some_and(|bytes| bytes > 1 << 20), "{side:?}");
        }
        assert!(row.ratio_min <= row.ratio_max && row.ratio_min > 0.0, "{row:?}");
    }
    let text = comparison.to_string();
    assert!(text.contains("set × 16: ratio"), "{text}");
    for port in ports {
        let refused = TcpStream::connect(("127.0.0.1", port)).is_err();
        assert!(refused, "the server on port {port} was stopped");
    }
}
