//! The Rust client's orders against real hosts: keyspaces come, change and go; answers are lost.

use crate::native::rustclient::{Proxy, block_on, client};
use crate::support::cluster::{Cluster, until};
use quorate_client::ClientError;
use quorate_client::v1::Kind;
use std::sync::atomic::Ordering;

/// What sort of refusal an order ended with.
fn kind<T: std::fmt::Debug>(ended: Result<T, ClientError>) -> Kind {
    let error = ended.expect_err("it is refused");
    assert!(matches!(error, ClientError::Refused(_)), "{error:?}");
    error.kind().expect("it has a kind")
}

#[test]
fn what_happens_is_followed() {
    let cluster = Cluster::start("memory");
    let hosts: Vec<String> = (1..=3).map(|host| cluster.grpc(host)).collect();
    block_on(async {
        let admin = client(&hosts).admin();
        let mut events = admin.watch().await.expect("it begins");
        while events.next().await.expect("a host tells").event != "current" {}
        admin.create("carts", "causal", &[]).await.expect("it is made");
        loop {
            let told = events.next().await.expect("a host tells");
            if told.event == "keyspace-created" {
                break assert_eq!(
                    (told.keyspace.as_str(), told.engine.as_str()),
                    ("carts", "causal")
                );
            }
        }
    });
}

#[test]
fn keyspaces_come_change_and_go() {
    let mut cluster = Cluster::start("memory");
    let hosts: Vec<String> = (1..=3).map(|host| cluster.grpc(host)).collect();
    let names = || {
        let list = block_on(async { client(&hosts).admin().list().await.expect("it is told") });
        list.into_iter().map(|keyspace| keyspace.name).collect::<Vec<String>>()
    };
    let first = block_on(async {
        let admin = client(&hosts).admin();
        admin.create("carts", "causal", &[("partitions", "9")]).await.expect("it is made");
        admin.create("sessions", "", &[("value", "1KiB")]).await.expect("it is made");
        let taken = admin.create("carts", "linearizable", &[]).await;
        assert_eq!(kind(taken), Kind::Exists);
        let carts = admin.show("carts").await.expect("it is there");
        assert_eq!((carts.engine.as_str(), carts.partitions.len()), ("causal", 9));
        assert_eq!(kind(admin.show("none").await), Kind::NoKeyspace);
        assert_eq!(kind(admin.alter("sessions", &[("order", "key")]).await), Kind::Conflict);
        assert_eq!(kind(admin.replace("carts", 9, "1").await), Kind::Conflict);
        assert_eq!(kind(admin.replace("carts", 0, "nobody").await), Kind::Invalid);
        carts.created
    });
    assert_eq!(names(), ["default", "carts", "sessions"]);
    cluster.kill(&[1]);
    // Orders go on at another host.
    block_on(async {
        let admin = client(&hosts).admin();
        admin.alter("sessions", &[("value", "4KiB")]).await.expect("it is altered");
        let shown = admin.show("sessions").await.expect("it is there");
        let value = shown.settings.iter().find(|it| it.name == "value").expect("it has one");
        assert_eq!((value.value.as_str(), value.is_alterable), ("4096", true));
        admin.drop("carts").await.expect("it is dropped");
        assert_eq!(kind(admin.drop("carts").await), Kind::NoKeyspace);
        admin
            .create("carts", "causal", &[("partitions", "9"), ("replicas", "2")])
            .await
            .expect("made");
        assert!(admin.show("carts").await.expect("it is there").created > first);
    });
    until("both hosts know it", || {
        (2..=3).all(|host| {
            let one = [cluster.grpc(host)];
            block_on(async { client(&one).admin().show("carts").await.is_ok() })
        })
    });
}

#[test]
fn an_order_whose_answer_is_lost_is_unknown_and_not_given_again() {
    let cluster = Cluster::start("memory");
    let proxy = Proxy::before(cluster.grpc(1));
    let hosts = [proxy.address.clone(), cluster.grpc(2)];
    block_on(async {
        let admin = client(&hosts).admin();
        admin.list().await.expect("it is told");
        proxy.loses.store(true, Ordering::Release);
        let lost = admin.create("x", "linearizable", &[]).await;
        assert!(matches!(lost, Err(ClientError::OutcomeUnknown { .. })), "{lost:?}");
        assert!(!proxy.loses.load(Ordering::Acquire), "an answer was lost");
    });
    // It was taken all the same, once.
    until("it is there", || {
        block_on(async { client(&[cluster.grpc(2)]).admin().show("x").await.is_ok() })
    });
    let again = block_on(async { client(&hosts).admin().create("x", "linearizable", &[]).await });
    assert_eq!(kind(again), Kind::Exists);
}
