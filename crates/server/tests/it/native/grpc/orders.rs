//! Operators' orders by gRPC: keyspaces are made, shown, altered and dropped, partitions given
//! away.

use super::{block_on, channel, done, error, get, kv, put};
use crate::support::cluster::{Cluster, SOON, until};
use crate::support::run::quorate;
use quorate_api::v1::admin_client::AdminClient;
use quorate_api::v1::{
    AlterKeyspaceRequest, CreateKeyspaceRequest, DropKeyspaceRequest, KeyspaceDetails, Kind,
    PutRequest, ReplacePartitionRequest, ShowKeyspaceRequest, StatusRequest,
};
use std::collections::HashMap;
use std::time::{Duration, Instant};
use tonic::transport::Channel;
use tonic::{Code, Request};

async fn admin(cluster: &Cluster, host: usize) -> AdminClient<Channel> {
    AdminClient::new(channel(&cluster.grpc(host)).await)
}

fn settings(all: &[(&str, &str)]) -> HashMap<String, String> {
    all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn create(name: &str, all: &[(&str, &str)]) -> CreateKeyspaceRequest {
    let settings = settings(all);
    CreateKeyspaceRequest { name: name.to_owned(), settings, ..CreateKeyspaceRequest::default() }
}

fn alter(name: &str, all: &[(&str, &str)]) -> AlterKeyspaceRequest {
    AlterKeyspaceRequest { name: name.to_owned(), settings: settings(all), timeout_ms: 0 }
}

fn drop_of(name: &str) -> DropKeyspaceRequest {
    DropKeyspaceRequest { name: name.to_owned(), timeout_ms: 0 }
}

/// What a host tells of a keyspace; nothing if it knows none of this name.
async fn show(admin: &AdminClient<Channel>, name: &str) -> Option<KeyspaceDetails> {
    let asked = ShowKeyspaceRequest { name: name.to_owned(), timeout_ms: 0 };
    match admin.clone().show_keyspace(asked).await {
        Ok(told) => {
            let told = told.into_inner();
            assert!(told.coordinator.is_some(), "{told:?}");
            told.keyspace
        }
        Err(status) => {
            let (code, error) = error(Err::<(), _>(status));
            assert_eq!((code, error.kind()), (Code::NotFound, Kind::NoKeyspace), "{error:?}");
            None
        }
    }
}

fn value(shown: &KeyspaceDetails, name: &str) -> (String, bool) {
    let found = shown.settings.iter().find(|setting| setting.name == name);
    let setting = found.unwrap_or_else(|| panic!("no {name} in {shown:?}"));
    assert!(!setting.altering.is_empty(), "{setting:?}");
    (setting.value.clone(), setting.is_alterable)
}

/// Waits until a host has a keyspace of this name, or none of it.
fn until_known(cluster: &Cluster, host: usize, name: &str, is_there: bool) {
    until("the order is known", || {
        block_on(async { show(&admin(cluster, host).await, name).await.is_some() == is_there })
    });
}

#[test]
fn a_keyspace_is_made_shown_altered_and_dropped() {
    let cluster = Cluster::start("memory");
    let made = block_on(async {
        let mut one = admin(&cluster, 1).await;
        let asked = create("sessions", &[("value", "1KiB"), ("durability", "memory")]);
        let answer = one.create_keyspace(asked).await.expect("it is made").into_inner();
        assert!(answer.coordinator.is_some());
        let shown = show(&one, "sessions").await.expect("the host that answered knows it");
        assert_eq!((shown.engine.as_str(), shown.number), ("linearizable", 1));
        assert_eq!(value(&shown, "value"), (String::from("1024"), true));
        assert_eq!(value(&shown, "durability"), (String::from("memory"), false));
        assert!(shown.partitions.is_empty());
        shown.created
    });
    (1..=3).for_each(|host| until_known(&cluster, host, "sessions", true));
    let list = quorate(&["keyspace", "list", "--format", "json", "--http", &cluster.http(3)]);
    assert_eq!(list.json()[1]["created"], made, "the other doors tell the same");

    let long = |key: &str| PutRequest {
        keyspace: String::from("sessions"),
        ..put(key, &"x".repeat(2_000))
    };
    block_on(async {
        let mut one = admin(&cluster, 2).await;
        let (code, refused) = error(kv(&cluster.grpc(2)).await.put(long("k")).await);
        assert_eq!((code, refused.kind()), (Code::OutOfRange, Kind::TooLarge));
        let fixed = one.alter_keyspace(alter("sessions", &[("durability", "sync")])).await;
        let (code, fixed) = error(fixed);
        assert_eq!((code, fixed.kind()), (Code::FailedPrecondition, Kind::Conflict), "{fixed:?}");
        assert_eq!(fixed.field, "settings.durability");
        let altered = alter("sessions", &[("value", "4KiB")]);
        assert!(
            one.alter_keyspace(altered).await.expect("altered").into_inner().coordinator.is_some()
        );
        done(&kv(&cluster.grpc(2)).await, long("k")).await;
        let shown = show(&one, "sessions").await.expect("it is there");
        assert_eq!(value(&shown, "value").0, "4096");
        assert!(shown.changed > made && shown.created == made);
        let dropped = one.drop_keyspace(drop_of("sessions")).await.expect("it is dropped");
        assert!(dropped.into_inner().coordinator.is_some());
        assert_eq!(show(&one, "sessions").await, None);
        let (_, gone) = error(kv(&cluster.grpc(2)).await.get(get("sessions", "k")).await);
        assert_eq!(gone.kind(), Kind::NoKeyspace);
    });
    (1..=3).for_each(|host| until_known(&cluster, host, "sessions", false));
}

#[test]
fn an_order_that_cannot_be_is_told_what_is_wrong() {
    let mut cluster = Cluster::create("memory");
    // Far more than the calls below are ready to wait.
    cluster.set("limits.request_timeout=10m");
    cluster.start_all();
    block_on(async {
        let mut one = admin(&cluster, 1).await;
        let long = "n".repeat(60_000);
        let foreign = CreateKeyspaceRequest { engine: String::from("magic"), ..create("x", &[]) };
        let creations = [
            (create("default", &[]), Code::AlreadyExists, Kind::Exists, "name", "another name"),
            (create("9", &[]), Code::InvalidArgument, Kind::Invalid, "name", "form"),
            (create("", &[]), Code::InvalidArgument, Kind::Invalid, "name", "form"),
            (create(&long, &[]), Code::InvalidArgument, Kind::Invalid, "name", "form"),
            (foreign, Code::InvalidArgument, Kind::Invalid, "engine", "linearizable"),
            (
                create("x", &[("colour", "red")]),
                Code::InvalidArgument,
                Kind::Invalid,
                "settings.colour",
                "durability",
            ),
            (
                create("x", &[("order", "size")]),
                Code::InvalidArgument,
                Kind::Invalid,
                "settings.order",
                "hash or key",
            ),
        ];
        for (request, code, kind, field, right) in creations {
            let (told, error) = error(one.create_keyspace(request).await);
            assert_eq!(
                (told, error.kind(), error.field.as_str()),
                (code, kind, field),
                "{error:?}"
            );
            assert!(error.right.contains(right) && error.coordinator.is_some(), "{error:?}");
        }
        for (_, error) in [
            error(one.alter_keyspace(alter("none", &[("value", "1KiB")])).await),
            error(one.drop_keyspace(drop_of("none")).await),
        ] {
            assert_eq!((error.kind(), error.field.as_str()), (Kind::NoKeyspace, "name"));
        }
        assert_eq!(show(&one, "none").await, None);
    });
    cluster.kill(&[2, 3]);
    block_on(async {
        let mut one = admin(&cluster, 1).await;
        // The call's own deadline counts, and the host answers before it ends; where the machine is
        // so busy that its client is the first to give up, it is asked again.
        let deadline = Instant::now() + SOON;
        let told = loop {
            let mut request = Request::new(create("alone", &[]));
            request.set_timeout(Duration::from_millis(600));
            let answer = one.create_keyspace(request).await;
            if !matches!(&answer, Err(status) if status.code() == Code::Cancelled) {
                break error(answer).1;
            }
            assert!(Instant::now() < deadline, "the host lets the deadline of the call pass");
        };
        assert!(matches!(told.kind(), Kind::NoQuorum | Kind::OutcomeUnknown), "{told:?}");
        let short = CreateKeyspaceRequest { timeout_ms: 300, ..create("alone", &[]) };
        let answer = tokio::time::timeout(SOON, one.create_keyspace(short)).await;
        let (_, told) = error(answer.expect("its own deadline counts"));
        assert!(matches!(told.kind(), Kind::NoQuorum | Kind::OutcomeUnknown), "{told:?}");
        assert!(show(&one, "default").await.is_some(), "what is known is told alone");
    });
}

#[test]
fn a_partition_goes_to_another_host() {
    let more = ["--keyspace", "carts=causal,partitions=9,replicas=1"];
    let mut cluster = Cluster::create_with("memory", &more);
    cluster.start_all();
    let replace = |partition, host: &str| ReplacePartitionRequest {
        keyspace: String::from("carts"),
        partition,
        host: host.to_owned(),
        timeout_ms: 0,
    };
    let (node, partition) = block_on(async {
        let mut one = admin(&cluster, 1).await;
        let status = one.status(StatusRequest {}).await.expect("it answers").into_inner();
        let node = status.coordinator.expect("it says who").node;
        let shown = show(&one, "carts").await.expect("it is there");
        assert_eq!((shown.engine.as_str(), shown.partitions.len()), ("causal", 9));
        let numbers: Vec<u32> = shown.partitions.iter().map(|place| place.partition).collect();
        assert_eq!(numbers, (0..9).collect::<Vec<u32>>());
        let (code, unknown) = error(one.replace_partition(replace(0, "nobody")).await);
        assert_eq!((code, unknown.field.as_str()), (Code::InvalidArgument, "host"), "{unknown:?}");
        let (code, none) = error(one.replace_partition(replace(9, "1")).await);
        assert_eq!((code, none.kind()), (Code::FailedPrecondition, Kind::Conflict), "{none:?}");
        let other = shown.partitions.iter().find(|place| place.node != node);
        let partition = other.expect("the others have some").partition;
        let to = format!("{node:016x}");
        let given = one.replace_partition(replace(partition, &to)).await.expect("it is given");
        assert!(given.into_inner().coordinator.is_some());
        (node, partition)
    });
    until("the partition is there", || {
        let shown = block_on(async { show(&admin(&cluster, 2).await, "carts").await });
        let place = shown.expect("it is there").partitions[partition as usize];
        place.node == node && place.is_settled
    });
}
