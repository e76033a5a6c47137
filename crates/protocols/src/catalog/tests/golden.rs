//! Every message of a few runs, beside the code: `UPDATE_SCRIPTS=1` rewrites the files, and the
//! change is reviewed like code.

use super::world::{World, create};
use quorate_kernel::keyspace::KeyspaceOrder;
use quorate_kernel::time::Span;
use std::string::{String, ToString};
use std::vec::Vec;
use std::{env, fs, println};

/// Compares what happens in a run with the file of that name.
fn golden(name: &str, title: &str, mut world: World, run: impl FnOnce(&mut World)) {
    world.trace = Some(Vec::new());
    run(&mut world);
    let lines = world.trace.take().expect("it was set");
    let actual: String = core::iter::once(title.to_string())
        .chain(lines)
        .flat_map(|line| [line, "\n".to_string()])
        .collect();
    let path = std::format!("{}/src/catalog/scripts/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    if env::var_os("UPDATE_SCRIPTS").is_some() {
        fs::write(&path, &actual).expect("a writable script");
    }
    let expected = fs::read_to_string(&path).expect("the script is there");
    if actual != expected {
        println!("{actual}");
        panic!("{name} shows something else; UPDATE_SCRIPTS=1 rewrites it");
    }
}

#[test]
fn a_keyspace_is_created() {
    golden(
        "create",
        "A host that is no member has a keyspace created; all hear of it.",
        {
            let mut world = World::founded(1, 4);
            world.run(Span::millis(1500));
            world
        },
        |world| {
            world.order(0, create("x", "groups"), Span::secs(2));
            world.run(Span::millis(20));
        },
    );
}

#[test]
fn two_hosts_create_one_name() {
    let title = "Two hosts create one name: one is decided, the other finds it and is refused.";
    golden(
        "race",
        title,
        {
            let mut world = World::founded(1, 3);
            world.run(Span::millis(1500));
            world
        },
        |world| {
            world.order(0, create("x", "groups"), Span::secs(2));
            world.order(1, create("x", "groups"), Span::secs(2));
            world.run(Span::millis(400));
        },
    );
}

#[test]
fn a_host_that_was_away_catches_up() {
    let title = "A host that was away hears how long the chain is and gets what it lacks.";
    golden(
        "catch_up",
        title,
        {
            let mut world = World::founded(1, 3);
            world.run(Span::millis(1500));
            world.hosts[2].side = 1;
            world.order(0, create("x", "groups"), Span::secs(2));
            world.order(1, KeyspaceOrder::Drop { name: "default".to_string() }, Span::secs(2));
            world.run(Span::millis(600));
            world.drop_messages();
            world.hosts[2].side = 0;
            world
        },
        |world| world.run(Span::millis(1200)),
    );
}
