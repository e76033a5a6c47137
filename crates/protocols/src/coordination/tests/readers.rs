//! Who follows all below a node is told of what it may read; and who answers what is read, where
//! that is altered.

use super::here::{at_once, client, settle, starve, value, world};
use super::world::{Client, SOON, World, data_of, three};
use crate::coordination::rules::ENGINE;
use crate::coordination::tree::tests::world::{create, delete, get, set, with_acl};
use quorate_kernel::ids::LaneId;
use quorate_kernel::keyspace::{Keyspace, Settings};
use quorate_kernel::news::News;
use quorate_kernel::process::Process;
use quorate_kernel::tree::{ALL, Acl, Act, Id, Told, What};
use std::string::{String, ToString};
use std::sync::Arc;
use std::vec::Vec;

fn authenticate(world: &mut World, client: &Client) {
    let shown = Act::Authenticate { scheme: "digest".into(), credential: "ann:secret".into() };
    assert_eq!(world.act(client, shown), Ok(Told::Done));
}

#[test]
fn who_follows_all_below_a_node_is_told_of_what_it_may_read() {
    let (mut world, leader, other) = three();
    let [ann, bob] = [(); 2].map(|()| world.open(other));
    authenticate(&mut world, &ann);
    for client in [&ann, &bob] {
        let follow = Act::Follow { path: "/".into(), recursive: true };
        assert_eq!(world.act(client, follow), Ok(Told::Done));
    }
    // What it follows by its name it knows.
    let follow = Act::Follow { path: "/secret/known".into(), recursive: false };
    assert_eq!(world.act(&bob, follow), Ok(Told::Done));
    let own = [Acl { permissions: ALL, id: Id { scheme: "auth".into(), id: String::new() } }];
    let writer = world.open(leader);
    authenticate(&mut world, &writer);
    for item in [
        with_acl(create("/secret", ""), &own),
        with_acl(create("/secret/name", ""), &own),
        with_acl(create("/secret/known", ""), &own),
        set("/secret/name", "other", None),
        delete("/secret/name", None),
        create("/open", ""),
    ] {
        assert!(world.one(&writer, item).is_ok());
    }
    let last = (String::from("/open"), What::Created);
    for client in [&ann, &bob] {
        assert!(world.run_until(SOON, |world| world.changes(client).last() == Some(&last)));
    }
    let of = |list: &[(&str, What)]| -> Vec<(String, What)> {
        list.iter().map(|(path, what)| (String::from(*path), *what)).collect()
    };
    let all = [
        ("/secret", What::Created),
        ("/secret/name", What::Created),
        ("/secret/known", What::Created),
        ("/secret/name", What::Data),
        ("/secret/name", What::Deleted),
        ("/open", What::Created),
    ];
    assert_eq!(world.changes(&ann), of(&all));
    let few = [("/secret/known", What::Created), ("/open", What::Created)];
    assert_eq!(world.changes(&bob), of(&few));
}

impl World {
    /// An operator has said who answers what sessions read, and all hosts have heard of it.
    fn alter_reads(&mut self, reads: &str) {
        let words = [("reads".to_string(), reads.to_string())];
        let altered = ENGINE.complete(&Settings::from(words)).expect("they can be set");
        let keyspace = Arc::new(Keyspace::new("k", LaneId(17), ENGINE.name, altered, 3));
        self.settings.session_reads = reads == "session";
        for at in 0..self.hosts.len() {
            self.turn(at, |process, cx| process.on_news(News::Keyspace(&keyspace), cx));
        }
    }
}

/// Hosts go by the setting as they know it, from one request to the next.
#[test]
fn reads_are_as_linearizable_as_the_keyspace_was_altered_to_be() {
    let (mut world, leader, other) = world(3);
    let client = client(&mut world, other);
    world.alter_reads("atomic");
    starve(&mut world, other);
    assert!(world.anyone(leader, set("/a", "new", None)).is_ok());
    let read = world.send_one(&client, get("/a"));
    assert_eq!(at_once(&world, read), None, "the primary is asked");
    assert_eq!(data_of(world.reply(read)), Some("new".into()));
    world.taken();
    settle(&mut world);
    world.alter_reads("session");
    settle(&mut world);
    let read = world.send_one(&client, get("/a"));
    assert_eq!(value(at_once(&world, read)), Some("new".into()));
}
