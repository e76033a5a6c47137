//! Golden scripts: each shows what nodes say to each other in one part of the protocol.
//!
//! | command | what it does |
//! |---|---|
//! | `nodes N [LEVEL]` | so many nodes, numbered from 1; runs until all are ready |
//! | `show NAME…` | messages of these names are shown from now on, and no others |
//! | `put H KEY VALUE`, `get H KEY`, `delete H KEY` | a client asks node H |
//! | `vput H KEY VERSION VALUE`, `vget H KEY VERSION` | the same, of a version that it has chosen |
//! | `list H LIMIT` | a client asks node H for the next page of keys |
//! | `cut H`, `heal` | all that goes to or from node H is lost; no more |
//! | `stop H`, `start H` | the node stops; it starts again, with its disk |
//! | `run R` | so many rounds pass |
//! | `holds H KEY` | what the node has of the key |

use super::listings::list;
use super::world::{World, put};
use crate::epidemic::keys::wire_key;
use crate::epidemic::message::Message;
use crate::epidemic::pending::What;
use crate::epidemic::{Level, Settings};
use crate::slices::estimate::Bounds;
use crate::testing::compare_scripts;
use bytes::Bytes;
use core::fmt::Write;
use quorate_kernel::ids::{NodeId, Ticket};
use quorate_kernel::operation::{Cursor, Outcome};
use quorate_kernel::receipt::Receipt;
use quorate_kernel::time::Span;
use std::boxed::Box;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::format;
use std::rc::Rc;
use std::string::{String, ToString};
use std::vec::Vec;

/// What is told of messages, and which of them are lost.
#[derive(Default)]
struct Told {
    names: BTreeSet<String>,
    cut: BTreeSet<NodeId>,
    /// Who sent what to whom.
    sent: BTreeMap<(usize, String), BTreeSet<usize>>,
}

struct Script {
    world: World,
    nodes: Vec<NodeId>,
    told: Rc<RefCell<Told>>,
    asked: Vec<(usize, Ticket)>,
    /// Where the listing goes on.
    next: Cursor,
}

fn name(message: &Message) -> String {
    let text = format!("{message:?}");
    let end = text.find(|letter: char| !letter.is_ascii_alphanumeric());
    match message {
        // The building block's own name says more.
        Message::Epto(_) => name_of(&text["Epto(".len()..]),
        _ => text[..end.unwrap_or(text.len())].to_string(),
    }
}

fn name_of(text: &str) -> String {
    text.chars().take_while(char::is_ascii_alphanumeric).collect()
}

impl Script {
    fn new(count: usize, level: Level) -> Script {
        let bounds = Bounds { replicas_min: 3, replicas_max: 6, age_max: 20, equal: 4, floor: 0 };
        let settings = Settings { bounds, acks: 2, view: 30, ..Settings::usual(level) };
        let mut world = World::with(count, settings, 1);
        world.delay = Span::millis(10);
        let nodes: Vec<NodeId> = world.up();
        let told = Rc::new(RefCell::new(Told::default()));
        let (seen, known) = (Rc::clone(&told), nodes.clone());
        let number = move |node| known.iter().position(|it| *it == node).map_or(0, |at| at + 1);
        world.cut = Some(Box::new(move |from, to, message| {
            let mut told = seen.borrow_mut();
            let name = name(message);
            if told.names.contains(&name) {
                told.sent.entry((number(from), name)).or_default().insert(number(to));
            }
            told.cut.contains(&from) || told.cut.contains(&to)
        }));
        world.settle();
        Script { world, nodes, told, asked: Vec::new(), next: Cursor::default() }
    }

    fn ask(&mut self, host: usize, key: &str, what: What) {
        let ticket = self.world.ask(self.nodes[host - 1], key, what);
        self.asked.push((host, ticket));
    }

    fn list(&mut self, host: usize, limit: u32) {
        let ticket = list(&mut self.world, self.nodes[host - 1], &self.next, limit);
        self.asked.push((host, ticket));
    }

    /// Lets time pass; what one node says in a round is a line for each name.
    fn run(&mut self, rounds: u64, out: &mut String) {
        for round in 1..=rounds {
            self.world.run(1);
            for ((from, name), to) in core::mem::take(&mut self.told.borrow_mut().sent) {
                let to: Vec<String> = to.iter().map(ToString::to_string).collect();
                let _ = writeln!(out, "> {round}: {from} -> {} {name}", to.join(" "));
            }
            let (World { answers, .. }, next) = (&mut self.world, &mut self.next);
            self.asked.retain(|(host, ticket)| match answers.get(ticket) {
                None => true,
                Some(outcome) => {
                    if let Outcome::Page { next: Some(behind), .. } = outcome {
                        *next = behind.clone();
                    }
                    let _ = writeln!(out, "> {round}: {host} answers {}", shown(outcome));
                    false
                }
            });
        }
    }
}

fn shown(outcome: &Outcome) -> String {
    let acks = |context: &Bytes| {
        let receipt = Receipt::of_context(context).expect("answers carry receipts");
        let degraded = if receipt.is_degraded { ", degraded" } else { "" };
        format!("acks {}{degraded}", receipt.acks)
    };
    match outcome {
        Outcome::Values { values, context } => {
            let value = values.iter().next();
            let value = value.map_or("nothing".to_string(), |it| it.escape_ascii().to_string());
            format!("{value}, {}", acks(context))
        }
        Outcome::Written { context } => format!("written, {}", acks(context)),
        Outcome::Deleted { existed, context } => format!("deleted {existed}, {}", acks(context)),
        Outcome::Refused(refusal) => format!("refused: {refusal}"),
        Outcome::Page { keys, next } => {
            let keys: Vec<String> = keys.iter().map(|key| key.escape_ascii().to_string()).collect();
            let next = next.as_ref().map_or("the end".to_string(), ToString::to_string);
            format!("keys {}, then {next}", keys.join(" "))
        }
        other => panic!("{other:?} is no answer of this engine"),
    }
}

fn run(script: &str) -> String {
    let mut out = String::new();
    let mut all: Option<Script> = None;
    for line in script.lines().filter(|line| !line.starts_with('>')) {
        let _ = writeln!(out, "{line}");
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| words[at].parse::<u64>().expect("a number");
        if let ["nodes", count, ref level @ ..] = words[..] {
            let level = match level {
                ["none"] => Level::None,
                ["eventual"] => Level::Eventual,
                _ => Level::Strong,
            };
            all = Some(Script::new(count.parse().expect("a number"), level));
            continue;
        }
        // The first line says what is shown.
        let Some(all) = &mut all else { continue };
        let host = words.get(1).and_then(|word| word.parse::<usize>().ok()).unwrap_or(1);
        let node = all.nodes.get(host - 1).copied();
        let node = || node.expect("a node of the script");
        let value = |at: usize| Bytes::copy_from_slice(words[at].as_bytes());
        match words[0] {
            "show" => {
                let names = words[1..].iter().map(ToString::to_string).collect();
                all.told.borrow_mut().names = names;
            }
            "put" => all.ask(host, words[2], put(words[3])),
            "get" => all.ask(host, words[2], What::Get),
            "delete" => all.ask(host, words[2], What::Delete),
            "vput" => all.ask(host, words[2], What::PutVersion(number(3), value(4))),
            "vget" => all.ask(host, words[2], What::GetVersion(number(3))),
            "list" => all.list(host, u32::try_from(number(2)).expect("few")),
            "cut" => _ = all.told.borrow_mut().cut.insert(node()),
            "heal" => all.told.borrow_mut().cut.clear(),
            "stop" => all.world.stop(node()),
            "start" => all.world.start(node()),
            "run" => all.run(number(1), &mut out),
            "holds" => {
                let key = wire_key(words[2].as_bytes());
                let mut keys = all.world.state(node()).store.iter();
                let held = keys.find(|(known, _)| **known == key);
                let held = held.map_or("nothing".to_string(), |(_, held)| {
                    let last = held.last().expect("a key has versions");
                    if last.is_deleted { "a tombstone".to_string() } else { "a value".to_string() }
                });
                let _ = writeln!(out, "> {host} has {held}");
            }
            _ => panic!("no command: {line}"),
        }
    }
    out
}

#[test]
fn scripts_show_what_they_say() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/epidemic/scripts");
    compare_scripts(folder, 4, |script| Ok(run(script)));
}
