//! The Rust client against real hosts: one that dies, answers that are lost, a start that forgot.

use crate::support::cluster::{Cluster, until};
use bytes::Bytes;
use quorate_client::v1::Kind;
use quorate_client::{Client, ClientError, Scan, Settings, Transaction};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

pub fn client(hosts: &[String]) -> Client {
    // Long enough for a busy machine; nothing here waits for it to pass.
    let settings = Settings { timeout: Duration::from_secs(60), ..Settings::default() };
    Client::with(hosts, settings).expect("addresses")
}

#[test]
fn calls_go_on_at_another_host_when_one_dies() {
    let mut cluster = Cluster::start("memory");
    let hosts: Vec<String> = (1..=3).map(|host| cluster.grpc(host)).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let keyspace = runtime.block_on(async {
        let keyspace = client(&hosts).keyspace("default");
        for number in 0..40 {
            let name = format!("key-{number:02}");
            keyspace.put(name.clone(), name).await.expect("it is written");
        }
        keyspace
    });
    cluster.kill(&[1]);
    runtime.block_on(async {
        assert_eq!(keyspace.get("key-07").await, Ok(Some(Bytes::from_static(b"key-07"))));
        assert_eq!(keyspace.put("key-07", "new").await, Ok(()));
        assert_eq!(keyspace.delete("key-00").await, Ok(true));
        assert_eq!(keyspace.delete("key-00").await, Ok(false));
        let keys = ["key-00", "key-07"].map(|key| Bytes::from_static(key.as_bytes()));
        let both = keyspace.batch_get(keys).await.expect("they are read");
        assert_eq!(both, [None, Some(Bytes::from_static(b"new"))]);
        let scan = Scan { with_values: true, page_keys: 7, ..Scan::default() };
        let mut all = keyspace.scan(scan).all().await.expect("it is listed");
        all.sort_by(|one, other| one.key.cmp(&other.key));
        assert_eq!(all.len(), 39);
        assert_eq!(all[0].value.as_deref(), Some(&b"key-01"[..]));
        let both = Transaction::new().get("key-07").put("key-08", "v");
        let refused = keyspace.transact(both).await.expect_err("its engine has none");
        assert_eq!(refused.kind(), Some(Kind::Unsupported), "{refused}");
        let none = client(&hosts).keyspace("none").get("k").await.expect_err("there is none");
        assert_eq!(none.kind(), Some(Kind::NoKeyspace));
    });
}

/// Between a client and a host: passes bytes on, until it is told to lose an answer.
pub struct Proxy {
    pub address: String,
    /// The next bytes that the host sends are not passed on, but the connection is cut.
    pub loses: Arc<AtomicBool>,
    /// New connections wait.
    holds: Arc<AtomicBool>,
}

impl Proxy {
    pub fn before(host: String) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound").to_string();
        let [loses, holds] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let (is_losing, is_holding) = (Arc::clone(&loses), Arc::clone(&holds));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                until("connections are passed on", || !is_holding.load(Ordering::Acquire));
                let (Ok(near), Ok(far)) = (stream, TcpStream::connect(&host)) else { continue };
                let (near_too, far_too) = (near.try_clone(), far.try_clone());
                let (near_too, far_too) = (near_too.expect("a socket"), far_too.expect("a socket"));
                let is_losing = Arc::clone(&is_losing);
                std::thread::spawn(move || pass(near, far, || false));
                std::thread::spawn(move || {
                    pass(far_too, near_too, || is_losing.swap(false, Ordering::AcqRel));
                });
            }
        });
        Proxy { address, loses, holds }
    }
}

/// Passes bytes on until either side closes or `is_lost` says of some that they are lost.
fn pass(mut from: TcpStream, mut to: TcpStream, is_lost: impl Fn() -> bool) {
    let mut piece = [0; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut piece) {
        if is_lost() || to.write_all(&piece[..count]).is_err() {
            break;
        }
    }
    for stream in [from, to] {
        // It may be closed already.
        let _ = stream.shutdown(Shutdown::Both);
    }
}

fn puts(cluster: &Cluster, host: usize) -> u64 {
    let name = "quorate_requests_total{keyspace=\"default\",engine=\"linearizable\",op=\"put\",\
                outcome=\"ok\"}";
    cluster.metric(host, name)
}

#[test]
fn a_write_whose_answer_is_lost_is_done_once() {
    let cluster = Cluster::start("memory");
    let proxy = Proxy::before(cluster.grpc(1));
    block_on(async {
        let keyspace = client(std::slice::from_ref(&proxy.address)).keyspace("default");
        keyspace.put("k", "first").await.expect("it is written");
        for round in 1..=5 {
            let before = puts(&cluster, 1);
            proxy.loses.store(true, Ordering::Release);
            let value = format!("round {round}");
            assert_eq!(keyspace.put("k", value.clone()).await, Ok(()));
            assert!(!proxy.loses.load(Ordering::Acquire), "an answer was lost");
            assert_eq!(puts(&cluster, 1) - before, 1, "it was done once");
            assert_eq!(keyspace.get("k").await, Ok(Some(Bytes::from(value))));
        }
    });
}

#[test]
fn a_register_that_is_taken_for_a_causal_key_is_written_once() {
    let cluster = Cluster::start("memory");
    let proxy = Proxy::before(cluster.grpc(1));
    let hosts = [proxy.address.clone(), cluster.grpc(2)];
    let all = || (1..=2).map(|host| puts(&cluster, host)).sum::<u64>();
    block_on(async {
        let keyspace = client(&hosts).causal("default");
        keyspace.put("k", "first", "").await.expect("it is written");
        let before = all();
        proxy.loses.store(true, Ordering::Release);
        // The second host is asked too, and does nothing; the first one tells what it did.
        assert_eq!(keyspace.put("k", "second", "").await, Ok(Bytes::new()));
        assert!(!proxy.loses.load(Ordering::Acquire), "an answer was lost");
        assert_eq!(all() - before, 1);
    });
}

#[test]
fn a_write_that_a_start_forgot_is_unknown() {
    let mut cluster = Cluster::start("memory");
    let proxy = Proxy::before(cluster.grpc(1));
    let hosts = [proxy.address.clone()];
    block_on(async { client(&hosts).keyspace("default").put("k", "v").await.expect("written") });
    let ((ready, begun), (go, told)) = (channel(), channel());
    let writer = std::thread::spawn(move || {
        block_on(async {
            let keyspace = client(&hosts).keyspace("default");
            keyspace.put("k", "before").await.expect("it is written");
            ready.send(()).expect("the test waits");
            told.recv().expect("the test goes on");
            keyspace.put("k", "lost").await
        })
    });
    // The host restarts with the second write's answer on its way, which is lost.
    begun.recv().expect("the writer has begun");
    proxy.holds.store(true, Ordering::Release);
    proxy.loses.store(true, Ordering::Release);
    go.send(()).expect("the writer waits");
    until("an answer is lost", || !proxy.loses.load(Ordering::Acquire));
    cluster.kill(&[1]);
    cluster.restart(1);
    proxy.holds.store(false, Ordering::Release);
    let outcome = writer.join().expect("the writer ends");
    assert!(matches!(outcome, Err(ClientError::OutcomeUnknown { .. })), "{outcome:?}");
}
