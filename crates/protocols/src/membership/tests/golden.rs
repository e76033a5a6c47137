//! Golden scripts: each shows the messages of one part of the protocol.
//!
//! The first line says what a script shows. After it come commands, and what they caused, in lines
//! that begin with `>`. `UPDATE_SCRIPTS=1` rewrites the files; the change is reviewed like code.
//!
//! | command | what happens |
//! |---|---|
//! | `founders N` | nodes 1 to N are the members; messages and syncs take 1 ms |
//! | `join CONTACT` | the next node wants to be a member |
//! | `joins COUNT CONTACT` | so many do, at one moment |
//! | `leave NODE`, `kick NODE OTHER` | the node leaves, or sends another away |
//! | `lose SUBJECT FROM TO` | no alert on a node reaches one from the other; `lose nothing` |
//! | `cut NODE…`, `mend` | all messages from and to these nodes are lost; no more |
//! | `crash NODE`, `start NODE` | the node stops; it starts again |
//! | `run SPAN` | time passes; probes are not shown |
//! | `brief SPAN` | time passes; only what nodes are told is shown |
//! | `quiet SPAN` | time passes, and nothing is shown |
//! | `show NODE` | how the node stands |

use super::world::World;
use crate::membership::Body;
use quorate_kernel::ids::NodeId;
use std::collections::BTreeSet;
use std::string::String;
use std::vec::Vec;
use std::{env, format, fs, mem};

fn number(word: &str) -> u64 {
    word.parse().unwrap_or_else(|_| panic!("{word} is a number"))
}

fn node(word: &str) -> usize {
    number(word) as usize - 1
}

fn span(word: &str) -> u64 {
    number(word.strip_suffix("ms").unwrap_or_else(|| panic!("{word} is in ms")))
}

fn command(world: &mut World, lost: &mut BTreeSet<(u64, usize, usize)>, words: &[&str]) {
    match words {
        ["join", seed] => _ = world.join(&[node(seed)]),
        ["joins", count, seed] => (0..number(count)).for_each(|_| _ = world.join(&[node(seed)])),
        ["leave", at] => world.turn(node(at), |roll, cx| roll.leave(cx).expect("a member")),
        ["kick", at, other] => {
            let other = NodeId(number(other));
            world.turn(node(at), |roll, cx| roll.kick(other, cx).expect("a member"));
        }
        ["lose", "nothing"] => world.loses = None,
        ["lose", subject, from, to] => {
            lost.insert((number(subject), node(from), node(to)));
            let lost = lost.clone();
            world.loses = Some(std::boxed::Box::new(move |from, to, message| {
                let Body::Alerts { alerts } = &message.body else { return false };
                alerts.iter().any(|alert| lost.contains(&(alert.subject.0, from, to)))
            }));
        }
        ["cut", cut @ ..] => cut.iter().for_each(|at| world.side[node(at)] = 1),
        ["mend"] => world.side.fill(0),
        ["crash", at] => world.crash(node(at)),
        ["start", at] => world.start(node(at)),
        ["run", time] => world.run_ms(span(time)),
        ["brief", time] => {
            world.run_ms(span(time));
            let trace = world.trace.get_or_insert_default();
            trace.retain(|line| !line.contains(" -> "));
        }
        ["quiet", time] => {
            world.run_ms(span(time));
            world.trace = Some(Vec::new());
        }
        ["show", at] => {
            let (status, roll) = (world.status(node(at)), world.roll(node(at)));
            let ids: Vec<u64> = roll.configuration().ids().map(|id| id.0).collect();
            let shown = format!("{at}: {status:?}, configuration {:?} {ids:?}", roll.roll());
            world.note(|| shown);
        }
        _ => panic!("{words:?} is no command"),
    }
}

/// Members by their ids, and changes in few words.
fn brief(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find("Member { id: NodeId(") {
        out += &rest[..at];
        let after = &rest[at + "Member { id: NodeId(".len()..];
        let end = after.find(')').expect("an id ends");
        out += &after[..end];
        rest = &after[after.find("] }").expect("a member ends") + "] }".len()..];
    }
    out += rest;
    out.replace("NodeId(", "").replace("), ", ", ").replace(")]", "]").replace(") }", " }")
}

fn run(text: &str) -> String {
    let (mut out, mut world) = (String::new(), None);
    let mut lost = BTreeSet::new();
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
        match (&mut world, &words[..]) {
            (_, []) => continue,
            (none, ["founders", count]) => {
                let mut world = World::calm(number(count));
                world.trace = Some(Vec::new());
                *none = Some(world);
            }
            (Some(world), _) => command(world, &mut lost, &words),
            (None, _) => panic!("the first command is `founders`"),
        }
        let trace = world.as_mut().and_then(|world: &mut World| world.trace.as_mut());
        for happened in trace.map(mem::take).unwrap_or_default() {
            out += &format!("> {}\n", brief(&happened));
        }
    }
    out
}

#[test]
fn scripts_show_what_they_say() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/membership/scripts");
    let entries = fs::read_dir(folder).expect("the folder of scripts is there");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    paths.sort();
    assert!(paths.len() >= 8, "the scripts are there");
    for path in paths {
        let expected = fs::read_to_string(&path).expect("a readable script");
        let actual = run(&expected);
        if env::var_os("UPDATE_SCRIPTS").is_some() {
            fs::write(&path, &actual).expect("a writable script");
        } else {
            assert_eq!(actual, expected, "{}: UPDATE_SCRIPTS=1 rewrites it", path.display());
        }
    }
}
