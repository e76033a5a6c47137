//! Who follows all below a node is told of what it may read.

use super::world::{Client, SOON, World, three};
use crate::coordination::tree::tests::world::{create, delete, set, with_acl};
use quorate_kernel::tree::{ALL, Acl, Act, Id, Told, What};
use std::string::String;
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
