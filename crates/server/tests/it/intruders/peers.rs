//! Peers that send garbage or stand still: turned away or dropped for, counted, and no more.

use crate::intruders::intruder::{
    HELLO_BYTES, Intruder, KNOWN_AT, PREFACE, must_close, secret_of, send,
};
use crate::support::client::{Client, beside_bystanders};
use crate::support::cluster::{Cluster, until};
use crate::support::load::Load;
use bytes::BytesMut;
use quorate_doors::resp::client::write_command;
use quorate_kernel::rng::Rng;
use rustix::process::Signal;
use std::io::Write;
use std::net::TcpListener;

/// The start that a false host shows: above that of the host in whose place it is.
const FAKE_START: u32 = 2;
const HANDSHAKES: &str = "quorate_rejected_total{reason=\"handshake\"}";
const FRAMES: &str = "quorate_rejected_total{reason=\"frame\"}";

/// The hosts from the lowest node to the highest: of two, the lower one dials.
pub fn by_node(cluster: &Cluster) -> Vec<usize> {
    let mut hosts = vec![1, 2, 3];
    hosts.sort_by_key(|host| cluster.status(*host)["node"].as_str().map(str::to_owned));
    hosts
}

/// The hello that answers another: its sender and target change places.
fn answer(hello: &[u8; HELLO_BYTES]) -> [u8; HELLO_BYTES] {
    let mut answer = *hello;
    answer[21..29].copy_from_slice(&hello[33..41]);
    answer[29..33].copy_from_slice(&FAKE_START.to_le_bytes());
    answer[33..41].copy_from_slice(&hello[21..29]);
    answer[KNOWN_AT..].fill(0);
    answer
}

#[test]
fn a_peer_that_sends_garbage_is_turned_away_and_counted() {
    let mut cluster = Cluster::start("sync");
    let order = by_node(&cluster);
    let (low, away) = (order[0], order[2]);
    let doors = [cluster.resp(order[0]), cluster.resp(order[1])];
    cluster.kill(&[away]);
    beside_bystanders(&doors, || {
        let listener = TcpListener::bind(cluster.cluster(away)).expect("its host is away");
        let secret = secret_of(&cluster.place().join("data/cluster.secret"));
        let (hello, _) = Intruder::dialled(&listener, &secret).greeted().expect("it says hello");
        let door = cluster.cluster(order[1]);
        let before = cluster.metric(order[1], HANDSHAKES);
        let mut rng = Rng::new(3);
        let random: Vec<u8> = (0..HELLO_BYTES).map(|_| rng.next().to_le_bytes()[0]).collect();
        let mut foreign = hello;
        foreign[5] ^= 1;
        let mut later = PREFACE.to_vec();
        later[4] = 99;
        for bytes in [&random[..], &[b'*'; HELLO_BYTES], &later] {
            send(&door, bytes);
        }
        // One of a cluster with the same secret, as of a copied directory.
        let mut stranger = Intruder::dial(&door, &secret).expect("it knows the secret");
        stranger.greet(&foreign, false);
        assert_eq!(stranger.greeted(), None);
        until("each is counted", || cluster.metric(order[1], HANDSHAKES) >= before + 4);

        let frames: u64 = [low, order[1]].iter().map(|host| cluster.metric(*host, FRAMES)).sum();
        for garbage in [&u32::MAX.to_le_bytes()[..], &[0; 64], &[0xff; 5000]] {
            let mut false_host = Intruder::dialled(&listener, &secret);
            let (hello, _) = false_host.greeted().expect("it says hello");
            false_host.greet(&answer(&hello), false);
            // It may have closed before all of it was sent.
            drop(false_host.stream.write_all(garbage));
            must_close(false_host.stream);
        }
        until("each is counted", || {
            let now: u64 = [low, order[1]].iter().map(|host| cluster.metric(*host, FRAMES)).sum();
            now >= frames + 3
        });
    });
    // Its next start is the false one's, so it is turned away until it has one that is higher.
    cluster.launch(away);
    until("its start is raised", || cluster.said(away).contains("host_starting"));
    cluster.kill(&[away]);
    cluster.restart(away);
    beside_bystanders(&cluster.doors(), || {});
    for host in 1..=3 {
        assert!(cluster.is_running(host), "{}", cluster.said(host));
        assert!(cluster.resident_mib(host) < 300);
    }
}

/// Writes values of 1 KB without waiting for each, until it is so.
fn flood(address: &str, mut is_enough: impl FnMut() -> bool) {
    const BURST: usize = 500;
    let mut client = Client::to(address);
    let value = [b'v'; 1024];
    until("the queue is full", || {
        let mut burst = BytesMut::new();
        for number in 0..BURST {
            let key = format!("flood-{number}");
            write_command(&mut burst, &[b"SET", key.as_bytes(), &value]);
        }
        client.send(&burst).expect("the host reads");
        for _ in 0..BURST {
            client.reply().expect("the host answers");
        }
        is_enough()
    });
}

#[test]
fn a_frozen_peer_costs_a_bounded_queue_and_catches_up() {
    let mut cluster = Cluster::start("memory");
    let load = Load::start(cluster.doors());
    load.more(300);
    cluster.signal(3, Signal::STOP);
    let dropped =
        |cluster: &Cluster| cluster.metric(1, "quorate_peer_frames_dropped_total{peer=\"3\"}");
    let before = dropped(&cluster);
    let door = cluster.resp(1);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| flood(&door, || dropped(&cluster) > before));
        }
    });
    // The queue of 64 MiB, the caches, and what the allocator keeps.
    for host in 1..=2 {
        let resident = cluster.resident_mib(host);
        assert!(resident < 500, "host {host} takes {resident} MiB");
    }
    load.more(300);
    cluster.signal(3, Signal::CONT);
    until("the queue is empty", || {
        cluster.metric(1, "quorate_peer_queue_bytes{peer=\"3\"}") == 0
            && cluster.metric(1, "quorate_peer_up{peer=\"3\"}") == 1
    });
    let mut thawed = Client::to(&cluster.resp(3));
    until("the host that was frozen serves", || {
        let reply = thawed.ask(&[b"GET", b"flood-7"]).expect("the host answers");
        reply.error_code().is_none() && reply.as_bytes().is_some_and(|value| value.len() == 1024)
    });
    load.more(300);
    assert!((1..=3).all(|host| cluster.is_running(host)));
    load.finish(&[1, 2, 3]).must_hold(900);
}

/// What a host says is wrong with another.
fn trouble(cluster: &Cluster, host: usize, other: usize) -> String {
    let status = cluster.status(host);
    let peers = status["peers"].as_array().expect("a list of peers");
    let peer = peers.iter().find(|peer| peer["host"] == other).expect("it is known");
    peer["trouble"].as_str().expect("a text").to_owned()
}

#[test]
fn a_host_that_was_never_reached_is_logged_and_shown() {
    let mut cluster = Cluster::start("sync");
    // Something takes connections where the third host was, and never answers.
    cluster.kill(&[3]);
    let mute = TcpListener::bind(cluster.cluster(3)).expect("its host is away");
    cluster.kill(&[1]);
    cluster.restart(1);
    assert_eq!(trouble(&cluster, 1, 2), "");
    for host in [1, 2] {
        until("it is shown", || trouble(&cluster, host, 3).contains("no connection"));
        let said = cluster.said(host);
        assert_eq!(
            said.matches("\"event\":\"peer_unreached\"").count(),
            1,
            "it is told once: {said}"
        );
    }
    drop(mute);
    cluster.restart(3);
    until("it is over", || [1, 2].iter().all(|&host| trouble(&cluster, host, 3).is_empty()));
}
