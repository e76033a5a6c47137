//! There is one simulated world.
//!
//! It is `crates/sim/src/world`: hosts, network, disks and clients around one queue of events. A
//! second one would be a second truth about what can happen. Two signs tell of one: a type or a
//! file that is called a world, and a queue of the simulator's events that is made elsewhere. Those
//! there are beside it are exceptions, and exceptions only shrink. Tests may have small worlds of
//! their own: what they stand around is one part, and no promise is judged in them alone.

use super::lengths::{Kind, Measure, Place};
use crate::tidy::source::{Source, line_of};
use crate::tidy::tree::{Tree, is_test};

/// The one world, and what it stands on: the queue, and the hosts around it.
const WORLD: [&str; 3] =
    ["crates/sim/src/world/", "crates/sim/src/hosts/queue.rs", "crates/sim/src/hosts/machines.rs"];

/// How many signs of another world each file shows; the line is that of the first.
pub fn measure(tree: &Tree) -> Vec<(Place, Measure)> {
    let mut over = Vec::new();
    let folders = ["crates", "examples"].into_iter();
    let files = folders.flat_map(|folder| tree.below(folder, ".rs"));
    for (path, text) in files.filter(|(path, _)| !is_world(path) && !is_test(path)) {
        let source = Source::new(text);
        let tests = source.test_regions();
        let mut places: Vec<usize> = worlds(&source).collect();
        if path.starts_with("crates/sim/") || source.code.contains("quorate_sim::") {
            places.extend(queues(&source));
        }
        places.retain(|at| !tests.iter().any(|region| region.contains(at)));
        places.sort_unstable();
        let is_called_so = path.ends_with("/world.rs") || path.ends_with("/world/mod.rs");
        let length = places.len() + usize::from(is_called_so);
        if length > 0 {
            let line = places.first().map_or(1, |at| line_of(text, *at));
            over.push(((Kind::Worlds, path.to_owned()), Measure { length, line }));
        }
    }
    over
}

/// Where types are defined whose names end in `World`; an alias is no other world.
fn worlds(source: &Source) -> impl Iterator<Item = usize> + '_ {
    let types = source.types().into_iter();
    let is_world =
        |(_, keyword, name): &(usize, &str, &str)| *keyword != "type" && name.ends_with("World");
    types.filter(is_world).map(|(at, ..)| at)
}

/// Where a queue of events is made.
fn queues(source: &Source) -> impl Iterator<Item = usize> + '_ {
    let is_made = |at: &usize| {
        let after = &source.code[at + "Queue".len()..];
        ["::default()", "::new("].iter().any(|call| after.starts_with(call))
    };
    source.places_of("Queue").filter(is_made)
}

fn is_world(path: &str) -> bool {
    WORLD.iter().any(|place| path.starts_with(place))
}

#[cfg(test)]
mod tests {
    use super::super::ratchet;
    use super::*;
    use crate::tidy::Finding;
    use crate::tidy::tests::{fires, passes};

    fn rule(tree: &Tree) -> Vec<Finding> {
        ratchet::check("list.txt", tree, &measure(tree))
    }

    #[test]
    fn a_second_world_is_found() {
        let lab = "crates/lab/src/bench/driver.rs";
        let queue = "use quorate_sim::queue::Queue;\nfn f() { let queue = Queue::default(); }\n";
        for text in [
            "\nstruct World {}\n",
            "\npub(super) struct SmallWorld<T> { t: T }\n",
            "\ntrait World {}\n",
            queue,
        ] {
            fires(rule, &[(lab, text)], &format!("{lab}:2"), "shows 1 signs of another world");
            passes(rule, &[(lab, text), ("list.txt", &format!("worlds | {lab} | 1\n"))]);
            let test = format!("#[cfg(test)]\nmod tests {{ {text} }}\n");
            passes(rule, &[(lab, &test)]);
            for own in ["crates/sim/src/world/mod.rs", "crates/a/src/vsr/tests/world.rs"] {
                passes(rule, &[(own, text)]);
            }
        }
        let called = "crates/host/src/simulated/world.rs";
        fires(rule, &[(called, "struct Hosts;")], &format!("{called}:1"), "only one");
    }

    #[test]
    fn other_words_are_no_worlds() {
        for text in [
            "// struct World\n",
            "type SmallWorld = World<Small>;\n",
            "struct WorldArgs;\n",
            "fn worlds() -> Queue { Queue::default() }\n",
        ] {
            passes(rule, &[("crates/host/src/core.rs", text)]);
        }
    }

    #[test]
    fn no_exception_for_a_world_may_be_large() {
        let path = "crates/lab/src/a.rs";
        let text = "struct World;\nstruct OtherWorld;\nstruct ThirdWorld;\nenum LastWorld {}\n";
        let files = [(path, text), ("list.txt", &format!("worlds | {path} | 4\n"))];
        fires(rule, &files, "list.txt:1", "may exceed 3");
    }
}
