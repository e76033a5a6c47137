//! `dev`: real hosts as processes of their own.

use crate::command_line::printed::must_be_closed;
use crate::support::ports;
use crate::support::run::{command, quorate};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// How long a test waits for what must happen soon.
const SOON: Duration = Duration::from_secs(30);

/// A running `dev`; killed, hosts and all, when a test fails.
pub struct Dev {
    process: Child,
    /// Host `i` has the ports from here plus `10 * i` on.
    base: u16,
    pub cluster: Value,
}

impl Dev {
    /// Starts a cluster and waits for the line that says where its hosts are.
    pub fn start(data: &Path, more: &[&str]) -> Dev {
        let data = data.display().to_string();
        let is_new = !Path::new(&data).join("host-1").exists();
        let port_base = if is_new { Some(ports::base().to_string()) } else { None };
        let mut args = vec!["dev", "--data", &data, "--format", "json"];
        args.extend(port_base.iter().flat_map(|base| ["--port-base", base]));
        args.extend(more);
        let mut process = command(&args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut line = String::new();
        let output = process.stdout.as_mut().expect("a pipe was asked for");
        BufReader::new(output).read_line(&mut line).expect("the output is text");
        let mut dev = Dev { process, base: 0, cluster: Value::Null };
        let Ok(cluster) = serde_json::from_str(&line) else {
            panic!("no cluster but {line:?}: {}", dev.ended().1);
        };
        dev.cluster = cluster;
        let first: SocketAddr = dev.door(1, "cluster").parse().expect("an address");
        dev.base = first.port() - 11;
        dev
    }

    /// Where the door of a host is, also of one that joins later.
    pub fn at(&self, host: u16, door: &str) -> String {
        let doors = ["cluster", "http", "resp", "grpc"];
        let door = doors.iter().position(|name| *name == door).expect("a door") as u16;
        format!("127.0.0.1:{}", self.base + 10 * host + 1 + door)
    }

    pub fn door(&self, host: usize, door: &str) -> String {
        self.cluster["hosts"][host - 1][door].as_str().expect("an address").to_owned()
    }

    fn pid(&self, host: usize) -> Pid {
        let pid = self.cluster["hosts"][host - 1]["pid"].as_i64().expect("a process id");
        Pid::from_raw(i32::try_from(pid).expect("a process id")).expect("a process id")
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a process id"), signal).expect("it runs");
    }

    /// Waits for the end: the exit code, none if it was killed, and what was said on the way.
    fn ended(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        let mut errors = self.process.stderr.take().expect("a pipe was asked for");
        errors.read_to_string(&mut said).expect("the errors are text");
        (self.process.wait().expect("it ends").code(), said)
    }

    pub fn stop(self) -> (Option<i32>, String) {
        self.signal(Signal::INT);
        self.ended()
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        // The hosts end with it. Killing what has ended already fails, and does no harm.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub fn on(endpoint: &str, args: &[&str]) -> crate::support::run::Said {
    let mut all = args.to_vec();
    all.extend(["--endpoint", endpoint]);
    quorate(&all)
}

/// Waits until something is so.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + SOON;
    while !is_so() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        std::thread::yield_now();
    }
}

pub fn is_closed(address: &str) -> bool {
    TcpStream::connect(address).is_err()
}

#[test]
fn a_cluster_keeps_its_data_from_one_run_to_the_next() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let dev = Dev::start(place.path(), &[]);
    assert_eq!(dev.cluster["hosts"].as_array().map(Vec::len), Some(3));
    assert_eq!(dev.door(2, "resp"), dev.at(2, "resp"));
    (1..=3).for_each(|host| must_be_closed(Path::new(&dev.door(host, "data"))));
    assert_eq!(on(&dev.door(1, "resp"), &["put", "greeting", "hello"]).code, 0);
    assert_eq!(on(&dev.door(3, "resp"), &["get", "greeting"]).out, "hello");
    let cluster = dev.cluster["cluster"].clone();
    let doors = [dev.door(1, "resp"), dev.door(2, "http"), dev.door(3, "cluster")];
    let (code, said) = dev.stop();
    assert_eq!(code, Some(0), "{said}");
    assert!(doors.iter().all(|door| is_closed(door)), "every host has ended");
    let again = Dev::start(place.path(), &[]);
    assert_eq!(again.cluster["cluster"], cluster);
    assert_eq!(on(&again.door(2, "resp"), &["get", "greeting"]).out, "hello");
    assert_eq!(again.stop().0, Some(0));
}

#[test]
fn hosts_end_when_dev_is_killed_even_one_that_is_stopped() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let mut dev = Dev::start(place.path(), &[]);
    kill_process(dev.pid(2), Signal::STOP).expect("it runs");
    dev.process.kill().expect("it runs");
    for host in 1..=3 {
        let door = dev.door(host, "resp");
        until("the host has ended", || is_closed(&door));
    }
}

#[test]
fn a_killed_host_is_told_and_left_alone_and_can_be_started_again() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let dev = Dev::start(place.path(), &[]);
    let (first, third) = (dev.door(1, "resp"), dev.door(3, "resp"));
    kill_process(dev.pid(3), Signal::KILL).expect("it runs");
    until("the host has ended", || is_closed(&third));
    assert_eq!(on(&first, &["put", "k", "v"]).code, 0, "a majority is enough");
    let data = dev.door(3, "data");
    let mut host = command(&["server", "--data", &data, "--format", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary starts");
    let mut line = String::new();
    BufReader::new(host.stdout.take().expect("a pipe was asked for"))
        .read_line(&mut line)
        .expect("the output is text");
    let ready: Value = serde_json::from_str(&line).expect("a ready line");
    assert_eq!(ready["resp"], third.as_str(), "it has its ports again");
    assert_eq!(on(&third, &["get", "k"]).out, "v");
    let second = quorate(&["server", "--data", &data]);
    assert_eq!(second.code, 1, "{second:?}");
    assert!(second.err.contains("in use by process"), "{second:?}");
    let pid = i32::try_from(host.id()).ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(pid, Signal::TERM).expect("it runs");
    assert_eq!(host.wait().expect("it ends").code(), Some(0), "a clean stop");
    let (code, said) = dev.stop();
    assert_eq!(code, Some(0), "a host that ended before is no failure: {said}");
    assert!(said.contains("host 3 (process "), "{said}");
    assert!(said.contains(&format!("server --data {data}")), "{said}");
}

#[test]
fn a_stopped_host_hears_that_it_must_end() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let dev = Dev::start(place.path(), &[]);
    kill_process(dev.pid(1), Signal::STOP).expect("it runs");
    let (code, said) = dev.stop();
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn a_second_cluster_on_the_same_ports_or_directory_is_refused() {
    let (place, other) = (tempfile::tempdir(), tempfile::tempdir());
    let (place, other) = (place.expect("a directory"), other.expect("a directory"));
    let dev = Dev::start(place.path(), &[]);
    let other = other.path().display().to_string();
    let base = dev.base.to_string();
    let said = quorate(&["dev", "--data", &other, "--port-base", &base]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains(&format!("port {} is in use", dev.base + 11)), "{said:?}");
    assert!(said.err.contains("cluster door of host 1"), "{said:?}");
    let same = place.path().display().to_string();
    let said = quorate(&["dev", "--data", &same, "--port-base", &ports::base().to_string()]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("is in use by process"), "{said:?}");
    let kept = quorate(&["config", "show", "--data", &dev.door(1, "data")]);
    assert!(kept.out.contains(&dev.at(1, "resp")), "a running cluster is not moved: {kept:?}");
    assert_eq!(dev.stop().0, Some(0));
}

#[test]
fn a_host_that_cannot_start_is_shown_with_the_end_of_its_log() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let data = place.path().display().to_string();
    let said = quorate(&["dev", "--data", &data, "--set", "store.cahce=1MiB"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("before it was ready"), "{said:?}");
    assert!(said.err.contains("did you mean store.cache?"), "{said:?}");
    assert_eq!(said.out, "");
}
