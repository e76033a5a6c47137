//! What happens to keyspaces and hosts, followed through every door.

use crate::support::cluster::Cluster;
use crate::support::run::quorate;
use quorate_api::v1::admin_client::AdminClient;
use quorate_api::v1::{WatchRequest, WatchResponse};
use rustix::process::Signal;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tonic::transport::Endpoint;
use tonic::{Code, Status, Streaming};

/// How long a listener waits for what must come.
const PATIENCE: Duration = Duration::from_secs(300);

/// A client that reads lines: of RESP, or of server-sent events.
struct Listener(BufReader<TcpStream>);

impl Listener {
    fn to(address: &str, request: &str) -> Listener {
        let mut stream = TcpStream::connect(address).expect("the door is open");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket has a timeout");
        stream.write_all(request.as_bytes()).expect("the host reads");
        Listener(BufReader::new(stream))
    }

    /// Reads up to a line with all of these parts; none if the host closes before.
    fn hear(&mut self, parts: &[&str]) -> Option<String> {
        let mut line = String::new();
        while self.0.read_line(&mut line).expect("the host goes on or closes") > 0 {
            if parts.iter().all(|part| line.contains(part)) {
                return Some(line);
            }
            line.clear();
        }
        None
    }
}

/// A client of the gRPC door.
struct Stream(Runtime, Streaming<WatchResponse>);

impl Stream {
    fn to(address: &str) -> Stream {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let begun = runtime.block_on(async {
            let endpoint = Endpoint::from_shared(format!("http://{address}")).expect("an address");
            let channel = endpoint.connect().await.expect("the door is open");
            AdminClient::new(channel).watch(WatchRequest {}).await
        });
        Stream(runtime, begun.expect("it begins").into_inner())
    }

    fn hear(&mut self, is_meant: impl Fn(&WatchResponse) -> bool) -> Result<(), Status> {
        self.0.block_on(async {
            loop {
                match self.1.message().await? {
                    Some(told) if is_meant(&told) => return Ok(()),
                    Some(_) => {}
                    None => return Err(Status::ok("it has ended without a reason")),
                }
            }
        })
    }
}

#[test]
fn what_happens_is_told_at_every_door_until_the_host_stops() {
    let mut cluster = Cluster::start("memory");
    let (resp, http) = (cluster.resp(2), cluster.http(2));
    let mut redis = Listener::to(&resp, "HELLO 3\r\nSUBSCRIBE events\r\n");
    let request = format!("GET /v1/events HTTP/1.1\r\nHost: {http}\r\n\r\n");
    let mut sse = Listener::to(&http, &request);
    let mut grpc = Stream::to(&cluster.grpc(2));
    assert!(sse.hear(&["content-type: text/event-stream"]).is_some());
    for text in [&mut redis, &mut sse] {
        let present = ["\"keyspace-present\"", "\"keyspace\":\"default\"", "linearizable"];
        assert!(text.hear(&present).is_some());
        assert!(text.hear(&["\"event\":\"current\""]).is_some(), "what there was has been told");
    }
    grpc.hear(|told| told.event == "host-present" && told.node != 0).expect("a host");
    grpc.hear(|told| told.event == "current").expect("what there was has been told");

    let first = cluster.http(1);
    let keyspace = |verb: &str, more: &[&str]| {
        let said = quorate(&[&["keyspace", verb, "carts"], more, &["--http", &first]].concat());
        assert_eq!(said.code, 0, "{said:?}");
    };
    let orders: [(&str, &[&str]); 2] = [("create", &["--engine", "causal"]), ("drop", &["--yes"])];
    for ((verb, more), change) in orders.into_iter().zip(["keyspace-created", "keyspace-dropped"]) {
        keyspace(verb, more);
        for text in [&mut redis, &mut sse] {
            assert!(text.hear(&[change, "\"keyspace\":\"carts\"", "causal"]).is_some());
        }
        grpc.hear(|told| told.event == change && told.keyspace == "carts").expect("it is told");
    }

    cluster.kill(&[1]);
    for text in [&mut redis, &mut sse] {
        assert!(text.hear(&["host-suspected", "\"node\":"]).is_some());
    }
    grpc.hear(|told| told.event == "host-suspected").expect("it is told");

    cluster.signal(2, Signal::TERM);
    assert!(redis.hear(&["-SHUTDOWN the node is shutting down"]).is_some());
    assert!(sse.hear(&["event: ended"]).is_some());
    assert!(sse.hear(&["data: ", "\"kind\":\"stopping\""]).is_some());
    let ended = grpc.hear(|_| false).expect_err("the host stops");
    assert_eq!(ended.code(), Code::Unavailable, "{ended:?}");
}
