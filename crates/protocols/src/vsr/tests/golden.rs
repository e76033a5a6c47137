//! Golden scripts: each shows the messages of one part of the protocol.
//!
//! The first line says what a script shows. After it come commands, and what they caused, in lines
//! that begin with `>`. `UPDATE_SCRIPTS=1` rewrites the files; the change is reviewed like code.
//!
//! | command | what happens |
//! |---|---|
//! | `members N [spares M] [memory or periodic]` | the nodes start; messages and syncs take 1 ms |
//! | `put NODE KEY`, `read NODE KEY` | a client asks the node |
//! | `wish NODE MEMBER…` | the node is told who shall be the members |
//! | `cut NODE…`, `mend` | all messages from and to these nodes are lost; no more |
//! | `crash NODE`, `start NODE` | the node stops; it starts again |
//! | `run SPAN` | time passes; beats are not shown |
//! | `quiet SPAN` | time passes, and nothing is shown |
//! | `show NODE` | what the node takes part in |

use super::node::Level;
use super::world::{World, ids};
use crate::testing::compare_scripts;
use crate::vsr::Replica;
use quorate_kernel::ids::NodeId;
use std::string::String;
use std::vec::Vec;
use std::{format, mem};

fn number(word: &str) -> u64 {
    word.parse().unwrap_or_else(|_| panic!("{word} is a number"))
}

fn node(word: &str) -> usize {
    number(word) as usize - 1
}

fn span(word: &str) -> u64 {
    number(word.strip_suffix("ms").unwrap_or_else(|| panic!("{word} is in ms")))
}

fn nodes(words: &[&str]) -> Vec<usize> {
    words.iter().map(|word| node(word)).collect()
}

fn born(words: &[&str]) -> World {
    let after = |name: &str| words.iter().position(|word| *word == name);
    let members = number(words.get(1).expect("so many members"));
    let spares = after("spares").map_or(0, |place| number(words[place + 1]));
    let level = match (after("memory"), after("periodic")) {
        (Some(_), _) => Level::Memory,
        (_, Some(_)) => Level::Periodic,
        _ => Level::Sync,
    };
    let mut world = World::calm(members, spares, level);
    world.trace = Some(Vec::new());
    world
}

fn command(world: &mut World, words: &[&str]) {
    match words {
        ["put", at, key] => _ = world.put(node(at), number(key) as u8),
        ["read", at, key] => assert!(world.read(0, node(at), number(key) as u8), "it is taken"),
        ["wish", at, members @ ..] => {
            let members: Vec<u64> = members.iter().map(|word| number(word)).collect();
            let wish = ids(&members);
            world.turn(node(at), |replica, _| replica.wish(&wish).expect("it can propose"));
        }
        ["cut", cut @ ..] => world.cut(&nodes(cut)),
        ["mend"] => world.mend(),
        ["crash", at] => world.crash(node(at)),
        ["start", at] => world.start(node(at)),
        ["run", time] => world.run_ms(span(time)),
        ["quiet", time] => {
            world.run_ms(span(time));
            world.trace = Some(Vec::new());
        }
        ["show", at] => {
            let shown = stands(world.replica(node(at)));
            world.note(|| format!("{at}: {shown}"));
        }
        _ => panic!("{words:?} is no command"),
    }
}

fn stands(replica: &Replica) -> String {
    let members = &replica.configuration().members;
    let members: Vec<u64> = members.iter().map(|NodeId(id)| *id).collect();
    format!(
        "{:?} in {:?}, members {members:?}, log {:?} to {:?}, committed {:?}, executed {:?}",
        replica.status(),
        replica.view(),
        replica.log().base().op,
        replica.log().end(),
        replica.commit(),
        replica.applied()
    )
}

fn run(text: &str) -> String {
    let (mut out, mut world) = (String::new(), None);
    for (index, line) in text.lines().enumerate() {
        if line.starts_with('>') {
            continue;
        }
        out += &format!("{line}\n");
        if index == 0 {
            assert!(line.ends_with('.'), "{line}: the first line is a sentence");
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        match (&mut world, words.first()) {
            (_, None) => continue,
            (none, Some(&"members")) => *none = Some(born(&words)),
            (Some(world), _) => command(world, &words),
            (None, _) => panic!("the first command is `members`"),
        }
        let trace = world.as_mut().and_then(|world: &mut World| world.trace.as_mut());
        for happened in trace.map(mem::take).unwrap_or_default() {
            out += &format!("> {happened}\n");
        }
    }
    out
}

#[test]
fn scripts_show_what_they_say() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/vsr/scripts");
    compare_scripts(folder, 8, |script| Ok(run(script)));
}
