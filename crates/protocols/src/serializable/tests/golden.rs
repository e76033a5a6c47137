//! Golden scripts: each shows what groups log and say in one part of the protocol.
//!
//! The first line says what a script shows. After it come commands, and what they caused, in lines
//! that begin with `>`. `UPDATE_SCRIPTS=1` rewrites the files; the change is reviewed like code.
//!
//! | command | what happens |
//! |---|---|
//! | `groups N` | so many groups; keys begin with the number of theirs |
//! | `commit TX CLIENT PART…` | a client asks all primaries; a part is `KEY=VALUE`, `KEY+NUMBER`, or `KEY@VERSION` |
//! | `commit-at GROUP TX CLIENT PART…` | it asks one of them |
//! | `log GROUP` | what the group's primary has proposed is committed |
//! | `deliver` | the oldest message arrives |
//! | `lose` | all messages under way are lost |
//! | `fail GROUP REPLICA KEPT` | another replica leads, with so much of what was not committed |
//! | `read GROUP KEY`, `confirm GROUP` | a client reads; the primary has confirmed that it leads |
//! | `outcome GROUP TX CLIENT` | a client asks how a transaction ended |
//! | `settle`, `run SPAN` | all that waits for nothing happens; time passes |
//! | `show KEY` | what a key has |

use super::world::{World, key, put, tx};
use crate::serializable::{Act, Request};
use std::string::String;
use std::vec::Vec;
use std::{env, format, fs, mem};

fn number(word: &str) -> u64 {
    word.parse().unwrap_or_else(|_| panic!("{word} is a number"))
}

/// What a client's words ask for.
type Parts<'a> = (Vec<(&'a str, u64)>, Vec<(&'a str, Act)>);

fn parts<'a>(words: &[&'a str]) -> Parts<'a> {
    let (mut reads, mut acts) = (Vec::new(), Vec::new());
    for word in words {
        if let Some((name, value)) = word.split_once('=') {
            acts.push((name, put(value)));
        } else if let Some((name, value)) = word.split_once('+') {
            acts.push((name, Act::Add(number(value) as i64)));
        } else {
            let (name, version) = word.split_once('@').expect("it is KEY@VERSION");
            reads.push((name, number(version)));
        }
    }
    (reads, acts)
}

fn command(world: &mut World, words: &[&str]) {
    let group = |word: &str| number(word) as usize - 1;
    match words {
        ["commit", counter, client, rest @ ..] => {
            let (reads, acts) = parts(rest);
            world.commit_tx(tx(number(counter), number(client)), &reads, &acts);
        }
        ["commit-at", at, counter, client, rest @ ..] => {
            let (reads, acts) = parts(rest);
            world.commit_at(group(at), tx(number(counter), number(client)), &reads, &acts);
        }
        ["log", at] => world.commit(group(at), usize::MAX),
        ["deliver"] => assert!(world.deliver(|_| true), "a message is under way"),
        ["lose"] => world.net.clear(),
        ["fail", at, next, kept] => {
            world.fail_over(group(at), number(next) as usize, number(kept) as usize, true);
        }
        ["read", at, name] => {
            let keys = Vec::from([key(name)]);
            world.ask(group(at), Request::Read { keys });
        }
        ["confirm", at] => world.confirm(group(at)),
        ["outcome", at, counter, client] => {
            let id = tx(number(counter), number(client));
            world.ask_outcome(group(at), id);
        }
        ["settle"] => world.settle(),
        ["run", span] => {
            world.run_ms(number(span.strip_suffix("ms").expect("a span is in ms")));
        }
        ["show", name] => {
            let (version, value) = world.value(name);
            world.trace.push(format!("{name}: version {version}, {value:?}"));
        }
        _ => panic!("{words:?} is no command"),
    }
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
        match (&mut world, &words[..]) {
            (_, []) => continue,
            (none, ["groups", count]) => *none = Some(World::new(number(count))),
            (Some(world), words) => command(world, words),
            (None, _) => panic!("the first command is `groups`"),
        }
        let trace = world.as_mut().map(|world| mem::take(&mut world.trace));
        for happened in trace.unwrap_or_default() {
            out += &format!("> {happened}\n");
        }
    }
    out
}

#[test]
fn scripts_show_what_they_say() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/serializable/scripts");
    let entries = fs::read_dir(folder).expect("the folder of scripts is there");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    paths.sort();
    assert!(paths.len() >= 6, "the scripts are there");
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
