//! The engine in a real cluster, asked through RESP and HTTP.

use quorate_client::v1::Kind;
use quorate_client::{Client, ClientError, ItemOutcome, Settings, Transaction};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

#[path = "../../../crates/server/tests/it/support/ports.rs"]
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

    /// A request about the key `page` to the HTTP door: the status and the whole answer.
    fn http(&self, host: usize, method: &str, body: &str) -> (u16, String) {
        self.send(host, method, "/v1/kv/hits/page", "content-type: text/plain", body)
    }

    /// A transaction through the HTTP door: the status and the body of the answer.
    fn transact(&self, host: usize, header: &str, items: &str) -> (u16, serde_json::Value) {
        let (path, body) = ("/v1/transactions/hits", format!("{{\"items\":[{items}]}}"));
        let headers = format!("content-type: application/json{header}");
        let (status, answer) = self.send(host, "POST", path, &headers, &body);
        let (_, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        (status, serde_json::from_str(body).expect("it is JSON"))
    }

    fn send(
        &self,
        host: usize,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> (u16, String) {
        let mut stream = TcpStream::connect(self.address(host, "http")).expect("it listens");
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
             {headers}\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        stream.write_all(head.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
        (status.expect("a status"), answer)
    }

    /// Commands on one connection, sent at once: all that is answered.
    fn pipelined(&self, host: usize, commands: &str) -> String {
        let mut stream = TcpStream::connect(self.address(host, "resp")).expect("it listens");
        let all = format!("{commands}\r\nQUIT\r\n");
        stream.write_all(all.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer
    }

    /// Waits until a read of the key `page` at every host ends like this.
    fn until_everywhere(&self, is_so: impl Fn(&(i32, String)) -> bool) {
        self.until_read("page", is_so);
    }

    /// Waits until a read of a key at every host ends like this.
    fn until_read(&self, key: &str, is_so: impl Fn(&(i32, String)) -> bool) {
        let until = Instant::now() + SOON;
        for host in 0..3 {
            loop {
                let said = self.resp(host, &["get", key]);
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

fn put(key: &str, value: &str) -> String {
    format!(r#"{{"op":"put","key":"{key}","value":"{value}"}}"#)
}

fn get(key: &str) -> String {
    format!(r#"{{"op":"get","key":"{key}"}}"#)
}

#[test]
fn transactions_through_any_door_are_done_whole_once_or_not_at_all() {
    let cluster = Cluster::start();
    // Commands of one connection come one after the other where they share a key.
    let commands =
        "SELECT hits\r\nSET b 1\r\nMULTI\r\nSET a 3\r\nSET b 4\r\nGET b\r\nEXEC\r\nGET b";
    let said = cluster.pipelined(0, commands);
    let told = "*3\r\n+OK\r\n+OK\r\n$1\r\n5\r\n$1\r\n5\r\n+OK\r\n";
    assert_eq!(said, format!("+OK\r\n+OK\r\n+OK\r\n{}{told}", "+QUEUED\r\n".repeat(3)));
    cluster.until_read("a", |(_, sum)| sum == "3");
    cluster.until_read("b", |(_, sum)| sum == "5");

    // One that is sent again is done once.
    let delete = r#"{"op":"delete","key":"x"}"#.to_owned();
    let both = [put("a", "1"), get("a"), get("x"), delete].join(",");
    let id = "\r\nx-quorate-request-id: 000102030405060708090a0b0c0d0e0f";
    for is_repeated in [false, true] {
        let answers = serde_json::json!([
            { "key": "a" }, { "key": "a", "value": "4" }, { "key": "x", "value": null },
            { "key": "x", "existed": false },
        ]);
        let expected = serde_json::json!({ "answers": answers, "is_repeated": is_repeated });
        assert_eq!(cluster.transact(1, id, &both), (200, expected));
    }
    cluster.until_read("a", |(_, sum)| sum == "4");
    let (status, told) = cluster.transact(1, id, &put("a", "2"));
    assert_eq!((status, &told["error"]["kind"]), (400, &"invalid".into()), "{told}");
    let (status, told) = cluster.transact(2, &format!("{id}\r\n{}", repeat_of(&cluster)), &both);
    assert_eq!((status, &told["error"]["kind"]), (504, &"outcome_unknown".into()), "{told}");

    // What one item lacks holds for all of them.
    let check = |value: &str| format!(r#"{{"op":"check","key":"b","value":"{value}"}}"#);
    let (status, told) = cluster.transact(1, "", &[put("a", "7"), check("6")].join(","));
    assert_eq!((status, &told["error"]["field"]), (409, &"items[1]".into()), "{told}");
    for bad in [[put("a", "7"), put("b", "many")].join(","), vec![get("a"); 1025].join(",")] {
        let (status, told) = cluster.transact(1, "", &bad);
        assert_eq!((status, &told["error"]["kind"]), (400, &"invalid".into()), "{told}");
    }
    let (status, told) = cluster.transact(1, "", &[check("5"), get("a")].join(","));
    assert_eq!((status, &told["answers"][1]["value"]), (200, &"4".into()), "{told}");

    // Each that the engine was asked is one operation of its kind.
    let text = cluster.send(1, "GET", "/metrics", "accept: */*", "").1;
    let counted = |outcome: &str| {
        let labels = ["keyspace=\"hits\"", "op=\"transact\"", outcome];
        let has = |line: &&str| {
            line.starts_with("quorate_requests_total")
                && labels.iter().all(|label| line.contains(label))
        };
        text.lines().find(has).and_then(|line| line.rsplit(' ').next())
    };
    let both = (counted("outcome=\"ok\""), counted("outcome=\"refused\""));
    assert_eq!(both, (Some("2"), Some("2")));
}

/// The headers of a request that was first sent to host 1.
fn repeat_of(cluster: &Cluster) -> String {
    let (_, answer) = cluster.send(1, "GET", "/v1/kv/hits/none", "accept: */*", "");
    let name = "x-quorate-coordinator: ";
    let who = answer.lines().find_map(|line| line.strip_prefix(name)).expect("it says who it is");
    format!("x-quorate-repeat-of: {who}\r\nx-quorate-repeat-age-ms: 5")
}

#[test]
fn who_has_no_transactions_is_not_asked_and_who_has_is_named() {
    let cluster = Cluster::start();
    let said = cluster.pipelined(0, "MULTI\r\nSET a 1\r\nEXEC\r\nGET a");
    let lacking = "-ERR MULTI needs an engine with transactions; this keyspace is linearizable: \
                   use a keyspace of the engine serializable or counter\r\n";
    assert!(said.starts_with(lacking) && said.ends_with("$-1\r\n+OK\r\n"), "{said}");
    let body = format!("{{\"items\":[{}]}}", get("a"));
    let json = "content-type: application/json";
    let (status, said) = cluster.send(0, "POST", "/v1/transactions/default", json, &body);
    assert!(status == 501 && said.contains("needs an engine with transactions"), "{said}");
}

#[test]
fn what_is_watched_must_have_the_value_that_it_had() {
    let cluster = Cluster::start();
    let said = cluster.pipelined(
        0,
        "SELECT hits\r\nSET a 1\r\nWATCH a b\r\nSET a 1\r\nMULTI\r\nSET b 5\r\nEXEC\r\nGET b\r\n\
         WATCH a b\r\nMULTI\r\nPING\r\nSET b 7\r\nEXEC\r\nGET b",
    );
    let unmet = "+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n+QUEUED\r\n*-1\r\n$-1\r\n";
    let met = "+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+PONG\r\n+OK\r\n$1\r\n7\r\n\
               +OK\r\n";
    assert_eq!(said, format!("{unmet}{met}"));
    let said = cluster.pipelined(0, "WATCH a");
    let lacking = "-ERR WATCH needs an engine with transactions; this keyspace is linearizable: \
                   use a keyspace of the engine serializable or counter";
    assert!(said.starts_with(lacking), "{said}");
}

#[test]
fn several_keys_are_one_operation_through_the_native_api() {
    let cluster = Cluster::start();
    let hosts = [cluster.address(0, "grpc")];
    let settings = Settings { timeout: SOON, ..Settings::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let client = Client::with(&hosts, settings).expect("an address");
        let (hits, default) = (client.keyspace("hits"), client.keyspace("default"));
        let first = Transaction::new().check_exists("a", false).put("a", "5").put("b", "7");
        let first = first.get("a").get("none").check("a", "5").delete("b").delete("none");
        let value = |text: &'static str| ItemOutcome::Value(Some(text.into()));
        let told = [
            ItemOutcome::Done,
            ItemOutcome::Done,
            ItemOutcome::Done,
            value("5"),
            ItemOutcome::Value(None),
            ItemOutcome::Done,
        ];
        let told =
            told.into_iter().chain([ItemOutcome::Deleted(true), ItemOutcome::Deleted(false)]);
        assert_eq!(hits.transact(first).await, Ok(told.collect()));
        let unmet = Transaction::new().put("a", "1").get("b").check("a", "5");
        assert_eq!(hits.transact(unmet).await, Err(ClientError::Unmet { item: 2 }));
        let second = Transaction::new().check("a", "5").put("a", "1").get("a");
        let told = vec![ItemOutcome::Done, ItemOutcome::Done, value("6")];
        assert_eq!(hits.transact(second.clone()).await, Ok(told));
        // Longer than any value of its keyspaces, and within the bounds of transactions.
        let long = |bytes: usize| Transaction::new().put("a", vec![b'x'; bytes]).get("a");
        let refused = |asked| async { hits.transact(asked).await.expect_err("it is too much") };
        let said = refused(long(8 << 20)).await;
        assert_eq!(said.kind(), Some(Kind::TooLarge));
        assert!(said.to_string().starts_with("the value of 8388608 bytes"), "{said}");
        assert_eq!(refused(Transaction::new()).await.kind(), Some(Kind::Invalid));
        let many = (0..1025).fold(Transaction::new(), |all, _| all.get("a"));
        assert_eq!(refused(many).await.kind(), Some(Kind::Invalid));
        // Whose engine has none says who can do it.
        let Err(ClientError::Refused(error)) = default.transact(second).await else {
            panic!("a linearizable keyspace has no transactions")
        };
        assert_eq!(error.kind(), Kind::Unsupported);
        assert!(error.right.contains("counter"), "{error:?}");
    });
}
