//! Whatever comes in at the cluster door: frames with odd contents of somebody who knows the
//! cluster's secret, and any bytes of somebody who does not, at each stage of a connection. No host
//! ends by it, and each counts what it refuses.
//!
//! Longer: `make fuzz`, which sets the variable below.

use crate::intruders::intruder::{HELLO_BYTES, Intruder, KNOWN_AT, PREFACE, must_close, secret_of};
use crate::intruders::peers::by_node;
use crate::support::client::Client;
use crate::support::cluster::{Cluster, answer, until};
use bytes::{Bytes, BytesMut};
use quorate_host::proof::MESSAGE_BYTES;
use quorate_kernel::ids::{Incarnation, LaneId, NodeId, Start};
use quorate_kernel::rng::Rng;
use quorate_kernel::wire::{Received, frame_length, frame_of};
use quorate_sim::forger::Forger;
use quorate_store::Secret;
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How many clusters each test harms, one after the other.
const ROUNDS: &str = "QUORATE_FORGED_ROUNDS";
/// How many forged frames each host gets in a round, and for how many real ones there is one.
const FRAMES: u64 = 1_000;
const ONE_IN: u64 = 2;
/// The same of what the ends of a connection say to each other, which is said all the time, and
/// whose nonsense closes it.
const LINK_ONE_IN: u64 = 16;
/// How many connections are tried without the secret in a round, each at every stage.
const TRIES: u64 = 40;
/// What a host may take, whatever comes.
const RESIDENT_MIB_MAX: u64 = 300;
const HANDSHAKES: &str = "quorate_rejected_total{reason=\"handshake\"}";
const REFUSED: &str = "quorate_rejected_total{reason=\"frame\"}";

fn rounds() -> u64 {
    let set = std::env::var(ROUNDS).ok();
    set.map_or(1, |text| text.parse().unwrap_or_else(|_| panic!("{ROUNDS} is no number: {text}")))
}

/// A host answers at every door: a command may be refused, but it is answered.
fn must_answer(cluster: &mut Cluster, host: usize) {
    assert!(cluster.is_running(host), "{}", cluster.said(host));
    for path in ["/livez", "/status", "/ring", "/keyspaces", "/metrics"] {
        let answer = answer(&cluster.http(host), path);
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
    }
    let mut client = Client::to(&cluster.resp(host));
    assert_eq!(client.told(&[b"PING"]), "PONG");
    for command in [&[&b"SET"[..], b"k", b"v"][..], &[b"GET", b"k"]] {
        client.ask(command).expect("an answer, or a refusal");
    }
    let resident = cluster.resident_mib(host);
    assert!(resident < RESIDENT_MIB_MAX, "host {host} takes {resident} MiB");
    let said = cluster.said(host);
    assert!(!said.contains("panicked"), "{said}");
}

/// Asks hosts for this and that, so that they have much to say to each other.
fn work(doors: &[String], is_over: &AtomicBool) {
    let mut rng = Rng::new(9);
    let mut clients: Vec<Client> = doors.iter().map(|door| Client::to(door)).collect();
    while !is_over.load(Ordering::Relaxed) {
        let at = rng.below(clients.len() as u64) as usize;
        let (key, number) = (format!("k{}", rng.below(20)), rng.below(6).to_string());
        let space = ["0", "1"][rng.below(2) as usize];
        let commands: [&[&[u8]]; 5] = [
            &[b"SELECT", space.as_bytes()],
            &[b"SET", key.as_bytes(), number.as_bytes()],
            &[b"GET", key.as_bytes()],
            &[b"DEL", key.as_bytes()],
            &[b"SCAN", b"0"],
        ];
        let command = commands[rng.below(commands.len() as u64) as usize];
        if clients[at].ask(command).is_err() {
            let Ok(client) = Client::connect(&doors[at], Duration::from_secs(10)) else { return };
            clients[at] = client;
        }
    }
}

/// One that stands in the place of a host that is away, and its connection to another one.
struct FalseHost {
    door: String,
    secret: Secret,
    hello: [u8; HELLO_BYTES],
    me: Incarnation,
    stream: TcpStream,
    input: BytesMut,
}

impl FalseHost {
    fn new(door: String, secret: Secret, hello: [u8; HELLO_BYTES], me: Incarnation) -> FalseHost {
        let stream = FalseHost::dial(&door, &secret, &hello).expect("it is welcome");
        FalseHost { door, secret, hello, me, stream, input: BytesMut::new() }
    }

    /// A connection that carries frames; none if the host does not want it, as when it does not
    /// know yet that the one before is lost.
    fn dial(door: &str, secret: &Secret, hello: &[u8; HELLO_BYTES]) -> Option<TcpStream> {
        let mut one = Intruder::dial(door, secret).expect("it knows the secret");
        one.greet(hello, false);
        let (_, encrypts) = one.greeted()?;
        assert!(!encrypts, "both are on this machine");
        Some(one.stream)
    }

    /// The next frame that the host says; none if it has closed.
    fn hear(&mut self) -> Option<Bytes> {
        let mut piece = [0; 64 * 1024];
        loop {
            let length = frame_length(&self.input).expect("a host sends frames");
            if let Some(length) = length.filter(|length| self.input.len() >= *length) {
                return Some(self.input.split_to(length).freeze());
            }
            let count = self.stream.read(&mut piece).ok().filter(|count| *count > 0)?;
            self.input.extend_from_slice(&piece[..count]);
        }
    }

    /// Connects again: what the two ends of a connection say to each other closes it if it is
    /// nonsense.
    fn meet_again(&mut self) {
        until("it may connect again", || {
            let met = FalseHost::dial(&self.door, &self.secret, &self.hello);
            met.map(|stream| (self.stream, self.input) = (stream, BytesMut::new())).is_some()
        });
    }

    /// Answers what the host says by forged frames, so many; returns what there was of each lane.
    fn forge(mut self, seed: u64) -> BTreeMap<LaneId, u64> {
        let (mut forger, mut rng) = (Forger::new(seed, ONE_IN), Rng::new(seed));
        while forger.forged.values().sum::<u64>() < FRAMES {
            let Some(frame) = self.hear() else {
                self.meet_again();
                continue;
            };
            let lane = Received::decode(frame.clone()).expect("a host sends frames").lane;
            if lane == LaneId::LINK && rng.below(LINK_ONE_IN) > 0 {
                continue;
            }
            let forged = forger.answer(&frame, self.me);
            if forged.is_some_and(|forged| self.stream.write_all(&forged).is_err()) {
                self.meet_again();
            }
        }
        forger.forged
    }
}

/// What a host that is away would say first, to one that it dials.
struct Away {
    cluster_and_settings: [u8; HELLO_BYTES],
    me: Incarnation,
}

impl Away {
    /// Learns it of a host that dials where another one was.
    fn of(cluster: &mut Cluster, away: usize, secret: &Secret) -> Away {
        let status = cluster.status(away);
        let start = status["start"].as_u64().expect("a number");
        let start = Start(u32::try_from(start).expect("few starts") + 1);
        cluster.kill(&[away]);
        let listener = TcpListener::bind(cluster.cluster(away)).expect("its host is away");
        let (theirs, _) = Intruder::dialled(&listener, secret).greeted().expect("it says hello");
        let node = u64::from_le_bytes(theirs[33..41].try_into().expect("eight bytes"));
        let me = Incarnation { node: NodeId(node), start };
        Away { cluster_and_settings: theirs, me }
    }

    fn hello(&self, to: NodeId) -> [u8; HELLO_BYTES] {
        let mut hello = self.cluster_and_settings;
        hello[21..29].copy_from_slice(&self.me.node.0.to_le_bytes());
        hello[29..33].copy_from_slice(&self.me.start.0.to_le_bytes());
        hello[33..41].copy_from_slice(&to.0.to_le_bytes());
        hello[KNOWN_AT..].fill(0);
        hello
    }
}

fn node_of(cluster: &Cluster, host: usize) -> NodeId {
    let status = cluster.status(host);
    let text = status["node"].as_str().expect("an id");
    NodeId(u64::from_str_radix(text, 16).expect("hexadecimal"))
}

fn with_both_engines() -> Cluster {
    let specs = ["--keyspace", "default=linearizable", "--keyspace", "carts=causal"];
    let mut cluster = Cluster::create_with("sync", &specs);
    cluster.start_all();
    cluster
}

/// One that knows the secret stands in the place of a host that is away, and answers what the
/// others say to it with frames of odd contents. They pass the checksum and come in its own name.
#[test]
fn forged_frames_end_no_host() {
    for round in 0..rounds() {
        let mut cluster = with_both_engines();
        let secret = secret_of(&cluster.place().join("data/cluster.secret"));
        let order = by_node(&cluster);
        let others = [order[0], order[1]];
        let away = Away::of(&mut cluster, order[2], &secret);
        let before = others.map(|host| cluster.metric(host, REFUSED));
        let (doors, is_over) = (others.map(|host| cluster.resp(host)), AtomicBool::new(false));
        let forged = std::thread::scope(|scope| {
            let worker = scope.spawn(|| work(&doors, &is_over));
            let forgers = others.map(|host| {
                let hello = away.hello(node_of(&cluster, host));
                let one = FalseHost::new(cluster.cluster(host), secret, hello, away.me);
                scope.spawn(move || one.forge(10 * round + host as u64))
            });
            let forged = forgers.map(|one| one.join().expect("it ends"));
            is_over.store(true, Ordering::Relaxed);
            worker.join().expect("it ends");
            forged
        });
        println!("round {round}: {forged:?}");
        for ((host, before), forged) in others.into_iter().zip(before).zip(forged) {
            let sent = forged.values().sum::<u64>();
            assert!(sent >= FRAMES, "{forged:?}: {}", cluster.said(host));
            assert!(cluster.is_running(host), "{}", cluster.said(host));
            until("what is refused is counted", || cluster.metric(host, REFUSED) > before);
            must_answer(&mut cluster, host);
        }
    }
}

/// Bytes of no meaning, or a piece of what was said with something changed.
fn garbled(rng: &mut Rng, said: &[u8]) -> Vec<u8> {
    let mut bytes = said.to_vec();
    let length = rng.below(400) as usize;
    match rng.below(5) {
        0 => bytes = (0..length).map(|_| rng.next() as u8).collect(),
        1 => bytes.truncate(rng.below(said.len() as u64) as usize),
        2 => bytes.extend((0..length).map(|_| rng.next() as u8)),
        _ => {
            for _ in 0..=rng.below(3) {
                let at = rng.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << rng.below(8);
            }
        }
    }
    bytes
}

/// Says something, and no more; whether the host has closed by then is its business.
fn say(stream: &mut TcpStream, bytes: &[u8]) {
    if let Err(error) = stream.write_all(bytes) {
        let is_closed = matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset);
        assert!(is_closed, "{error}");
    }
    drop(stream.shutdown(Shutdown::Write));
}

/// One that does not know the secret, but has heard all that a host which knows it once said: it
/// says it again with something changed, at each stage.
#[test]
fn any_bytes_at_each_stage_end_no_host() {
    for round in 0..rounds() {
        let mut cluster = Cluster::start("sync");
        let secret = secret_of(&cluster.place().join("data/cluster.secret"));
        let order = by_node(&cluster);
        let (low, host, place) = (order[0], order[1], order[2]);
        let away = Away::of(&mut cluster, place, &secret);
        let hello = away.hello(node_of(&cluster, host));
        let door = cluster.cluster(host);
        let mut heard = Intruder::dial(&door, &secret).expect("it knows the secret");
        heard.greet(&hello, false);
        heard.greeted().expect("it is welcome");
        let (proof, record) = heard.sent.split_at(PREFACE.len() + MESSAGE_BYTES);
        let mut rng = Rng::new(100 + round);
        let before = cluster.metric(host, HANDSHAKES);
        for _ in 0..TRIES {
            // In the place of the proof, and behind one that was heard, in that of the record.
            let mut stream = TcpStream::connect(&door).expect("the door is open");
            say(&mut stream, &garbled(&mut rng, proof));
            must_close(stream);
            let mut stream = TcpStream::connect(&door).expect("the door is open");
            say(&mut stream, &[proof, &garbled(&mut rng, record)].concat());
            must_close(stream);
        }
        until("what is refused is counted", || cluster.metric(host, HANDSHAKES) > before + TRIES);
        must_answer(&mut cluster, host);
        dialled(&mut cluster, (low, host, place), &mut rng);
        framed(&mut cluster, (host, &away), &secret, &mut rng);
    }
}

/// The same to hosts that dial where another one was: in the place of the answer to their proof.
fn dialled(cluster: &mut Cluster, (low, host, place): (usize, usize, usize), rng: &mut Rng) {
    let listener = TcpListener::bind(cluster.cluster(place)).expect("its host is away");
    let counted = |cluster: &Cluster| {
        [low, host].iter().map(|host| cluster.metric(*host, HANDSHAKES)).sum::<u64>()
    };
    let before = counted(cluster);
    let answer = [&PREFACE[..], &[7; MESSAGE_BYTES]].concat();
    for _ in 0..TRIES / 4 {
        let (mut stream, _) = listener.accept().expect("a host dials");
        say(&mut stream, &garbled(rng, &answer));
        must_close(stream);
    }
    drop(listener);
    until("some are counted", || counted(cluster) > before);
    must_answer(cluster, low);
    must_answer(cluster, host);
}

/// One that knows the secret sends what is no frame.
fn framed(cluster: &mut Cluster, (host, away): (usize, &Away), secret: &Secret, rng: &mut Rng) {
    let door = cluster.cluster(host);
    let (target, before) = (node_of(cluster, host), cluster.metric(host, REFUSED));
    let to = Incarnation { node: target, start: Start(0) };
    for number in 0..TRIES / 2 {
        let mut one = Intruder::dial(&door, secret).expect("it knows the secret");
        let encrypts = number % 2 == 0;
        one.greet(&away.hello(target), encrypts);
        // The connection before may not be lost yet, as far as the host knows.
        if one.greeted().is_none() {
            continue;
        }
        let body = (0..rng.below(200)).map(|_| rng.next() as u8).collect::<Vec<u8>>();
        let frame = frame_of(LaneId::CATALOG, away.me, to, body.into(), Default::default());
        let bytes = garbled(rng, &frame);
        if encrypts {
            one.seal(&bytes);
            // A record that it did not write.
            drop(one.stream.write_all(&garbled(rng, &bytes)));
        } else {
            drop(one.stream.write_all(&bytes));
        }
        drop(one.stream.shutdown(Shutdown::Write));
        must_close(one.stream);
    }
    until("what is refused is counted", || cluster.metric(host, REFUSED) > before);
    must_answer(cluster, host);
}
