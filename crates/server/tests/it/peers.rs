//! Peers that send garbage or stand still: turned away or dropped for, counted, and no more.

use crate::client::{Client, beside_bystanders};
use crate::cluster::{Cluster, until};
use crate::load::Load;
use bytes::BytesMut;
use quorate_doors::resp::client::write_command;
use quorate_kernel::rng::Rng;
use rustix::process::Signal;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// The first bytes between hosts: magic, version, cluster, node, start, for node, settings,
/// run, and what is known of the other: flags, highest start, start, run and batch seen.
const HELLO_BYTES: usize = 82;
const KNOWN_AT: usize = 57;
/// The start that a false host shows: above that of the host in whose place it is.
const FAKE_START: u32 = 2;
const HANDSHAKES: &str = "quorate_rejected_total{reason=\"handshake\"}";
const FRAMES: &str = "quorate_rejected_total{reason=\"frame\"}";

/// Waits until the other side closes; whatever it sends on the way is not looked at.
fn must_close(mut stream: TcpStream) {
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
    let mut piece = [0; 64 * 1024];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return,
            Err(error) => panic!("the host did not close: {error}"),
        }
    }
}

fn send(address: &str, bytes: &[u8]) {
    let mut stream = TcpStream::connect(address).expect("the door is open");
    stream.write_all(bytes).expect("the host reads");
    must_close(stream);
}

/// The hosts from the lowest node to the highest: of two, the lower one dials.
fn by_node(cluster: &Cluster) -> Vec<usize> {
    let mut hosts = vec![1, 2, 3];
    hosts.sort_by_key(|host| cluster.status(*host)["node"].as_str().map(str::to_owned));
    hosts
}

/// Waits in the place of a host that is away until another one dials, and takes its hello.
fn dialled(listener: &TcpListener) -> (TcpStream, [u8; HELLO_BYTES]) {
    let (mut stream, _) = listener.accept().expect("a host dials");
    let mut hello = [0; HELLO_BYTES];
    stream.read_exact(&mut hello).expect("a host that dials says hello");
    (stream, hello)
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
        let (first, hello) = dialled(&listener);
        drop(first);
        let door = cluster.cluster(order[1]);
        let before = cluster.metric(order[1], HANDSHAKES);
        let mut rng = Rng::new(3);
        let random: Vec<u8> = (0..HELLO_BYTES).map(|_| rng.next().to_le_bytes()[0]).collect();
        let mut foreign = hello;
        foreign[5] ^= 1;
        let mut later = hello;
        later[4] = 99;
        for bytes in [&random[..], &[b'*'; HELLO_BYTES], &foreign, &later] {
            send(&door, bytes);
        }
        until("each is counted", || cluster.metric(order[1], HANDSHAKES) >= before + 4);

        let frames: u64 = [low, order[1]].iter().map(|host| cluster.metric(*host, FRAMES)).sum();
        for garbage in [&u32::MAX.to_le_bytes()[..], &[0; 64], &[0xff; 5000]] {
            let (mut stream, hello) = dialled(&listener);
            stream.write_all(&answer(&hello)).expect("the host reads");
            // It may have closed before all of it was sent.
            drop(stream.write_all(garbage));
            must_close(stream);
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
