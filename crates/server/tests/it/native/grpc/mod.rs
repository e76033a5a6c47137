//! The gRPC door: what a register does, and what is refused and how.

mod abuse;
mod online;
mod orders;

use crate::support::client::Client;
use crate::support::cluster::Cluster;
use bytes::Bytes;
use quorate_api::details;
use quorate_api::v1::admin_client::AdminClient;
use quorate_api::v1::kv_client::KvClient;
use quorate_api::v1::reading::State;
use quorate_api::v1::scan_response::Part;
use quorate_api::v1::{
    BatchGetRequest, Capability, Coordinator, DeleteRequest, DeleteResponse, Entry, Error,
    GetRequest, GetResponse, KeyspacesRequest, Kind, PutRequest, PutResponse, Repeat, RingRequest,
    ScanOrder, ScanPromise, ScanRequest, StatusRequest, WriteOptions,
};
use std::time::{Duration, Instant};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Response, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

async fn channel(address: &str) -> Channel {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).expect("an address");
    endpoint.connect().await.expect("the door is open")
}

async fn kv(address: &str) -> KvClient<Channel> {
    KvClient::new(channel(address).await).max_decoding_message_size(usize::MAX)
}

fn text(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn get(keyspace: &str, key: &str) -> GetRequest {
    GetRequest { keyspace: keyspace.to_owned(), key: text(key), ..GetRequest::default() }
}

fn put(key: &str, value: &str) -> PutRequest {
    let keyspace = String::from("default");
    PutRequest { keyspace, key: text(key), value: text(value), ..PutRequest::default() }
}

/// Makes a call until a quorum answers: on a machine that is too busy for the hosts' pings they are
/// refused for a moment, and such a refusal promises that nothing was changed.
async fn served<R: Clone, T>(
    client: &KvClient<Channel>,
    request: R,
    call: impl AsyncFn(KvClient<Channel>, R) -> Result<Response<T>, Status>,
) -> T {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        match call(client.clone(), request.clone()).await {
            Ok(response) => return response.into_inner(),
            Err(status) => assert!(
                status.code() == Code::Unavailable && Instant::now() < deadline,
                "{status:?}"
            ),
        }
    }
}

async fn got(client: &KvClient<Channel>, request: GetRequest) -> GetResponse {
    served(client, request, async |mut client, request| client.get(request).await).await
}

async fn done(client: &KvClient<Channel>, request: PutRequest) -> PutResponse {
    served(client, request, async |mut client, request| client.put(request).await).await
}

async fn removed(client: &KvClient<Channel>, request: DeleteRequest) -> DeleteResponse {
    served(client, request, async |mut client, request| client.delete(request).await).await
}

/// What a failed call tells in its details.
fn error<T>(answer: Result<T, Status>) -> (Code, Error) {
    let status = answer.err().expect("it fails");
    let error = details::error(&status).unwrap_or_else(|| panic!("no details in {status:?}"));
    assert!(!error.what.is_empty() && !error.right.is_empty(), "{error:?}");
    assert!(status.message().contains(&error.what), "{status:?}");
    assert_eq!(error.may_have_applied, error.kind() == Kind::OutcomeUnknown, "{error:?}");
    (status.code(), error)
}

/// Lists keys: what is promised, the entries, and the last cursor.
async fn scan(
    client: &mut KvClient<Channel>,
    request: ScanRequest,
) -> (ScanPromise, Vec<Entry>, Bytes) {
    let mut stream = client.scan(request).await.expect("it begins").into_inner();
    let (mut promise, mut entries, mut cursor) = (None, Vec::new(), Bytes::new());
    while let Some(message) = stream.message().await.expect("a page") {
        match message.part.expect("every message has a part") {
            Part::Promise(told) => {
                assert!(entries.is_empty() && promise.replace(told).is_none(), "it comes first");
            }
            Part::Page(page) => {
                assert!(promise.is_some(), "the promise comes first");
                entries.extend(page.entries);
                cursor = page.cursor;
            }
        }
    }
    (promise.expect("there is a promise"), entries, cursor)
}

fn of_days(cursor: Bytes) -> ScanRequest {
    ScanRequest { keyspace: String::from("days"), cursor, page_keys: 7, ..ScanRequest::default() }
}

fn ordered() -> Cluster {
    let more = ["--keyspace", "default=linearizable", "--keyspace", "days=linearizable,order=key"];
    let mut cluster = Cluster::create_with("memory", &more);
    cluster.start_all();
    cluster
}

#[test]
fn everything_that_a_register_does() {
    let cluster = ordered();
    block_on(async {
        let (one, two) = (kv(&cluster.grpc(1)).await, kv(&cluster.grpc(2)).await);
        let read = async |client: &KvClient<Channel>| {
            let answer = got(client, get("default", "k")).await;
            assert!(answer.coordinator.is_some());
            answer.reading.and_then(|reading| reading.state).expect("a state")
        };
        assert!(matches!(read(&one).await, State::Absent(_)));
        let written = done(&one, put("k", "v\0\u{fc}")).await;
        assert!(!written.is_repeated && written.context.is_empty());
        assert_eq!(read(&two).await, State::Value(text("v\0\u{fc}")), "at another host");
        done(&two, put("empty", "")).await;
        let keys = vec![text("k"), text("none"), text("empty"), text("k")];
        let keyspace = String::from("default");
        let batch = BatchGetRequest { keyspace, keys, ..BatchGetRequest::default() };
        let readings =
            served(&one, batch, async |mut one, batch| one.batch_get(batch).await).await.readings;
        let states: Vec<Option<State>> = readings.into_iter().map(|read| read.state).collect();
        let value = |value| Some(State::Value(text(value)));
        assert!(matches!(states[1], Some(State::Absent(_))), "{states:?}");
        assert_eq!(
            [&states[0], &states[2], &states[3]],
            [&value("v\0\u{fc}"), &value(""), &value("v\0\u{fc}")]
        );
        let delete = || DeleteRequest {
            keyspace: String::from("default"),
            key: text("k"),
            ..DeleteRequest::default()
        };
        assert!(removed(&two, delete()).await.existed);
        assert!(!removed(&one, delete()).await.existed);
        // What comes through one door is seen through another.
        let mut resp = Client::to(&cluster.resp(3));
        assert_eq!(resp.told_at_last(&[b"SET", b"both", b"x"]), "OK");
        let both = got(&one, get("default", "both")).await;
        let state = both.reading.and_then(|reading| reading.state);
        assert_eq!(state, Some(State::Value(text("x"))));
    });
}

#[test]
fn listings_say_what_they_promise_and_go_on_where_they_ended() {
    let cluster = ordered();
    block_on(async {
        let mut client = kv(&cluster.grpc(1)).await;
        let names: Vec<String> = (0..50).map(|number| format!("{number:02}-day")).collect();
        for name in &names {
            let keyspace = String::from("days");
            done(&client, PutRequest { keyspace, ..put(name, name) }).await;
        }
        let keys = |entries: &[Entry]| -> Vec<String> {
            entries.iter().map(|it| String::from_utf8_lossy(&it.key).into_owned()).collect()
        };
        let (promise, entries, cursor) = scan(&mut client, of_days(Bytes::new())).await;
        assert_eq!((promise.engine.as_str(), promise.order()), ("linearizable", ScanOrder::Key));
        assert!(!promise.is_snapshot && promise.is_complete && !promise.text.is_empty());
        assert_eq!((keys(&entries), cursor), (names.clone(), Bytes::new()));
        // In pieces, each at another host.
        let (mut cursor, mut found) = (Bytes::new(), Vec::new());
        for host in [1, 2, 3, 1, 2, 3] {
            let mut client = kv(&cluster.grpc(host)).await;
            let request = ScanRequest { limit: 9, with_values: true, ..of_days(cursor.clone()) };
            let (_, entries, next) = scan(&mut client, request).await;
            for entry in &entries {
                let state = entry.reading.clone().and_then(|reading| reading.state);
                assert_eq!(state, Some(State::Value(entry.key.clone())), "its own value");
            }
            found.extend(keys(&entries));
            cursor = next;
        }
        assert_eq!((found, cursor), (names.clone(), Bytes::new()));
        let (from, to) = (Some(text("10")), Some(text("20-day")));
        let (_, entries, _) =
            scan(&mut client, ScanRequest { from, to, ..of_days(Bytes::new()) }).await;
        assert_eq!(keys(&entries), names[10..20]);
    });
}

#[test]
fn hosts_keyspaces_the_ring_and_health_are_told() {
    let cluster = ordered();
    block_on(async {
        let channel = channel(&cluster.grpc(2)).await;
        let mut admin = AdminClient::new(channel.clone());
        let status = admin.status(StatusRequest {}).await.expect("it answers").into_inner();
        assert_eq!((status.host, status.is_ready, status.peers.len()), (2, true, 2));
        assert!(status.peers.iter().all(|peer| peer.is_up));
        let all = admin.keyspaces(KeyspacesRequest {}).await.expect("it answers").into_inner();
        let names: Vec<&str> = all.keyspaces.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["default", "days"]);
        assert_eq!(all.keyspaces[1].order(), ScanOrder::Key);
        let can = |asked| all.keyspaces[0].can().any(|capability| capability == asked);
        assert!(can(Capability::Values) && can(Capability::Listing) && !can(Capability::Tree));
        let ring = admin.ring(RingRequest {}).await.expect("it answers").into_inner();
        assert_eq!(ring.hosts.len(), 3);
        let node = status.coordinator.expect("it says who it is").node;
        let mine = ring.hosts.iter().find(|host| host.node == node).expect("it is there itself");
        let found = |name: &str| mine.doors.iter().any(|door| door.name == name);
        assert!(["resp", "http", "grpc"].into_iter().all(found), "{:?}", mine.doors);
        assert!(mine.doors.iter().any(|door| door.address == cluster.grpc(2)));
        assert!(ring.groups.iter().any(|group| group.members.contains(&node)));
        let health = HealthClient::new(channel);
        for service in ["", "quorate.v1.Kv", "keyspace/days"] {
            let is_serving = async || {
                let asked = HealthCheckRequest { service: service.to_owned() };
                let told = health.clone().check(asked).await.expect("it is known").into_inner();
                told.status() == ServingStatus::Serving
            };
            // It is looked at some times a second.
            while !is_serving().await {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        let mut health = health;
        let service = String::from("keyspace/none");
        let unknown = health.check(HealthCheckRequest { service }).await.expect_err("unknown");
        assert_eq!(unknown.code(), Code::NotFound);
    });
}

#[test]
fn a_wrong_request_is_told_what_is_wrong_and_what_would_be_right() {
    let cluster = ordered();
    block_on(async {
        let mut client = kv(&cluster.grpc(1)).await;
        let gets: [(GetRequest, Code, Kind, &str); 5] = [
            (get("", "k"), Code::InvalidArgument, Kind::Invalid, "name one of: default, days"),
            (get("no", "k"), Code::NotFound, Kind::NoKeyspace, "there are: default, days"),
            (
                get("default", &"k".repeat(65_281)),
                Code::OutOfRange,
                Kind::TooLarge,
                "use shorter keys",
            ),
            (
                GetRequest { replicas: 2, ..get("default", "k") },
                Code::Unimplemented,
                Kind::Unsupported,
                "leave replicas at 0",
            ),
            (get("D\u{1f600}", "k"), Code::NotFound, Kind::NoKeyspace, "there are"),
        ];
        for (request, code, kind, right) in gets {
            let (told, error) = error(client.get(request).await);
            assert_eq!((told, error.kind()), (code, kind), "{error:?}");
            assert!(error.right.contains(right), "{error:?}");
            assert!(error.coordinator.is_some(), "{error:?}");
        }
        let options =
            |request_id: Bytes, repeat| Some(WriteOptions { request_id, repeat, timeout_ms: 0 });
        let repeat = Some(Repeat { coordinator: None, age_ms: 1 });
        let sixteen = Bytes::from_static(&[7; 16]);
        let puts = [
            (PutRequest { context: text("c"), ..put("k", "v") }, Kind::Unsupported, ""),
            (put("k", &"v".repeat(16 * 1024 * 1024 + 1)), Kind::TooLarge, "value"),
            (
                PutRequest { options: options(text("short"), None), ..put("k", "v") },
                Kind::Invalid,
                "options.request_id",
            ),
            (
                PutRequest { options: options(Bytes::new(), repeat), ..put("k", "v") },
                Kind::Invalid,
                "options.request_id",
            ),
            (
                PutRequest { options: options(sixteen, repeat), ..put("k", "v") },
                Kind::Invalid,
                "options.repeat.coordinator",
            ),
        ];
        for (request, kind, field) in puts {
            let (_, error) = error(client.put(request).await);
            assert_eq!((error.kind(), error.field.as_str()), (kind, field), "{error:?}");
        }
        // A message over every limit is refused before it is read.
        let status = client.put(put("k", &"v".repeat(17 * 1024 * 1024))).await.expect_err("no");
        assert_eq!(status.code(), Code::OutOfRange, "{status:?}");
    });
}

#[test]
fn a_listing_or_batch_that_cannot_be_is_refused() {
    let cluster = ordered();
    block_on(async {
        let mut client = kv(&cluster.grpc(1)).await;
        let scans = [
            (of_days(text("nonsense")), Kind::Invalid),
            (ScanRequest { page_keys: 1_001, ..of_days(Bytes::new()) }, Kind::Invalid),
            (
                ScanRequest {
                    keyspace: String::from("default"),
                    from: Some(text("a")),
                    ..ScanRequest::default()
                },
                Kind::Unsupported,
            ),
        ];
        for (request, kind) in scans {
            assert_eq!(error(client.scan(request).await).1.kind(), kind);
        }
        let (keyspace, keys) = (String::from("default"), vec![text("k"); 1_001]);
        let batch = BatchGetRequest { keyspace, keys, ..BatchGetRequest::default() };
        assert_eq!(error(client.batch_get(batch).await).1.field, "keys");
    });
}

#[test]
fn a_write_is_done_once_or_its_outcome_is_unknown() {
    let mut cluster = ordered();
    let named = |key: &str, value: &str, id: u8, first: Option<Coordinator>| PutRequest {
        options: Some(WriteOptions {
            request_id: Bytes::from(vec![id; 16]),
            repeat: first.map(|first| Repeat { coordinator: Some(first), age_ms: 10 }),
            timeout_ms: 0,
        }),
        ..put(key, value)
    };
    let first = block_on(async {
        let (mut one, mut two) = (kv(&cluster.grpc(1)).await, kv(&cluster.grpc(2)).await);
        let old = done(&one, named("k", "old", 1, None)).await;
        let first = old.coordinator.expect("it says who");
        done(&two, put("k", "new")).await;
        let again = done(&one, named("k", "old", 1, Some(first))).await;
        assert!(again.is_repeated);
        let read = got(&one, get("default", "k")).await;
        let state = read.reading.and_then(|reading| reading.state);
        assert_eq!(state, Some(State::Value(text("new"))), "the old value did not come back");
        let (code, elsewhere) = error(two.put(named("k", "old", 1, Some(first))).await);
        assert_eq!((code, elsewhere.kind()), (Code::Unknown, Kind::OutcomeUnknown));
        let (_, reused) = error(one.put(named("k", "other", 1, None)).await);
        assert_eq!((reused.kind(), reused.field.as_str()), (Kind::Invalid, "options.request_id"));
        let late = done(&one, named("k", "third", 2, Some(first))).await;
        assert!(!late.is_repeated);
        first
    });
    cluster.kill(&[1]);
    cluster.restart(1);
    block_on(async {
        let mut one = kv(&cluster.grpc(1)).await;
        let (_, forgotten) = error(one.put(named("k", "old", 1, Some(first))).await);
        assert_eq!(forgotten.kind(), Kind::OutcomeUnknown, "another start knows nothing of it");
        let now = forgotten.coordinator.expect("it says who");
        assert_eq!((now.node, now.start), (first.node, first.start + 1));
    });
}

#[test]
fn without_a_quorum_nothing_is_promised() {
    let mut cluster = ordered();
    cluster.kill(&[2, 3]);
    block_on(async {
        let mut client = kv(&cluster.grpc(1)).await;
        let (code, refused) = error(client.get(get("default", "k")).await);
        assert_eq!((code, refused.kind()), (Code::Unavailable, Kind::NoQuorum));
        assert!(refused.replicas_reached < refused.replicas_needed, "{refused:?}");
        // Nothing is known to have reached another replica, so a put has surely done nothing.
        let options = WriteOptions { timeout_ms: 500, ..WriteOptions::default() };
        let request = PutRequest { options: Some(options), ..put("k", "v") };
        let (_, refused) = error(client.put(request).await);
        assert!(matches!(refused.kind(), Kind::NoQuorum | Kind::OutcomeUnknown), "{refused:?}");
        let mut admin = AdminClient::new(channel(&cluster.grpc(1)).await);
        let status = admin.status(StatusRequest {}).await.expect("it answers alone").into_inner();
        assert!(status.peers.iter().any(|peer| !peer.is_up) || !status.is_ready);
    });
}
