//! The lane as a node calls it.

use super::lane;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, LaneId, NodeId, Start, Ticket};
use quorate_kernel::keyspace::{Keyspace, Keyspaces, Settings};
use quorate_kernel::lane::{Env, Kept, Lane, Raised};
use quorate_kernel::limits::WATCHERS_MAX;
use quorate_kernel::news::News;
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::process::Table;
use quorate_kernel::ring::{Ring, RingHost, Standing};
use quorate_kernel::rng::Rng;
use quorate_kernel::storage::Class;
use quorate_kernel::time::{Time, WallTime};
use quorate_kernel::watch::Watch;

struct Empty;

impl Table for Empty {
    fn get(&self, _: Class, _: &Bytes) -> Option<Bytes> {
        None
    }

    fn scan(&self, _: Class, _: &[u8], _: &mut dyn FnMut(&[u8], &Bytes) -> bool) {}
}

/// The lane, and what it has answered since somebody looked.
struct World {
    lane: Box<dyn Lane>,
    keyspaces: Keyspaces,
    hosts: Vec<RingHost>,
}

fn host(node: u64) -> RingHost {
    RingHost {
        who: Incarnation { node: NodeId(node), start: Start(1) },
        address: String::from("h:1"),
        zone: String::new(),
        tokens: vec![node],
        standing: Standing::Up,
        is_suspected: false,
        doors: Vec::new(),
    }
}

impl World {
    fn new() -> World {
        let (keyspaces, hosts) = (Keyspaces::default(), vec![host(1), host(2)]);
        let mut world = World { lane: lane(), keyspaces, hosts };
        world.add("default", 16);
        world
    }

    fn add(&mut self, name: &str, lane: u32) {
        let keyspace = Keyspace::new(name, LaneId(lane), "causal", Settings::new(), 1);
        self.keyspaces.list.push((Arc::new(keyspace), Start(1)));
    }

    /// Calls the lane; who was answered, each with the words of what it was told.
    fn call(&mut self, handler: impl FnOnce(&mut dyn Lane, &mut Env<'_>)) -> Vec<(u64, String)> {
        let mut rng = Rng::new(1);
        let mut kept = Kept { table: &Empty, raised: Vec::new() };
        let mut env = Env {
            me: Incarnation { node: NodeId(1), start: Start(1) },
            lane: LaneId::EVENTS,
            now: Time(1),
            wall: WallTime(1),
            rng: &mut rng,
            out: &mut kept,
        };
        handler(self.lane.as_mut(), &mut env);
        self.lane.check();
        let answer = |raised| match raised {
            Raised::Answer { ticket, outcome: Outcome::More(events), .. } => {
                let words: Vec<String> = events.iter().map(|event| event.word()).collect();
                (ticket.0, words.join(" "))
            }
            Raised::Answer { ticket, outcome: Outcome::Refused(Refusal::Overloaded), .. } => {
                (ticket.0, String::from("overloaded"))
            }
            _ => panic!("it only answers"),
        };
        kept.raised.into_iter().map(answer).collect()
    }

    fn watch(&mut self, ticket: u64) -> Vec<(u64, String)> {
        self.call(|lane, env| lane.on_watch(Ticket(ticket), Watch::Cluster, env))
    }

    fn learn_keyspaces(&mut self) -> Vec<(u64, String)> {
        let keyspaces = Arc::new(self.keyspaces.clone());
        self.call(|lane, env| lane.on_news(News::Keyspaces(&keyspaces), env))
    }

    fn learn_ring(&mut self) -> Vec<(u64, String)> {
        let ring = Arc::new(Ring::new(1, self.hosts.clone()));
        self.call(|lane, env| lane.on_news(News::Ring(&ring), env))
    }

    /// Both are known, and these watch.
    fn watched(tickets: &[u64]) -> World {
        let mut world = World::new();
        assert!(world.learn_ring().is_empty() && world.learn_keyspaces().is_empty());
        for ticket in tickets {
            assert_eq!(world.watch(*ticket).len(), 1);
        }
        world
    }
}

#[test]
fn a_watcher_is_told_what_there_is_once_that_is_known() {
    let mut world = World::new();
    assert_eq!(world.watch(7), [], "nothing is known");
    assert_eq!(world.learn_ring(), [], "keyspaces are not");
    let all = String::from("keyspace-present host-present host-present current");
    assert_eq!(world.learn_keyspaces(), [(7, all.clone())]);
    assert_eq!(world.watch(8), [(8, all)]);
    world.hosts[1].standing = Standing::Leaving;
    world.hosts[1].is_suspected = true;
    world.hosts.push(RingHost { standing: Standing::Left, ..host(3) });
    world.learn_ring();
    let told = "keyspace-present host-present host-present host-leaving host-suspected current";
    assert_eq!(world.watch(9), [(9, String::from(told))], "how it stands, and none that has left");
}

#[test]
fn each_change_is_told_once_to_all_that_watch() {
    let mut world = World::watched(&[1, 2]);
    let both = |text: &str| [(1, String::from(text)), (2, String::from(text))];
    assert_eq!(world.learn_keyspaces(), [], "nothing is new");
    world.add("carts", 17);
    assert_eq!(world.learn_keyspaces(), both("keyspace-created"));
    let carts = Arc::make_mut(&mut world.keyspaces.list[1].0);
    carts.changed += 1;
    assert_eq!(world.learn_keyspaces(), [], "who holds what is no setting");
    let carts = Arc::make_mut(&mut world.keyspaces.list[1].0);
    carts.settings.insert(String::from("replicas"), String::from("2"));
    assert_eq!(world.learn_keyspaces(), both("keyspace-altered"));
    // It is made again under the same name: another lane.
    world.keyspaces.list.remove(1);
    world.add("carts", 18);
    assert_eq!(world.learn_keyspaces(), both("keyspace-dropped keyspace-created"));

    world.hosts.push(host(3));
    assert_eq!(world.learn_ring(), both("host-joined"));
    world.hosts[1].is_suspected = true;
    assert_eq!(world.learn_ring(), both("host-suspected"));
    world.hosts[1].is_suspected = false;
    world.hosts[1].who.start = Start(2);
    assert_eq!(world.learn_ring(), both("host-restarted host-trusted"));
    world.hosts[2].standing = Standing::Leaving;
    assert_eq!(world.learn_ring(), both("host-leaving"));
    world.hosts[2].standing = Standing::Up;
    assert_eq!(world.learn_ring(), both("host-stays"));
    world.hosts[2].standing = Standing::Left;
    world.hosts[2].is_suspected = true;
    assert_eq!(world.learn_ring(), both("host-left"));
    assert_eq!(world.learn_ring(), []);
    world.hosts[2].who.start = Start(2);
    assert_eq!(world.learn_ring(), [], "it has left, and is heard of late");
    world.hosts[2].standing = Standing::Up;
    let told = world.learn_ring();
    assert_eq!(told, both("host-joined host-suspected"), "as one that was not there");
}

#[test]
fn who_has_ended_its_watch_is_told_nothing_and_watchers_are_bounded() {
    let mut world = World::watched(&[1, 2]);
    assert_eq!(world.call(|lane, env| lane.on_unwatch(Ticket(1), env)), []);
    assert_eq!(world.call(|lane, env| lane.on_unwatch(Ticket(99), env)), [], "nobody");
    world.add("carts", 17);
    assert_eq!(world.learn_keyspaces(), [(2, String::from("keyspace-created"))]);
    for ticket in 3..WATCHERS_MAX as u64 + 2 {
        assert_eq!(world.watch(ticket).len(), 1);
    }
    assert_eq!(world.watch(5_000), [(5_000, String::from("overloaded"))]);
    world.call(|lane, env| lane.on_unwatch(Ticket(2), env));
    assert_ne!(world.watch(5_001), [(5_001, String::from("overloaded"))], "one has gone");
}
