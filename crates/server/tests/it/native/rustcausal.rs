//! The Rust client on causal keyspaces: siblings, contexts, merges, answers that are lost, and the
//! cart of its example.

use crate::command_line::dev::Dev;
use crate::native::rustclient::{Proxy, block_on, client};
use crate::support::cluster::until;
use crate::support::run::quorate;
use bytes::Bytes;
use quorate_client::v1::{Kind, Siblings};
use quorate_client::{Causal, Client, ClientError, Scan, Settings};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

#[path = "../../../../client/examples/cart.rs"]
#[allow(dead_code)] // Its `main` is for those who run it by hand.
mod cart;

fn text(values: &[Bytes]) -> Vec<String> {
    let mut all: Vec<String> =
        values.iter().map(|value| String::from_utf8_lossy(value).into_owned()).collect();
    all.sort_unstable();
    all
}

/// The values of a key at all its replicas.
async fn values(keyspace: &Causal, key: &'static str) -> Vec<String> {
    text(&keyspace.get_from(key, 3).await.expect("it is read").values)
}

/// What a key has before and after a merge that changes nothing. Replicas that compare what they
/// have forget what a context need not name any more; a write would change it each time.
async fn kept_as_it_is(keyspace: &Causal, joined: impl Fn(&[Bytes]) -> Option<Bytes>) -> Siblings {
    let deadline = Instant::now() + Duration::from_secs(300);
    loop {
        assert!(Instant::now() < deadline, "nothing was written");
        let before = keyspace.get("k").await.expect("it is read");
        keyspace.update("k", &joined).await.expect("it is there already");
        if keyspace.get("k").await.as_ref() == Ok(&before) {
            return before;
        }
    }
}

fn start() -> (tempfile::TempDir, Dev) {
    let place = tempfile::tempdir().expect("a temporary directory");
    let dev = Dev::start(place.path(), &["--durability", "memory"]);
    (place, dev)
}

#[test]
fn siblings_stay_until_somebody_has_seen_them() {
    let (_place, dev) = start();
    let hosts: Vec<String> = (1..=3).map(|host| dev.door(host, "grpc")).collect();
    block_on(async {
        let keyspace = client(&hosts).causal("causal");
        let absent = keyspace.get("k").await.expect("it is read");
        assert!(absent.values.is_empty());
        keyspace.put("k", "ale", "").await.expect("it is written");
        keyspace.put("k", "bread", "").await.expect("it is written");
        assert_eq!(values(&keyspace, "k").await, ["ale", "bread"]);
        let registers = client(&hosts).keyspace("causal");
        let several = registers.get("k").await.expect_err("two are no value");
        assert!(matches!(several, ClientError::Siblings(_)), "{several:?}");

        let seen = keyspace.get("k").await.expect("it is read").context;
        let next = keyspace.put("k", "both", seen.clone()).await.expect("it is written");
        keyspace.put("k", "late", seen.clone()).await.expect("it is written");
        assert_eq!(values(&keyspace, "k").await, ["both", "late"], "late has not seen both");
        keyspace.put("k", "more", next).await.expect("it is written");
        assert_eq!(values(&keyspace, "k").await, ["late", "more"]);
        let foreign = keyspace.put("other", "v", seen).await.expect_err("it is of another key");
        assert_eq!(foreign.kind(), Some(Kind::BadContext));

        let joined = |values: &[Bytes]| Some(Bytes::from(text(values).join("+")));
        let merged = keyspace.update("k", joined).await.expect("it is merged");
        assert_eq!(merged.as_deref(), Some(&b"late+more"[..]));
        assert_eq!(values(&keyspace, "k").await, ["late+more"]);
        let before = kept_as_it_is(&keyspace, joined).await;
        let deadline = Instant::now() + Duration::from_secs(300);
        // Another replica may have heard less of what the context names.
        loop {
            assert!(Instant::now() < deadline, "replicas come to agree");
            let listed = keyspace.scan(Scan { with_values: true, ..Scan::default() }).all().await;
            let listed = listed.expect("it is listed");
            assert_eq!(listed.len(), 1);
            let shown = listed[0].value.as_ref().expect("with its values");
            assert_eq!(shown.values, before.values);
            if *shown == before {
                break;
            }
        }
        let both = ["k", "none"].map(|key| Bytes::from_static(key.as_bytes()));
        let both = keyspace.batch_get(both).await.expect("they are read");
        assert_eq!([both[0].values.len(), both[1].values.len()], [1, 0]);
        assert_eq!(keyspace.update("k", |_| None).await, Ok(None));
        assert!(values(&keyspace, "k").await.is_empty());

        let carts = keyspace.merging(|values| Bytes::from(text(values).join(",")));
        assert_eq!(carts.get("m").await, Ok(None));
        keyspace.put("m", "ale", "").await.expect("it is written");
        keyspace.put("m", "bread", "").await.expect("it is written");
        assert_eq!(carts.get("m").await, Ok(Some(Bytes::from_static(b"ale,bread"))));
        let add = |now: Option<Bytes>| now.map(|now| Bytes::from([&now[..], b",tea"].concat()));
        carts.update("m", add).await.expect("it is written");
        assert_eq!(values(&keyspace, "m").await, ["ale,bread,tea"]);
        assert_eq!(carts.update("m", |_| None).await, Ok(None));
        assert_eq!(carts.update("m", |_| None).await, Ok(None), "there is nothing to delete");
        assert!(values(&keyspace, "m").await.is_empty());

        let registers = client(&hosts).causal("default");
        let none = registers.update("k", joined).await.expect_err("it is linearizable");
        assert_eq!(none, ClientError::NoSiblings);
    });
}

#[test]
fn a_causal_write_whose_answer_is_lost_goes_on_elsewhere_and_is_one_value() {
    let (_place, dev) = start();
    let proxy = Proxy::before(dev.door(1, "grpc"));
    let hosts = [proxy.address.clone(), dev.door(2, "grpc")];
    block_on(async {
        for round in 1..=3 {
            // A client begins at its first host.
            let keyspace = client(&hosts).causal("causal");
            keyspace.put("before", "v", "").await.expect("it is written");
            proxy.loses.store(true, Ordering::Release);
            let value = format!("round {round}");
            keyspace.put("k", value, "").await.expect("it is written");
            assert!(!proxy.loses.load(Ordering::Acquire), "an answer was lost");
            assert_eq!(values(&keyspace, "k").await.len(), round);
        }
    });
}

#[test]
fn a_host_that_hangs_does_not_use_up_the_time() {
    let (place, dev) = start();
    let hosts: Vec<String> = (1..=3).map(|host| dev.door(host, "grpc")).collect();
    let data = place.path().display().to_string();
    let ctl =
        |order: &str| assert_eq!(quorate(&["dev", "ctl", "--data", &data, order, "1"]).code, 0);
    block_on(async {
        // So short that no silent connection is given up in it.
        let settings = Settings { timeout: Duration::from_secs(7), ..Settings::default() };
        let [one, other] =
            [(); 2].map(|()| Client::with(&hosts, settings.clone()).expect("addresses"));
        for client in [&one, &other] {
            client.causal("causal").get("k").await.expect("it is read");
        }
        ctl("freeze");
        one.causal("causal").put("k", "v", "").await.expect("the next host writes it");
        let read = other.causal("causal").get_from("k", 2).await.expect("the next host reads it");
        assert_eq!(text(&read.values), ["v"]);
        ctl("thaw");
    });
}

#[test]
fn the_cart_of_the_example_loses_nothing() {
    let (place, dev) = start();
    let data = place.path().display().to_string();
    let network = |order: &str| {
        let mut all = vec!["dev", "ctl", "--data", &data];
        all.extend(order.split(' '));
        let said = quorate(&all);
        assert_eq!(said.code, 0, "{order}: {said:?}");
    };
    let hosts = [1, 2].map(|host| dev.door(host, "grpc"));
    let bought = block_on(cart::shop(&hosts[0], &hosts[1], network)).expect("they shop");
    let bought: Vec<String> = bought.into_iter().collect();
    assert_eq!(bought, ["ale", "bread", "cheese", "dates", "eggs", "figs"]);
    until("it is one value everywhere", || {
        let at = async |host| {
            let keyspace = client(&[dev.door(host, "grpc")]).causal("causal");
            keyspace.get(CART).await.expect("it is read").values.len()
        };
        (1..=3).all(|host| block_on(at(host)) == 1)
    });
}

const CART: &str = "cart/ann-and-bob";
