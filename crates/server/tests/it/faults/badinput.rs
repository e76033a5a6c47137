//! Clients that send nonsense, too much, or never read: bounded memory, and no effect on others.

use crate::intruders::intruder::must_close;
use crate::support::client::{Client, beside_bystanders};
use crate::support::cluster::{Cluster, answer, get, until};
use bytes::BytesMut;
use quorate_doors::resp::client::{RespReply, write_command};
use quorate_kernel::limits::{CLIENT_OPERATIONS_MAX, KEY_BYTES_MAX, VALUE_BYTES_DEFAULT};
use quorate_kernel::rng::Rng;
use rustix::process::{Resource, Signal, getrlimit, setrlimit};
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;

/// What a host may take, whatever clients do: its caches, queues and tables together.
const RESIDENT_MIB_MAX: u64 = 300;

fn must_be_small(cluster: &Cluster) {
    for host in 1..=3 {
        let resident = cluster.resident_mib(host);
        assert!(resident < RESIDENT_MIB_MAX, "host {host} takes {resident} MiB");
    }
}

/// Sends bytes, says that no more will come, and takes what is answered until the host closes.
fn exchange(address: &str, bytes: &[u8]) -> Vec<u8> {
    let mut client = Client::to(address);
    match client.send(bytes) {
        Ok(()) => drop(client.stream().shutdown(Shutdown::Write)),
        // The host has closed already, which is its right.
        Err(error) => assert!(
            matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset),
            "{error}"
        ),
    }
    client.rest()
}

fn too_large(address: &str) {
    let mut client = Client::to(address);
    client.send(b"*1\r\n$1073741824\r\n").expect("the host reads");
    let Ok(RespReply::Error(text)) = client.reply() else { panic!("a gigabyte is no command") };
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(text.contains("Protocol error"), "{text}");
    assert_eq!(client.rest(), b"", "the connection is closed");

    let mut client = Client::to(address);
    let key = vec![b'k'; KEY_BYTES_MAX + 1];
    for args in [&[b"SET", &key[..], b"v"][..], &[b"GET", &key[..]]] {
        let told = client.told(args);
        assert!(told.starts_with("ERR") && told.contains("key"), "{told}");
    }
    assert_eq!(client.told(&[b"PING"]), "PONG", "the connection goes on");
    let value = vec![b'v'; VALUE_BYTES_DEFAULT + 1];
    // The error comes first, but a client that is still sending must see it too.
    let mut sender = Client::to(address);
    let told = sender.told(&[b"SET", b"large", &value]);
    assert!(told.starts_with("ERR Protocol error"), "{told}");
    assert_eq!(sender.rest(), b"", "the connection is closed");
    let set = client.told_at_last(&[b"SET", b"large", &value[1..]]);
    assert_eq!(set, "OK", "the limit itself is fine");
    // Its copies may keep hosts from answering pings for long on a busy machine.
    assert_eq!(client.told_at_last(&[b"GET", b"large"]).len(), VALUE_BYTES_DEFAULT);
}

fn garbage(address: &str) {
    let mut rng = Rng::new(7);
    for size in [1, 10, 100, 1_000, 10_000, 100_000] {
        let bytes: Vec<u8> = (0..size).map(|_| rng.next().to_le_bytes()[0]).collect();
        exchange(address, &bytes);
        exchange(address, &[b"*1\r\n$".as_slice(), &bytes].concat());
    }
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../doors/corpus/resp");
    let mut count = 0;
    for entry in fs::read_dir(corpus).expect("the corpus is there") {
        let bytes = fs::read(entry.expect("an entry").path()).expect("a file");
        exchange(address, &bytes);
        count += 1;
    }
    assert!(count >= 10, "{count} inputs are no corpus");
}

#[test]
fn nonsense_and_what_is_too_large_hurt_nobody_else() {
    let mut cluster = Cluster::create("memory");
    // The largest value takes long where nothing is optimized, and none of this is about time.
    cluster.set("limits.request_timeout=60s");
    cluster.start_all();
    let others = [cluster.resp(1), cluster.resp(2), cluster.resp(3)];
    beside_bystanders(&others, || {
        too_large(&cluster.resp(1));
        garbage(&cluster.resp(1));
    });
    must_be_small(&cluster);
    assert!((1..=3).all(|host| cluster.is_running(host)));
}

/// A client that begins a command of 8 MiB and sends a megabyte of it.
fn begin(address: &str) -> Client {
    let mut client = Client::to(address);
    client.send(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$8388608\r\n").expect("the host reads");
    // A refused client may be closed before all of it is taken.
    let _ = client.send(&vec![b'v'; 1024 * 1024]);
    client
}

#[test]
fn unfinished_commands_of_many_clients_have_one_budget() {
    let mut cluster = Cluster::create("memory");
    cluster.set("resp.memory_max=64MiB");
    cluster.set("limits.request_timeout=60s");
    cluster.start_all();
    let door = cluster.resp(1);
    beside_bystanders(&cluster.doors(), || {
        // A sixth would be over three quarters of the budget.
        let mut begun: Vec<Client> = (0..5).map(|_| begin(&door)).collect();
        let taken = || cluster.metric(1, "quorate_clients_bytes{door=\"resp\"}");
        until("all of them are charged", || taken() >= 5 * 8 * 1024 * 1024);
        for _ in 0..100 {
            let mut refused = begin(&door);
            let Ok(RespReply::Error(text)) = refused.reply() else { panic!("there is no room") };
            let text = String::from_utf8_lossy(&text).into_owned();
            assert!(text.starts_with("OVERLOADED") && text.contains("resp.memory_max"), "{text}");
        }
        must_be_small(&cluster);
        // One that was let in is read to its end; one that goes gives its room back.
        let mut first = begun.remove(0);
        first.send(&vec![b'v'; 7 * 1024 * 1024]).expect("it was let in");
        first.send(b"\r\n").expect("it was let in");
        assert_eq!(first.reply().expect("it is whole"), RespReply::Simple("OK".into()));
        drop(begun);
        until("the room is given back", || taken() < 8 * 1024 * 1024);
        let value = vec![b'v'; 8 * 1024 * 1024];
        assert_eq!(Client::to(&door).told(&[b"SET", b"k", &value]), "OK");
    });
    assert!(cluster.metric(1, "quorate_rejected_total{reason=\"memory\"}") >= 100);
}

#[test]
fn a_command_that_is_not_finished_is_refused_after_a_while() {
    let cluster = Cluster::start("memory");
    let mut client = Client::to(&cluster.resp(1));
    client.send(b"*2\r\n$3\r\nGET\r\n$5\r\nab").expect("the host reads");
    let mut idle = Client::to(&cluster.resp(1));
    let Ok(RespReply::Error(text)) = client.reply() else { panic!("it is an error") };
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(text.contains("begun") && text.contains("nothing of it was executed"), "{text}");
    assert_eq!(client.rest(), b"", "the connection is closed");
    assert_eq!(idle.told(&[b"PING"]), "PONG", "who has begun nothing stays");
}

/// The most connections that are tried, and how many files this process needs besides.
const IDLE: usize = 10_000;
const FILES: u64 = IDLE as u64 + 1_000;
/// How many seconds a host may work to let all of them go, where nothing is optimized.
const LETS_GO_WITHIN: u64 = 10;

/// Lets this process open so many files; whether it may.
fn may_open(files: u64) -> bool {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.maximum.is_some_and(|most| most < files) {
        println!("skipped: {files} open files are not allowed but {:?}", limit.maximum);
        return false;
    }
    limit.current = Some(limit.current.unwrap_or(files).max(files));
    setrlimit(Resource::Nofile, limit).expect("within the hard limit");
    true
}

#[test]
fn who_comes_beyond_the_open_files_is_told_so_and_health_is_answered() {
    const ALLOWED: usize = 1_024;
    const COME: usize = 1_060;
    if !may_open(4 * COME as u64) {
        return;
    }
    let mut cluster = Cluster::create("memory");
    cluster.set_files_max(ALLOWED as u64);
    cluster.start_all();
    let (door, http) = (cluster.resp(1), cluster.http(1));
    let mut first = Client::to(&door);
    let most = first.ask(&[b"CONFIG", b"GET", b"maxclients"]).expect("a reply");
    let RespReply::Array(most) = most else { panic!("{most:?}") };
    let most = most[1].as_bytes().and_then(|text| String::from_utf8_lossy(text).parse().ok());
    let most: usize = most.expect("a number");
    let mut come: Vec<Client> = (1..COME).map(|_| Client::to(&door)).collect();
    for refused in come.split_off(most - 1) {
        assert_eq!(refused.rest(), b"-ERR max number of clients reached\r\n");
    }
    // The same of the HTTP door: calls that are begun and never whole.
    let begun = b"PUT /v1/kv/default/k HTTP/1.1\r\nHost: localhost\r\n\
                  Content-Type: text/plain\r\nContent-Length: 9\r\n\r\nabc";
    let calls = (0..COME / 4).map(|_| {
        let mut stream = TcpStream::connect(&http).expect("it is accepted");
        stream.write_all(begun).expect("it is taken");
        stream
    });
    let calls: Vec<TcpStream> = calls.collect();
    until("calls are refused", || answer(&http, "/v1/keyspaces").starts_with("HTTP/1.1 503"));
    let refused = get(&http, "/v1/keyspaces");
    assert!(refused.contains("as many connections as it takes"), "{refused}");
    for path in ["/livez", "/readyz", "/metrics", "/status", "/ring", "/keyspaces"] {
        let answer = answer(&http, path);
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
    }
    for client in come.iter_mut().chain([&mut first]) {
        assert_eq!(client.told(&[b"SET", b"k", b"v"]), "OK", "who was let in is served");
    }
    drop((come, calls));
    until("others are let in", || {
        Client::to(&door).ask(&[b"PING"]).is_ok_and(|reply| reply.error_code().is_none())
    });
}

#[test]
fn too_few_open_files_for_a_host_are_an_error() {
    let mut cluster = Cluster::create("memory");
    cluster.set_files_max(256);
    cluster.launch(1);
    assert_eq!(cluster.ended(1), Some(8), "{}", cluster.said(1));
    assert!(cluster.said(1).contains("raise `ulimit -n`"), "{}", cluster.said(1));
}

#[test]
fn who_waits_while_no_file_can_be_opened_is_let_in_as_soon_as_one_can() {
    let cluster = Cluster::start("memory");
    let doors = [cluster.resp(1), cluster.cluster(1)];
    let before = cluster.limit_files(1, Some(3));
    let mut waiting = Client::to(&doors[0]);
    let silent = TcpStream::connect(&doors[1]).expect("the system lets it wait");
    for door in ["resp", "cluster"] {
        let is_it = |line: &str| line.contains("accept_failed") && line.contains(door);
        until("it cannot be let in", || cluster.said(1).lines().any(is_it));
    }
    cluster.limit_files(1, before);
    assert_eq!(waiting.told(&[b"PING"]), "PONG", "nobody else has come");
    must_close(silent);
}

#[test]
fn ten_thousand_idle_clients_are_nothing() {
    if !may_open(FILES) {
        return;
    }
    let mut cluster = Cluster::create("memory");
    cluster.set("resp.clients_max=20000");
    // Both doors share the files that the system allows.
    cluster.set("zookeeper.clients_max=100");
    // None of this is about time.
    cluster.set("limits.request_timeout=60s");
    cluster.start_all();
    let door = cluster.resp(1);
    beside_bystanders(&cluster.doors(), || {
        let mut idle = Vec::with_capacity(IDLE);
        for _ in 0..IDLE {
            idle.push(TcpStream::connect(&door).expect("there is room for one more"));
        }
        let connected = || cluster.metric(1, "quorate_clients{door=\"resp\"}");
        until("all are connected", || connected() >= IDLE as u64);
        must_be_small(&cluster);
        let mut last = Client::to(&door);
        assert_eq!(last.told(&[b"SET", b"k", b"v"]), "OK");
        assert_eq!(last.told(&[b"GET", b"k"]), "v");
        // The host finds that all have gone at one moment, whatever else the machine does.
        let before = cluster.worked_s(1);
        cluster.signal(1, Signal::STOP);
        drop(idle);
        cluster.signal(1, Signal::CONT);
        until("all have gone", || connected() < 10);
        let worked = cluster.worked_s(1) - before;
        assert!(worked < LETS_GO_WITHIN, "it worked {worked} s to let {IDLE} clients go");
    });
}

#[test]
fn a_client_that_never_reads_is_no_longer_read() {
    const SILENT: usize = 3;
    const GETS: usize = 1_000;
    let mut cluster = Cluster::create("memory");
    // A value takes long to read where nothing is optimized, and none of this is about time.
    cluster.set("limits.request_timeout=60s");
    cluster.start_all();
    let door = cluster.resp(1);
    let value = vec![b'v'; 1024 * 1024];
    assert_eq!(Client::to(&door).told(&[b"SET", b"large", &value]), "OK");
    let mut gets = BytesMut::new();
    (0..GETS).for_each(|_| write_command(&mut gets, &[b"GET", b"large"]));
    let mut silent: Vec<TcpStream> =
        (0..SILENT).map(|_| TcpStream::connect(&door).expect("the door is open")).collect();
    for stream in &mut silent {
        stream.write_all(&gets).expect("the sockets hold a few kilobytes");
    }
    beside_bystanders(&cluster.doors(), || must_be_small(&cluster));
    until("the host has nothing more to do", || {
        cluster.metric(1, "quorate_inflight_requests{keyspace=\"default\"}") == 0
    });
    let answered = cluster.metric(
        1,
        "quorate_requests_total{keyspace=\"default\",engine=\"linearizable\",op=\"get\",\
         outcome=\"ok\"}",
    );
    assert!(answered > 0, "they are served as far as they read");
    must_be_small(&cluster);
    beside_bystanders(&cluster.doors(), || must_be_small(&cluster));
    for stream in silent {
        let mut read = stream;
        read.set_read_timeout(Some(std::time::Duration::from_secs(60))).expect("a socket");
        let mut begin = [0; 10];
        read.read_exact(&mut begin).expect("replies were waiting");
        assert_eq!(&begin, b"$1048576\r\n");
    }
}

#[test]
fn a_port_in_use_is_named_with_its_door() {
    let mut cluster = Cluster::create("memory");
    for (door, address) in [
        ("cluster", cluster.cluster(1)),
        ("http", cluster.http(1)),
        ("resp", cluster.resp(1)),
        ("grpc", cluster.grpc(1)),
    ] {
        let taken = TcpListener::bind(&address).expect("a free port");
        cluster.launch(1);
        assert_eq!(cluster.ended(1), Some(1), "{}", cluster.said(1));
        let told = format!("the {door} door cannot listen on {address}");
        assert!(cluster.said(1).contains(&told), "{}", cluster.said(1));
        drop(taken);
    }
}

/// A client that follows what happens has less room for commands; it must not end its host.
#[test]
fn a_client_that_follows_and_writes_much_is_served() {
    let cluster = Cluster::start("memory");
    let mut client = Client::to(&cluster.resp(1));
    client.send(b"HELLO 3\r\nSUBSCRIBE events\r\n").expect("the host reads");
    client.reply().expect("what it is");
    client.reply().expect("that it follows");
    let count = 2 * CLIENT_OPERATIONS_MAX;
    let sets: String = (0..count).map(|n| format!("SET followed{n} v\r\n")).collect();
    client.send(sets.as_bytes()).expect("the host reads");
    let mut done = 0;
    while done < count {
        match client.reply().expect("all are answered") {
            RespReply::Simple(told) => assert_eq!(&told[..], b"OK"),
            // Hosts have just begun.
            RespReply::Push(_) => continue,
            other => panic!("{other:?}"),
        }
        done += 1;
    }
    assert_eq!(Client::to(&cluster.resp(1)).told(&[b"GET", b"followed7"]), "v");
}

/// Whoever says nothing at the door of trees would keep others out.
#[test]
fn who_says_nothing_where_it_must_does_not_stay() {
    let cluster = Cluster::start("memory");
    let mut silent = TcpStream::connect(cluster.zookeeper(1)).expect("the door is open");
    let mut calm = Client::to(&cluster.resp(1));
    assert_eq!(calm.told(&[b"PING"]), "PONG");
    assert_eq!(silent.read(&mut [0; 8]).expect("it is closed in order"), 0);
    assert_eq!(calm.told(&[b"PING"]), "PONG", "elsewhere nobody has to speak");
}
