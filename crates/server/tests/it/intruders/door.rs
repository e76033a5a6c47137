//! The cluster door: who does not prove to know the secret is told nothing and changes nothing.

use crate::intruders::intruder::{
    HELLO_BYTES, Intruder, KNOWN_AT, PREFACE, must_close, secret_of, send,
};
use crate::intruders::peers::by_node;
use crate::support::client::Client;
use crate::support::cluster::{Cluster, until};
use crate::support::load::Load;
use crate::support::run::{command, quorate};
use bytes::Bytes;
use quorate_host::proof::{self, MESSAGE_BYTES, Purpose};
use quorate_kernel::ids::{Incarnation, LaneId, NodeId, Start};
use quorate_kernel::limits::HEADER_BYTES_MAX;
use quorate_kernel::wire::{frame_length, frame_of, frame_source};
use quorate_store::Secret;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::time::Duration;

const HANDSHAKES: &str = "quorate_rejected_total{reason=\"handshake\"}";
const FRAMES: &str = "quorate_rejected_total{reason=\"frame\"}";
/// The secret of nobody.
const FOREIGN: Secret = Secret([3; 32]);
/// How long a large value may take.
const SOON: Duration = Duration::from_secs(60);
/// How many operations a load does between two steps.
const SOME: usize = 200;

fn secret(cluster: &Cluster) -> Secret {
    secret_of(&cluster.place().join("data/cluster.secret"))
}

/// What a host says of another one.
fn peer_of<'a>(status: &'a serde_json::Value, door: &str) -> &'a serde_json::Value {
    let peers = status["peers"].as_array().expect("a list of peers");
    peers.iter().find(|peer| peer["address"] == door).expect("the peer is known")
}

fn is_up(cluster: &Cluster, host: usize, peer: usize) -> bool {
    peer_of(&cluster.status(host), &cluster.cluster(peer))["up"] == true
}

/// A hello as a program can put it together from what `/status` tells everybody.
fn forged(cluster: &Cluster, from: usize, to: usize, start: u32) -> [u8; HELLO_BYTES] {
    let (other, status) = (cluster.status(from), cluster.status(to));
    let number = |value: &serde_json::Value, digits: &str| {
        let text = value[digits].as_str().expect("an id");
        u128::from_str_radix(text, 16).expect("hexadecimal")
    };
    let node = |value| number(value, "node") as u64;
    let mut hello = [0; HELLO_BYTES];
    hello[..4].copy_from_slice(b"QRTE");
    hello[4] = quorate_kernel::wire::VERSION;
    hello[5..21].copy_from_slice(&number(&status, "cluster").to_le_bytes());
    hello[21..29].copy_from_slice(&node(&other).to_le_bytes());
    hello[29..33].copy_from_slice(&start.to_le_bytes());
    hello[33..41].copy_from_slice(&node(&status).to_le_bytes());
    hello
}

#[test]
fn a_host_without_the_secret_is_refused_and_harms_nobody() {
    let mut cluster = Cluster::start("sync");
    let load = Load::start(cluster.doors());
    load.more(SOME);
    cluster.kill(&[3]);
    let own = cluster.data(3).join("cluster.secret");
    fs::write(&own, "5".repeat(64)).expect("a place");
    cluster.launch(3);
    let refused = |host: usize| cluster.metric(host, HANDSHAKES);
    until("both sides see that it knows another secret", || {
        [1, 2, 3].iter().all(|host| {
            let (peer, others) = (cluster.cluster(3), [cluster.cluster(1), cluster.cluster(2)]);
            let status = cluster.status(*host);
            match host {
                3 => others.iter().all(|other| peer_of(&status, other)["up"] == false),
                _ => peer_of(&status, &peer)["up"] == false && refused(*host) > 0,
            }
        })
    });
    until("it is told so", || {
        let said = [1, 2, 3].map(|host| cluster.said(host)).concat();
        said.contains("does not know this cluster's secret")
            && said.contains("refuses the secret of this host")
    });
    load.more_on(&[1, 2], SOME);
    let said = quorate(&["get", "key-1", "--endpoint", &cluster.resp(3)]);
    assert_ne!(said.code, 0, "it serves nothing: {said:?}");
    fs::remove_file(&own).expect("it was there");
    until("it says that the file is gone", || cluster.said(3).contains("secrets_not_read"));
    assert!(!is_up(&cluster, 1, 3), "that changes nothing");
    fs::write(&own, proof::secret::text(&secret(&cluster))).expect("a place");
    until("the cluster's secret lets it in, without a start", || {
        (1..=2).all(|host| is_up(&cluster, host, 3) && is_up(&cluster, 3, host))
    });
    cluster.await_ready(3);
    load.more(SOME);
    load.finish(&[1, 2, 3]).must_hold(3 * SOME);
}

#[test]
fn what_everybody_knows_of_a_host_shuts_it_out_from_nowhere() {
    let mut cluster = Cluster::start("sync");
    let door = cluster.cluster(1);
    let hello = forged(&cluster, 3, 1, 1_000_000);
    cluster.kill(&[3]);
    let before = cluster.metric(1, HANDSHAKES);
    let (_, wrong) = proof::ask(Purpose::Link, &FOREIGN);
    let (_, other) = proof::ask(Purpose::Join, &secret(&cluster));
    let old = [&hello[..4], &[3], &hello[5..]].concat();
    let asked = [&PREFACE[..], &wrong, &hello].concat();
    let elsewhere = [&PREFACE[..], &other, &hello].concat();
    let bare = [&PREFACE[..], &hello].concat();
    for bytes in [&hello[..], &old, &asked, &elsewhere, &bare] {
        send(&door, bytes);
    }
    until("each is counted", || cluster.metric(1, HANDSHAKES) >= before + 5);
    assert!(Intruder::dial(&door, &FOREIGN).is_none());
    // Nor does it help to hold all places for those who have said nothing yet.
    let silent: Vec<TcpStream> =
        (0..200).map(|_| TcpStream::connect(&door).expect("the door is open")).collect();
    cluster.restart(3);
    until("the real one is let in", || is_up(&cluster, 1, 3) && is_up(&cluster, 3, 1));
    drop(silent);
    cluster.kill(&[3]);
    cluster.restart(3);
    until("also in its next start", || is_up(&cluster, 1, 3));
    let said = cluster.said(1);
    assert!(!said.contains("was copied or put back"), "{said}");
}

/// All that a host which knows the secret once said to another, said again: by somebody who has
/// heard it and does not know the secret.
#[test]
fn a_recorded_connection_is_refused() {
    let mut cluster = Cluster::start("sync");
    let secret = secret(&cluster);
    let order = by_node(&cluster);
    let (host, away) = (order[0], order[2]);
    let start = cluster.status(away)["start"].as_u64().expect("a number");
    let mut hello = forged(&cluster, away, host, u32::try_from(start).expect("few starts") + 1);
    cluster.kill(&[away]);
    let listener = TcpListener::bind(cluster.cluster(away)).expect("its host is away");
    let (theirs, _) = Intruder::dialled(&listener, &secret).greeted().expect("it says hello");
    drop(listener);
    // What hosts must agree on, a host tells whoever knows the secret.
    hello[41..49].copy_from_slice(&theirs[41..49]);
    let door = cluster.cluster(host);
    let mut first = Intruder::dial(&door, &secret).expect("it knows the secret");
    first.greet(&hello, false);
    first.greeted().expect("it is welcome");
    until("it is taken for the host that is away", || is_up(&cluster, host, away));
    let said = first.sent.clone();
    drop(first);
    until("it is gone", || !is_up(&cluster, host, away));
    let connected = |cluster: &Cluster| cluster.said(host).matches("peer_up").count();
    let (before, once) = (cluster.metric(host, HANDSHAKES), connected(&cluster));
    for _ in 0..3 {
        send(&door, &said);
    }
    until("each is counted", || cluster.metric(host, HANDSHAKES) >= before + 3);
    assert!(!is_up(&cluster, host, away), "nobody was taken for the host that is away");
    assert_eq!(connected(&cluster), once, "{}", cluster.said(host));
}

/// Who stands where a host stood is asked for the proof before it is told anything.
#[test]
fn a_host_that_dials_a_stranger_tells_it_nothing() {
    let mut cluster = Cluster::start("sync");
    let order = by_node(&cluster);
    let (host, away) = (order[0], order[2]);
    let forged = forged(&cluster, away, host, 9);
    cluster.kill(&[away]);
    let listener = TcpListener::bind(cluster.cluster(away)).expect("its host is away");
    let (mut stream, _) = listener.accept().expect("a host dials");
    let mut first = [0; PREFACE.len() + MESSAGE_BYTES];
    stream.read_exact(&mut first).expect("it asks for a proof");
    stream.write_all(&[&PREFACE[..], &[9; MESSAGE_BYTES], &forged].concat()).expect("it reads");
    must_close(stream);
    // Both others dial; either may have been the first.
    let says_why = |host| cluster.said(host).contains("refuses the secret of this host");
    until("it says why", || says_why(order[0]) || says_why(order[1]));
    drop(listener);
    cluster.restart(away);
    until("the real one is let in", || is_up(&cluster, host, away));
}

#[test]
fn one_host_that_wants_it_has_its_connections_encrypted() {
    let mut cluster = Cluster::create("memory");
    // It is many records long, and encryption takes its time in a build without optimizations.
    cluster.set("limits.request_timeout=60s");
    cluster.launch(1);
    cluster.launch_with(2, &["--set", "cluster.encrypt=always"]);
    cluster.launch(3);
    (1..=3).for_each(|host| cluster.await_ready(host));
    let load = Load::start(cluster.doors());
    load.more(SOME);
    load.finish(&[1, 2, 3]).must_hold(SOME);
    let value = vec![b'v'; 1 << 20];
    let mut client = Client::connect(&cluster.resp(1), SOON).expect("it runs");
    let reply = client.ask(&[b"SET", b"large", &value]).expect("the host answers");
    assert!(reply.error_code().is_none(), "{reply:?}");
    for host in 1..=3 {
        let mut client = Client::connect(&cluster.resp(host), SOON).expect("it runs");
        let reply = client.ask(&[b"GET", b"large"]).expect("the host answers");
        assert_eq!(reply.as_bytes().map(|bytes| bytes.to_vec()), Some(value.clone()));
    }
}

/// What a host says on a connection where one of the two wants encryption, and where none does.
#[test]
fn frames_are_records_where_one_side_wants_it_and_plain_where_none_does() {
    let mut cluster = Cluster::start("sync");
    let secret = secret(&cluster);
    let order = by_node(&cluster);
    let away = order[2];
    let start = cluster.status(away)["start"].as_u64().expect("a number");
    let mut start = u32::try_from(start).expect("few starts");
    cluster.kill(&[away]);
    let listener = TcpListener::bind(cluster.cluster(away)).expect("its host is away");
    for encrypts in [true, false] {
        let mut one = Intruder::dialled(&listener, &secret);
        let (theirs, wants) = one.greeted().expect("it says hello");
        assert!(!wants, "both are on this machine");
        start += 1;
        let mut hello = theirs;
        hello[21..29].copy_from_slice(&theirs[33..41]);
        hello[29..33].copy_from_slice(&start.to_le_bytes());
        hello[33..41].copy_from_slice(&theirs[21..29]);
        hello[KNOWN_AT..].fill(0);
        one.greet(&hello, encrypts);
        let frame = if encrypts {
            one.record().expect("it speaks")
        } else {
            let mut frame = vec![0; 43];
            one.stream.read_exact(&mut frame).expect("it speaks");
            frame
        };
        assert!(frame_length(&frame).is_ok_and(|length| length.is_some()), "{frame:?}");
        let source = frame_source(&frame).expect("a whole prefix").node;
        assert_eq!(source.0.to_le_bytes(), theirs[21..29], "its own frame");
    }
}

/// Runs a step of a change on a host, and waits until the host accepts so many secrets.
fn step(cluster: &Cluster, host: usize, args: &[&str], accepted: usize) {
    let data = cluster.data(host).display().to_string();
    let said = quorate(&[&["secret"], args, &["--data", &data]].concat());
    assert_eq!(said.code, 0, "{said:?}");
    until("the host has taken it", || {
        let status = cluster.status(host);
        status["secrets"].as_array().is_some_and(|secrets| secrets.len() == accepted)
    });
}

#[test]
fn the_secret_is_changed_while_the_cluster_runs() {
    let mut cluster = Cluster::start("sync");
    let load = Load::start(cluster.doors());
    let old = secret(&cluster);
    let file = cluster.place().join("new.secret").display().to_string();
    assert_eq!(quorate(&["secret", "make", &file]).code, 0);
    assert_eq!(quorate(&["secret", "make", &file]).code, 2, "it is not drawn twice");
    let new = secret_of(file.as_ref());
    for host in 1..=3 {
        step(&cluster, host, &["add", &file], 2);
        load.more(SOME / 4);
        // Half of the hosts know it, and one of them is started: all the same they meet.
        if host == 2 {
            cluster.kill(&[1]);
            cluster.restart(1);
        }
    }
    for host in 1..=3 {
        assert!(Intruder::dial(&cluster.cluster(host), &old).is_some(), "both are accepted");
        // The cluster door takes up a change a moment after the file was read.
        until("both are accepted", || Intruder::dial(&cluster.cluster(host), &new).is_some());
    }
    for host in 1..=3 {
        step(&cluster, host, &["settle"], 1);
        load.more(SOME / 4);
    }
    let all = || (1..=3).flat_map(|host| (1..=3).map(move |peer| (host, peer)));
    until("all meet by the new one", || {
        all().filter(|(host, peer)| host != peer).all(|(host, peer)| is_up(&cluster, host, peer))
    });
    for host in 1..=3 {
        until("the old one is refused", || Intruder::dial(&cluster.cluster(host), &old).is_none());
    }
    cluster.kill(&[2]);
    cluster.restart(2);
    load.more(SOME);
    let own = cluster.cluster(5);
    let joins = |secret: &str| {
        let (data, seed) = (cluster.place().join("joiner"), cluster.http(1));
        let (data, me) = (data.display().to_string(), std::process::id().to_string());
        let mut args = vec!["server", "--data", &data, "--join", &seed, "--secret-file", secret];
        args.extend(["--cluster", &own, "--http", "127.0.0.1:0"]);
        args.extend(["--resp", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--exit-with", &me]);
        args.extend(["--zookeeper", "127.0.0.1:0"]);
        let mut process = command(&args);
        process.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the binary starts")
    };
    let mut refused = joins(&cluster.place().join("data/cluster.secret").display().to_string());
    assert_eq!(refused.wait().expect("it ends").code(), Some(1), "the old one lets nobody join");
    let mut joined = joins(&file);
    let mut line = String::new();
    let output = joined.stdout.take().expect("a pipe was asked for");
    BufReader::new(output).read_line(&mut line).expect("the output is text");
    assert!(line.contains("is ready"), "{line}");
    joined.kill().expect("it runs");
    joined.wait().expect("it ends");
    load.finish(&[1, 2, 3]).must_hold(2 * SOME);
}

/// A host speaks for itself alone, whatever it proved to know.
#[test]
fn a_frame_in_another_hosts_name_is_dropped() {
    let mut cluster = Cluster::start("sync");
    let secret = secret(&cluster);
    let order = by_node(&cluster);
    let (host, other, away) = (order[0], order[1], order[2]);
    let start = cluster.status(away)["start"].as_u64().expect("a number");
    let start = u32::try_from(start).expect("few starts") + 1;
    let node = |cluster: &Cluster, host: usize| {
        let text = cluster.status(host)["node"].as_str().map(str::to_owned);
        NodeId(u64::from_str_radix(&text.expect("an id"), 16).expect("hexadecimal"))
    };
    let itself = Incarnation { node: node(&cluster, away), start: Start(start) };
    cluster.kill(&[away]);
    let listener = TcpListener::bind(cluster.cluster(away)).expect("its host is away");
    let mut false_host = loop {
        let mut one = Intruder::dialled(&listener, &secret);
        let (theirs, _) = one.greeted().expect("it says hello");
        let hello = forged(&cluster, host, host, 0);
        if theirs[21..29] == hello[21..29] {
            let mut answer = theirs;
            answer[21..29].copy_from_slice(&theirs[33..41]);
            answer[29..33].copy_from_slice(&start.to_le_bytes());
            answer[33..41].copy_from_slice(&theirs[21..29]);
            answer[KNOWN_AT..].fill(0);
            one.greet(&answer, false);
            break one;
        }
    };
    until("it is taken for the host that is away", || is_up(&cluster, host, away));
    let before = cluster.metric(host, FRAMES);
    let source = Incarnation { node: node(&cluster, other), start: Start(1_000_000) };
    let target = Incarnation { node: node(&cluster, host), start: Start(0) };
    let frame = frame_of(LaneId::CATALOG, source, target, Bytes::new(), Default::default());
    for _ in 0..5 {
        false_host.stream.write_all(&frame).expect("the host reads");
    }
    // A head as long as any may be, and longer than the catalog's: in its own name.
    let head = Bytes::from(vec![1; HEADER_BYTES_MAX]);
    let frame = frame_of(LaneId::CATALOG, itself, target, head, Default::default());
    false_host.stream.write_all(&frame).expect("the host reads");
    until("each is counted", || cluster.metric(host, FRAMES) >= before + 6);
    assert!(is_up(&cluster, host, away) && is_up(&cluster, host, other), "and no more");
    // The other one's next start is far below the one that was claimed for it.
    cluster.kill(&[other]);
    cluster.restart(other);
    until("it is not shut out", || is_up(&cluster, host, other));
}
