//! Whole measurements against a toy server in this process.

#![allow(clippy::unwrap_used)] // A test that cannot go on should panic where it stands.

mod toy;

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use quorate_bench::{BenchError, Config, Extent, Pace, Report, Stop, Workload, run};
use toy::{Act, Toy};

/// A short run of this many operations over a hundred small keys.
fn config(toys: &[&Arc<Toy>], workload: Workload, operations: u64) -> Config {
    Config {
        key_count: 100,
        value_bytes: 100,
        connection_count: 4,
        extent: Extent::Operations(operations),
        warm_up: Duration::ZERO,
        interval: Duration::from_millis(5),
        ..Config::new(toys.iter().map(|toy| toy.address).collect(), workload)
    }
}

#[test]
fn every_workload_runs_to_its_end() {
    for workload in [
        Workload::A,
        Workload::B,
        Workload::C,
        Workload::D,
        Workload::F,
        Workload::Set,
        Workload::Get,
    ] {
        for pipeline in [1, 7] {
            let toy = Toy::start(|_| Act::Serve);
            let config = Config { pipeline_depth: pipeline, ..config(&[&toy], workload, 2000) };
            let report = run(&config).unwrap();
            assert_eq!(report.operations, 2000, "{workload} × {pipeline}");
            assert_eq!(report.reads.operations + report.writes.operations, 2000);
            assert_eq!((report.error_count(), report.nils, report.unanswered), (0, 0, 0));
            assert_eq!(report.load.unwrap().keys, 100);
            assert_eq!(toy.log.lock().unwrap().len(), 2000);
            assert_eq!(toy.connection_count.load(Ordering::Relaxed), 8, "load, then run");
            let values = toy.values.lock().unwrap();
            assert!(values.iter().all(|(key, value)| (key.len(), value.len()) == (20, 100)));
            assert_eq!(values.len() > 100, workload == Workload::D, "only inserts add keys");
            let counted: u64 = report.intervals.iter().map(|one| one.reads + one.writes).sum();
            assert_eq!(counted, 2000, "the time line holds every operation");
            for class in [&report.reads, &report.writes] {
                assert!(class.p50_us <= class.p99_us && class.p99_us <= class.max_us);
                assert_eq!(class.curve.is_empty(), class.operations == 0);
            }
        }
    }
}

#[test]
fn a_write_of_workload_f_follows_the_read_of_its_key() {
    let toy = Toy::start(|_| Act::Serve);
    let config = Config { connection_count: 1, ..config(&[&toy], Workload::F, 1000) };
    let report = run(&config).unwrap();
    let log = toy.log.lock().unwrap();
    let pairs = log.windows(2).filter(|pair| pair[1].0 == "SET");
    assert!(pairs.clone().all(|pair| pair[0].0 == "GET" && pair[0].1 == pair[1].1));
    assert_eq!(pairs.count() as u64, report.writes.operations);
    // Of three operations that begin, one half-read, one read and its write: a third writes.
    assert!((250..420).contains(&report.writes.operations), "{}", report.writes.operations);
}

#[test]
fn failures_are_counted_by_kind() {
    let toy = Toy::start(|number| match number {
        10 => Act::Say("-NOQUORUM nothing was changed\r\n"),
        20 | 30 => Act::Say("-ERR no\r\n"),
        40 => Act::Say(":1\r\n"),
        50 => Act::Say("$-1\r\n"),
        _ => Act::Serve,
    });
    let report = run(&config(&[&toy], Workload::C, 500)).unwrap();
    let count = |kind: &str| report.errors.get(kind).copied().unwrap_or(0);
    assert_eq!((count("NOQUORUM"), count("ERR"), count("UNEXPECTED")), (1, 2, 1));
    assert_eq!((report.nils, report.operations), (1, 496));
    let text = report.to_string();
    assert!(text.contains("ERR 2, NOQUORUM 1, UNEXPECTED 1"), "{text}");
}

#[test]
fn missing_keys_are_nils() {
    let toy = Toy::start(|_| Act::Serve);
    let report = run(&Config { load: false, ..config(&[&toy], Workload::Get, 300) }).unwrap();
    assert_eq!((report.nils, report.operations, report.load), (300, 300, None));
}

#[test]
fn a_keyspace_is_selected_before_anything_else() {
    let toy = Toy::start(|_| Act::Serve);
    let known = Config { keyspace: Some("known".to_owned()), ..config(&[&toy], Workload::A, 100) };
    assert_eq!(run(&known).unwrap().operations, 100);
    let unknown = Config { keyspace: Some("other".to_owned()), ..known };
    let error = run(&unknown).unwrap_err().to_string();
    assert!(error.contains("other") && error.contains("ERR"), "{error}");
    assert_eq!(toy.log.lock().unwrap().len(), 100, "nothing went to the wrong keyspace");
}

/// A toy that closes both its connections soon, and one that waits for that, so that neither a
/// fast nor a slow machine ends the run before.
fn broken_and_sound() -> [Arc<Toy>; 2] {
    let closed_count = Arc::new(AtomicU64::new(0));
    let closed = Arc::clone(&closed_count);
    let broken = Toy::start(move |number| {
        if number < 10 {
            return Act::Serve;
        }
        closed.fetch_add(1, Ordering::Relaxed);
        Act::Close
    });
    let sound = Toy::start(move |number| {
        while number >= 10 && closed_count.load(Ordering::Relaxed) < 2 {
            thread::yield_now();
        }
        Act::Serve
    });
    [broken, sound]
}

#[test]
fn a_connection_that_breaks_goes_on_elsewhere() {
    let [broken, sound] = broken_and_sound();
    let config =
        Config { reconnect: true, load: false, ..config(&[&broken, &sound], Workload::Set, 2000) };
    let report = run(&config).unwrap();
    assert_eq!(report.broken_connections, 2, "the two connections to the broken one");
    assert_eq!(report.errors.get("CONNECTION"), Some(&2), "each lost one operation");
    assert_eq!(report.operations, 1998);
    assert_eq!(sound.connection_count.load(Ordering::Relaxed), 4);
    assert!(report.gaps.stayed_ms.is_some() && report.gaps.reconnected_ms.is_some());
}

#[test]
fn without_reconnecting_the_others_go_on() {
    let [broken, sound] = broken_and_sound();
    let config = Config { load: false, ..config(&[&broken, &sound], Workload::Set, 2000) };
    let report = run(&config).unwrap();
    assert_eq!((report.operations, report.broken_connections), (1998, 2));
    let alone = Config { endpoints: vec![broken.address], ..config };
    let error = run(&alone).unwrap_err();
    assert!(matches!(error, BenchError::Disconnected { .. }), "{error}");
}

#[test]
fn a_connection_survives_endpoints_that_refuse() {
    let refusing = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let toy = Toy::start(|number| if number == 5 { Act::Close } else { Act::Serve });
    let mut config = Config {
        reconnect: true,
        load: false,
        connection_count: 1,
        ..config(&[&toy], Workload::Set, 100)
    };
    config.endpoints.extend([refusing, refusing]);
    let report = run(&config).unwrap();
    assert_eq!((report.operations, report.broken_connections), (99, 1));
    assert_eq!((report.gaps.stayed_ms, report.gaps.reconnected_ms.is_some()), (None, true));
}

#[test]
fn errors_name_what_is_wrong() {
    let refusing = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = Config { endpoints: vec![refusing], ..config(&[], Workload::A, 1) };
    assert!(
        matches!(run(&nobody), Err(BenchError::Connect { address, .. }) if address == refusing)
    );

    let web = Toy::start(|_| Act::Say("HTTP/1.1 400 Bad Request\r\n"));
    let outcome = run(&Config { load: false, ..config(&[&web], Workload::A, 10) });
    assert!(matches!(outcome, Err(BenchError::Protocol { .. })), "{outcome:?}");

    let failing = Toy::start(|_| Act::Say("-LOADING not yet\r\n"));
    let outcome = run(&config(&[&failing], Workload::A, 10));
    let Err(BenchError::NothingSucceeded { errors: 10, first }) = &outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(first, "LOADING");

    let config = Config { server_pids: vec![u32::MAX], ..config(&[&failing], Workload::A, 10) };
    assert!(matches!(run(&config), Err(BenchError::Settings(_))));
}

/// A run in which the server stops answering for a third of a second.
fn stalled_run(pace: Pace, operations: u64) -> Report {
    let toy = Toy::start(|number| {
        if number == 100 {
            thread::sleep(Duration::from_millis(300));
        }
        Act::Serve
    });
    let config = Config { pace, connection_count: 1, ..config(&[&toy], Workload::Set, operations) };
    run(&config).unwrap()
}

#[test]
fn an_open_loop_counts_the_waiting_of_operations_that_were_due() {
    // A slower machine makes every latency longer, so the lower bounds hold on any.
    let report = stalled_run(Pace::Open { rate_per_second: 1000 }, 800);
    assert_eq!((report.operations, report.rate), (800, Some(1000)));
    // 300 operations became due in the stall; 250 of them waited for more than 50 ms.
    let late = report.writes.curve.iter().find(|point| point.quantile > 0.89).unwrap();
    assert!(late.us > 50_000.0, "the operations due in the stall have waited: {late:?}");
    assert!(report.gaps.any_ms > 250.0, "{:?}", report.gaps);

    let report = stalled_run(Pace::Closed, 10_000);
    let late = report.writes.curve.iter().find(|point| point.quantile > 0.89).unwrap();
    assert!(late.us < 50_000.0, "a closed loop hides the stall: {late:?}");
    assert!(report.writes.max_us > 250_000.0 && report.gaps.any_ms > 250.0);
}

#[test]
fn operations_without_an_answer_count_with_the_time_they_waited() {
    let toy = Toy::start(|number| if number == 5 { Act::Hang } else { Act::Serve });
    let config = Config {
        pace: Pace::Open { rate_per_second: 1000 },
        extent: Extent::Time(Duration::from_secs(1)),
        connection_count: 1,
        ..config(&[&toy], Workload::Set, 0)
    };
    let report = run(&config).unwrap();
    assert_eq!((report.operations, report.unanswered), (5, 1));
    // At least a thousand were due in the window.
    assert!(report.unsent >= 990, "{}", report.unsent);
    assert!(report.writes.p50_us > 100_000.0, "most have waited: {:?}", report.writes);
    assert!(report.gaps.stayed_ms.unwrap() > 500.0, "{:?}", report.gaps);
}

fn wall_us() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros()
}

/// An HTTP door that answers every request with this.
fn door(answer: impl Fn() -> String + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = BufReader::new(stream.try_clone().unwrap()).lines();
            while head.next().is_some_and(|line| !line.unwrap().is_empty()) {}
            write!(stream, "HTTP/1.1 200 OK\r\n\r\n{}", answer()).unwrap();
        }
    });
    address
}

#[test]
fn the_longest_gaps_are_told_with_what_disks_did_in_them() {
    let began = wall_us();
    // One step was over long before, and one goes on for an hour.
    let door = door(move || {
        let now = wall_us();
        format!(
            r#"{{"host": 7, "time_us": {now}, "disk": {{"slow_steps": [
                {{"step": "sync", "at_us": 5, "us": 6, "bytes": 0}},
                {{"step": "backlog", "at_us": {began}, "us": 3600000000, "bytes": 8192}}]}}}}"#
        )
    });
    let nowhere = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let toy = Toy::start(|number| {
        if number == 150 {
            thread::sleep(Duration::from_millis(300));
        }
        Act::Serve
    });
    let config = Config {
        connection_count: 1,
        http: vec![door, nowhere.clone()],
        ..config(&[&toy], Workload::A, 400)
    };
    let report = run(&config).unwrap();
    let gaps = &report.longest_gaps;
    assert_eq!(gaps.len(), 10);
    assert!(gaps.windows(2).all(|pair| pair[0].ms >= pair[1].ms), "the longest first: {gaps:?}");
    let longest = [report.gaps.read_ms, report.gaps.write_ms].map(Option::unwrap);
    assert!((gaps[0].ms - longest[0].max(longest[1])).abs() < 1e-9);
    assert!(gaps[0].ms >= 300.0 && gaps[0].at_seconds >= 0.0, "{gaps:?}");
    assert!(gaps.iter().all(|gap| u128::from(gap.at_us) >= began), "the run came later");
    for gap in gaps {
        let [step] = &gap.disks[..] else { panic!("it overlaps one: {gap:?}") };
        assert_eq!((step.host, step.step.as_str(), step.bytes), (7, "backlog", 8192));
        assert!(step.at_ms <= 0.0 && step.ms > 3e6);
    }
    assert_eq!(report.http_failures.keys().collect::<Vec<_>>(), [&nowhere]);
    let text = report.to_string();
    assert!(text.contains("host 7 backlog 3600000.0 ms from -"), "{text}");
    assert!(text.contains(&format!("{nowhere} did not say what its disk did")), "{text}");
}

#[test]
fn a_user_can_end_a_run_early() {
    let toy = Toy::start(|_| Act::Serve);
    let stop = Stop::default();
    let config = Config {
        extent: Extent::Time(Duration::from_secs(3600)),
        stop: stop.clone(),
        ..config(&[&toy], Workload::A, 0)
    };
    let measured = thread::spawn(move || run(&config).unwrap());
    while toy.log.lock().unwrap().len() < 1000 {
        thread::yield_now();
    }
    stop.0.store(true, Ordering::Relaxed);
    let report = measured.join().unwrap();
    assert!(report.interrupted && report.operations > 0);
}

#[test]
fn a_report_is_written_as_json_and_as_a_picture() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.svg");
    let toy = Toy::start(|_| Act::Serve);
    let config = Config {
        svg: Some(path.clone()),
        server_pids: vec![std::process::id()],
        ..config(&[&toy], Workload::A, 1000)
    };
    let report = run(&config).unwrap();
    let json = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<Report>(&json).unwrap().operations, 1000);
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    let fields = ["throughput", "reads", "writes", "errors", "gaps", "servers", "intervals"];
    for field in fields.into_iter().chain(["longest_gaps", "http", "http_failures"]) {
        assert!(value.get(field).is_some(), "{field} is a stable name");
    }
    assert!(value["reads"]["p999_us"].is_number() && value["gaps"]["any_ms"].is_number());
    assert!(value["server_cpu_seconds_per_1000"].is_number());
    let svg = std::fs::read_to_string(path).unwrap();
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
    assert_eq!(svg.matches("<polyline").count(), 7, "three charts and their lines");
}
