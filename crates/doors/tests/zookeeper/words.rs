//! Four-letter words.

use crate::wire::{get, ping};
use crate::world::{CONNECT, Known, REGISTERS, TREES, World, door, keyspace, opened, replied};
use quorate_doors::{Facts, NoFacts};
use quorate_kernel::ids::LaneId;
use quorate_kernel::time::{Time, WallTime};
use quorate_kernel::tree::{Failure, Told};

/// Asks a word on a connection of its own.
fn ask(world: &mut World, word: &str) -> String {
    world.receive(word.as_bytes());
    let text = String::from_utf8(world.take().to_vec()).expect("text");
    assert!(world.is_over(), "a word is all that is asked on its connection");
    text
}

fn serving(word: &str) -> String {
    ask(&mut World::default(), word)
}

const NOT_SERVING: &str = "This ZooKeeper instance is not currently serving requests\n";

#[test]
fn probes_are_answered() {
    assert_eq!(serving("ruok"), "imok");
    assert_eq!(serving("ruok\n"), "imok");
    assert_eq!(serving("isro"), "rw");
    let environment = "Environment:\nzookeeper.version=3.9.0-quorate-0.1.0\n\
                       quorate.cluster=00000000000000000000000000000001\n\
                       quorate.node=0000000000000002\n";
    assert_eq!(serving("envi"), environment);
    assert_eq!(serving("conf"), "clientPort=2181\nmaxCnxns=10000\n");
}

#[test]
fn a_server_tells_what_the_door_has_counted() {
    let mut world = World::default();
    world.receive(&crate::wire::frame(CONNECT));
    world.tell(opened());
    for path in ["/a", "/b"] {
        world.receive(&get(1, path, false));
    }
    world.clock.now = Time(world.clock.now.0 + 3_000_000);
    world.complete(0, replied(0x2a, Err(Failure::NoNode)));
    world.clock.now = Time(world.clock.now.0 + 2_000_000);
    world.receive(&ping());
    world.complete(1, replied(0x29, Ok(Told::Done)));
    // The second read is in hand.
    let trees = || vec![keyspace("trees", 2, &TREES)];
    let counts = "Latency min/avg/max: 0/1/3\nReceived: 5\nSent: 3\nConnections: 2\n\
                  Outstanding: 1\nZxid: 0x2a\nMode: follower\nNode count: 12\n";
    let mut asking = World::at(world.door, trees());
    let version = "Zookeeper version: 3.9.0-quorate-0.1.0, built on 01/01/1970 00:00 UTC\n";
    assert_eq!(ask(&mut asking, "srvr"), format!("{version}{counts}"));
    // Whoever goes leaves nothing in hand.
    drop(world.session);
    let mut asking = World::at(asking.door, trees());
    let text = ask(&mut asking, "stat");
    // Whoever asked before is still connected.
    let clients = "Clients:\n /10.0.0.1:5[0](queued=0,recved=1,sent=0)\n \
                   /10.0.0.1:5[1](queued=0,recved=1,sent=0)\n\n";
    assert!(text.starts_with(&format!("{version}{clients}Latency")), "{text}");
    assert!(text.contains("\nOutstanding: 0\n"), "{text}");
    let mut asking = World::at(asking.door, trees());
    let monitored = "zk_version\t3.9.0-quorate-0.1.0\nzk_min_latency\t0\nzk_avg_latency\t1\n\
                     zk_max_latency\t3\nzk_packets_received\t7\nzk_packets_sent\t3\n\
                     zk_num_alive_connections\t2\nzk_outstanding_requests\t0\nzk_znode_count\t12\n\
                     zk_watch_count\t5\nzk_quotas_exceeded\t1\nzk_server_state\tfollower\n";
    assert_eq!(ask(&mut asking, "mntr"), monitored);
}

#[test]
fn connections_are_told_with_their_sessions() {
    let mut world = World::default();
    world.receive(&crate::wire::frame(CONNECT));
    world.tell(opened());
    world.receive(&get(0x1f, "/a", false));
    world.receive(&get(0x20, "/b", false));
    world.clock.now = Time(world.clock.now.0 + 3_000_000);
    world.clock.wall = WallTime(world.clock.wall.0 + 7);
    world.complete(0, replied(0x2a, Err(Failure::NoNode)));
    let trees = || vec![keyspace("trees", 2, &TREES)];
    let mut asking = World::at(world.door, trees());
    let own = " /10.0.0.1:5[0](queued=0,recved=1,sent=0,sid=0x0,lop=NA,est=1700000100250,to=0,\
               lcxid=0x0,lzxid=0xffffffffffffffff,lresp=0,llat=0,minlat=0,avglat=0,maxlat=0)\n";
    let other = " /10.0.0.1:5[1](queued=1,recved=3,sent=2,sid=0x10000000000002a,lop=GETD,\
                 est=1700000100250,to=10000,lcxid=0x20,lzxid=0x2a,lresp=1700000100257,llat=3,\
                 minlat=3,avglat=3,maxlat=3)\n";
    assert_eq!(ask(&mut asking, "cons"), format!("{own}{other}\n"));
    drop(world.session);
    drop(asking.session);
    let mut asking = World::at(asking.door, trees());
    assert_eq!(ask(&mut asking, "cons"), format!("{own}\n"), "whoever is gone has no line");
}

#[test]
fn what_is_watched_is_counted() {
    assert_eq!(serving("wchs"), "2 connections watching 4 paths\nTotal watches:5\n");
    let mut unknown = World::at(door(Box::new(NoFacts)), vec![keyspace("trees", 2, &TREES)]);
    assert_eq!(ask(&mut unknown, "wchs"), "0 connections watching 0 paths\nTotal watches:0\n");
}

#[test]
fn what_is_on_the_disk_is_counted() {
    assert_eq!(serving("dirs"), "datadir_size: 70000\nlogdir_size: 1048576\n");
}

#[test]
fn what_the_host_does_not_know_has_no_line() {
    let unknown = || World::at(door(Box::new(NoFacts)), vec![keyspace("trees", 2, &TREES)]);
    assert_eq!(ask(&mut unknown(), "dirs"), "");
    let mut asking = unknown();
    let text = ask(&mut asking, "srvr");
    assert!(!text.contains("Node count"), "{text}");
    assert!(text.ends_with("\nMode: standalone\n"), "it leads nobody, and follows nobody: {text}");
}

#[test]
fn a_host_says_whether_it_leads() {
    struct Leading;
    impl Facts for Leading {
        fn shown(&self, lane: LaneId, name: &str) -> Option<u64> {
            (lane == LaneId(2) && name.starts_with("groups")).then_some(1)
        }
    }
    struct Without;
    impl Facts for Without {
        fn shown(&self, _: LaneId, name: &str) -> Option<u64> {
            name.starts_with("groups").then_some(0)
        }
    }
    let trees = || vec![keyspace("trees", 2, &TREES)];
    let text = ask(&mut World::at(door(Box::new(Leading)), trees()), "stat");
    assert!(text.contains("\nMode: leader\n"), "{text}");
    let text = ask(&mut World::at(door(Box::new(Leading)), trees()), "mntr");
    assert!(text.contains("\nzk_server_state\tleader\n"), "{text}");
    let text = ask(&mut World::at(door(Box::new(Without)), trees()), "srvr");
    assert!(text.contains("\nMode: standalone\n"), "{text}");
}

#[test]
fn a_host_without_a_tree_serves_nobody() {
    struct Starting;
    impl Facts for Starting {
        fn is_ready(&self) -> bool {
            false
        }
    }
    for (is_known, keyspaces) in
        [(true, vec![keyspace("a", 1, &REGISTERS)]), (false, vec![keyspace("trees", 2, &TREES)])]
    {
        for word in ["srvr", "stat", "mntr", "cons", "conf", "dirs", "wchs"] {
            let facts: Box<dyn Facts + Send + Sync> =
                if is_known { Box::new(Known) } else { Box::new(Starting) };
            let mut world = World::at(door(facts), keyspaces.clone());
            let text = ask(&mut world, word);
            assert_eq!(text, NOT_SERVING, "{word}");
        }
    }
    let nobody = || World::serving(vec![None]);
    assert_eq!(ask(&mut nobody(), "isro"), "null");
    assert_eq!(ask(&mut nobody(), "ruok"), "imok");
}

#[test]
fn other_words_are_refused() {
    for word in ["wchc", "wchp", "dump", "crst"] {
        let refused = format!("{word} is not executed because it is not in the whitelist.\n");
        assert_eq!(serving(word), refused);
    }
    assert_eq!(serving("what"), "");
    assert_eq!(serving("GET / HTTP/1.1\r\n\r\n"), "");
}

#[test]
fn three_letters_are_waited_for() {
    let mut world = World::default();
    world.receive(b"ruo");
    assert!(world.session.is_waiting_for_rest(&world.input));
    world.receive(b"k");
    assert_eq!(&world.take()[..], b"imok");
}
