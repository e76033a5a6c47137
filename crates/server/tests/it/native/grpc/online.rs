//! Keyspaces that come and go while the native doors are open.

use super::{block_on, channel, done, error, get, got, kv, put, text};
use crate::native::http::ask;
use crate::support::cluster::{Cluster, until};
use crate::support::run::quorate;
use bytes::Bytes;
use quorate_api::v1::admin_client::AdminClient;
use quorate_api::v1::reading::State;
use quorate_api::v1::{KeyspacesRequest, Kind, PutRequest, ScanRequest};
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

/// Has a host change the catalog.
fn order(cluster: &Cluster, host: usize, args: &[&str]) {
    let http = cluster.http(host);
    let said = quorate(&[&["keyspace"], args, &["--http", &http]].concat());
    assert_eq!(said.code, 0, "{said:?}");
}

/// What the health service of a host says of a keyspace; nothing if it knows none of this name.
fn health(cluster: &Cluster, host: usize, name: &str) -> Option<ServingStatus> {
    block_on(async {
        let mut health = HealthClient::new(channel(&cluster.grpc(host)).await);
        let service = format!("keyspace/{name}");
        match health.check(HealthCheckRequest { service }).await {
            Ok(answer) => Some(answer.into_inner().status()),
            Err(status) => {
                assert_eq!(status.code(), Code::NotFound, "{status:?}");
                None
            }
        }
    })
}

/// The names of the keyspaces that a host tells of.
fn names(cluster: &Cluster, host: usize) -> Vec<String> {
    let all = block_on(async {
        let mut admin = AdminClient::new(channel(&cluster.grpc(host)).await);
        admin.keyspaces(KeyspacesRequest {}).await.expect("it answers").into_inner().keyspaces
    });
    all.into_iter().map(|keyspace| keyspace.name).collect()
}

#[test]
fn a_keyspace_made_online_is_served_until_it_is_dropped() {
    let short = ["--keyspace", "default=linearizable,value=64KiB"];
    let mut cluster = Cluster::create_with("memory", &short);
    cluster.start_all();
    let at = |method: &str, key: &str| {
        format!("{method} /v1/kv/fresh/{key}\nContent-Type: application/octet-stream")
    };
    let (one, two) = (cluster.http(1), cluster.http(2));
    assert_eq!(ask(&one, &at("PUT", "k"), b"v").kind(), "no_keyspace", "it is not there yet");
    assert_eq!(health(&cluster, 1, "fresh"), None);

    order(&cluster, 1, &["create", "fresh", "value=1MiB"]);
    for host in 1..=3 {
        until("it serves", || health(&cluster, host, "fresh") == Some(ServingStatus::Serving));
        assert_eq!(names(&cluster, host), ["default", "fresh"]);
    }
    let written = ask(&one, &at("PUT", "k"), b"v");
    assert_eq!(written.status, 200, "{written:?}");
    let grpc = cluster.grpc(3);
    let fresh = |key: &str, value: Bytes| PutRequest {
        keyspace: String::from("fresh"),
        value,
        ..put(key, "")
    };
    let read = |keyspace: &'static str, key: &'static str| {
        let answer = block_on(async { got(&kv(&grpc).await, get(keyspace, key)).await });
        answer.reading.and_then(|reading| reading.state).expect("a state")
    };
    assert_eq!(read("fresh", "k"), State::Value(text("v")));
    assert!(matches!(read("default", "k"), State::Absent(_)), "it is another keyspace");
    // Longer than any keyspace took when the doors were opened.
    let long = Bytes::from(vec![b'x'; 512 * 1024]);
    block_on(async { done(&kv(&grpc).await, fresh("long", long.clone())).await });
    let answer = ask(&two, &at("GET", "long").replace("Content-Type", "Accept"), b"");
    assert!(answer.status == 200 && answer.body == long, "{} bytes", answer.body.len());

    order(&cluster, 2, &["drop", "fresh", "--yes"]);
    for host in 1..=3 {
        until("it is gone", || names(&cluster, host) == ["default"]);
        until("nobody waits for it", || health(&cluster, host, "fresh").is_none());
        let gone = ask(&cluster.http(host), &at("GET", "k"), b"");
        assert_eq!((gone.status, gone.kind().as_str()), (404, "no_keyspace"));
    }
    block_on(async {
        let mut client = kv(&grpc).await;
        let (code, gone) = error(client.put(fresh("k", text("w"))).await);
        assert_eq!((code, gone.kind()), (Code::NotFound, Kind::NoKeyspace));
        assert_eq!((gone.field.as_str(), gone.right.as_str()), ("keyspace", "there are: default"));
        let keyspace = String::from("fresh");
        let scan = client.scan(ScanRequest { keyspace, ..ScanRequest::default() }).await;
        assert_eq!(error(scan).1.kind(), Kind::NoKeyspace);
    });

    order(&cluster, 1, &["create", "fresh"]);
    until("it serves", || health(&cluster, 3, "fresh") == Some(ServingStatus::Serving));
    assert!(matches!(read("fresh", "k"), State::Absent(_)), "it begins empty");
}
