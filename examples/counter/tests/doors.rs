//! The engine in a real cluster, asked through RESP and HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

#[path = "../../../crates/server/tests/it/ports.rs"]
mod ports;

const PROGRAM: &str = env!("CARGO_BIN_EXE_quorate-counter");
/// Within this every addition is everywhere, on a busy machine too.
const SOON: Duration = Duration::from_secs(60);
/// How a read of an absent key ends.
const ABSENT: i32 = 3;

/// A cluster of three hosts of this program.
struct Cluster {
    dev: Child,
    hosts: serde_json::Value,
    _place: tempfile::TempDir,
}

impl Cluster {
    fn start() -> Cluster {
        let place = tempfile::tempdir().expect("a temporary directory");
        let (data, base) = (place.path().join("data"), ports::base().to_string());
        let keyspaces = ["--keyspace", "default=linearizable", "--keyspace", "hits=counter"];
        let mut command = Command::new(PROGRAM);
        command.args(["dev", "--format", "json", "--port-base", &base, "--data"]).arg(&data);
        let spawned = command.args(keyspaces).stdout(Stdio::piped()).spawn();
        let mut dev = spawned.expect("the binary starts");
        let mut line = String::new();
        let out = dev.stdout.as_mut().expect("a pipe was asked for");
        BufReader::new(out).read_line(&mut line).expect("it says who serves");
        let said: serde_json::Value = serde_json::from_str(&line).expect("it is JSON");
        Cluster { dev, hosts: said["hosts"].clone(), _place: place }
    }

    fn address(&self, host: usize, door: &str) -> &str {
        self.hosts[host][door].as_str().expect("every host has this door")
    }

    /// A command through RESP: the exit code, and what was said.
    fn resp(&self, host: usize, args: &[&str]) -> (i32, String) {
        let mut command = Command::new(PROGRAM);
        let target = ["--keyspace", "hits", "--endpoint", self.address(host, "resp")];
        let output = command.args(args).args(target).output().expect("the binary starts");
        let said = if output.status.success() { output.stdout } else { output.stderr };
        let text = String::from_utf8(said).expect("it is text").trim().to_owned();
        (output.status.code().expect("it exits"), text)
    }

    /// A request to the HTTP door: the status and the whole answer.
    fn http(&self, host: usize, method: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.address(host, "http")).expect("it listens");
        let length = body.len();
        let head = format!(
            "{method} /v1/kv/hits/page HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
             content-type: text/plain\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        stream.write_all(head.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
        (status.expect("a status"), answer)
    }

    /// Waits until a read at every host ends like this.
    fn until_everywhere(&self, is_so: impl Fn(&(i32, String)) -> bool) {
        let until = Instant::now() + SOON;
        for host in 0..3 {
            loop {
                let said = self.resp(host, &["get", "page"]);
                if is_so(&said) {
                    break;
                }
                assert!(Instant::now() < until, "host {host} still says {said:?}");
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let stopped = Command::new("kill").args(["-TERM", &self.dev.id().to_string()]).status();
        stopped.expect("it can be told to stop");
        self.dev.wait().expect("it ends");
    }
}

#[test]
fn additions_through_any_door_of_any_host_come_to_one_sum() {
    let cluster = Cluster::start();
    assert_eq!(cluster.resp(0, &["put", "page", "3"]).0, 0);
    assert_eq!(cluster.resp(1, &["put", "page", "4"]).0, 0);
    assert_eq!(cluster.http(2, "PUT", "5").0, 200);
    cluster.until_everywhere(|(_, sum)| sum == "12");
    assert!(cluster.http(0, "GET", "").1.contains("\"12\""));
    let (code, said) = cluster.resp(0, &["put", "page", "many"]);
    assert!(code == 1 && said.contains("this keyspace takes numbers to add"), "{said}");
    assert_eq!(cluster.http(0, "PUT", "many").0, 400);
    let (code, said) = cluster.resp(0, &["scan"]);
    assert!(code == 1 && said.contains("needs an engine with listings of keys"), "{said}");
    assert_eq!(cluster.resp(2, &["del", "page"]).0, 0);
    cluster.until_everywhere(|(code, _)| *code == ABSENT);
}
