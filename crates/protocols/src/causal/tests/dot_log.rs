//! The log of dots: what a restart finds there, and when it is given up.

use super::super::keys::hash_of_key;
use super::super::map::Shape;
use super::traps::{CausalWorld, bytes, calm, deliver_all, get, put, world};
use bytes::Bytes;
use quorate_kernel::time::Span;
use std::format;
use std::string::String;
use std::vec::Vec;

fn field(world: &mut CausalWorld, node: u64, name: &str) -> usize {
    world.field(node, name).parse().expect("a number")
}

#[test]
fn the_dots_of_a_turn_are_one_entry() {
    let mut world = world(3, &["lazy"]);
    for number in 0..20 {
        put(&mut world, 1, &format!("k{number}"), "v", Bytes::new());
    }
    world.log.clear();
    while !world.log.iter().any(|line| line.contains("2: writes log")) {
        world.tick(Span::millis(20));
        deliver_all(&mut world);
    }
    let written: Vec<&String> =
        world.log.iter().filter(|line| line.starts_with("2: writes log ")).collect();
    assert_eq!(written.len(), 1, "{written:?}");
    assert_eq!(written[0].matches(" dot ").count(), 20);
}

/// Nobody else has heard of an update, for long. After a restart it is told.
#[test]
fn what_somebody_has_not_seen_is_told_after_a_restart() {
    let mut world = world(3, &[]);
    world.cut.extend([2, 3]);
    put(&mut world, 1, "k", "v", Bytes::new());
    calm(&mut world, Span::secs(5));
    assert_eq!(field(&mut world, 1, "logged_dots"), 1);
    world.crash(1);
    world.restart(1, false);
    world.cut.clear();
    calm(&mut world, Span::secs(5));
    for node in 1..=3 {
        assert_eq!(get(&mut world, node, "k").0, [bytes("v")], "{node}");
        assert_eq!(field(&mut world, node, "logged_dots"), 0, "all have seen it");
    }
}

/// What everybody has seen is back after a restart, as the entry was still there; it goes again,
/// and what was seen since is numbered on.
#[test]
fn entries_are_given_up_also_after_a_restart() {
    let mut world = world(3, &[]);
    for round in 0..4 {
        for number in 0..10 {
            put(&mut world, 1, &format!("k{number}"), &format!("{round}"), Bytes::new());
        }
        deliver_all(&mut world);
        world.crash(2);
        world.restart(2, false);
        calm(&mut world, Span::secs(1 + 2 * round));
    }
    for node in 1..=3 {
        assert_eq!(field(&mut world, node, "logged_dots"), 0, "{node}");
        let (values, _) = get(&mut world, node, "k7");
        assert_eq!(values.len(), 4, "siblings: nobody has seen what was there");
    }
}

/// One update is needed for long, and many behind it are not: it is written anew at the end, and
/// after a restart it is told all the same.
#[test]
fn a_few_dots_that_are_needed_do_not_keep_the_others() {
    let mut world = world(3, &["partitions=3", "replicas=2", "spare_dots=20"]);
    let shape = Shape::new(3, 2);
    let is_far = |key: &String| shape.home(hash_of_key(key.as_bytes())) > 0;
    let (far, near): (Vec<String>, Vec<String>) =
        (0..300).map(|number| format!("k{number}")).partition(is_far);
    world.cut.insert(3);
    put(&mut world, 2, &far[0], "v", Bytes::new());
    for key in &near {
        put(&mut world, 2, key, "v", Bytes::new());
        deliver_all(&mut world);
    }
    calm(&mut world, Span::secs(5));
    assert!(near.len() > 50);
    let logged = field(&mut world, 2, "logged_dots");
    assert!((1..=2 + 20).contains(&logged), "{logged} dots for one that is needed");
    world.crash(2);
    world.restart(2, false);
    world.cut.clear();
    calm(&mut world, Span::secs(3));
    assert_eq!(get(&mut world, 3, &far[0]).0, [bytes("v")]);
}
