//! The engine's messages and writes in readable form.
//!
//! An actor reads `partition@node`, with `.birth` behind it if that is not the partition's first; a
//! dot is an actor, `#` and its counter.

use super::super::keys::{actor_of, client_key, dots_of, state_value};
use super::super::map::{Map, Shape};
use super::super::message::{Ending, Message, TellClock, Window};
use super::super::page;
use super::super::replicate::dot_log::LoggedDot;
use super::super::replicate::replica::Record;
use super::super::replicate::unstripped::context_of;
use super::super::token::Tokens;
use super::super::{Causal, Settings};
use crate::dots::clock::Entry;
use crate::dots::context::CausalContext;
use crate::dots::dot::{ALL, Actor, Counter, Dot};
use crate::dots::object::Object;
use crate::testing::{Scripted, siblings, word};
use bytes::Bytes;
use quorate_kernel::entries::{self, Place};
use quorate_kernel::ids::ClusterId;
use quorate_kernel::keyspace::Keyspace;
use quorate_kernel::storage::Class;
use quorate_kernel::view::{Change, View, ViewId};
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

/// As many partitions as a script asks for, by default as many as replicas.
fn shape(first_view: &View, options: &[&str]) -> Shape {
    let members = first_view.members().len() as u16;
    let count =
        |name: &str| options.iter().find_map(|option| option.strip_prefix(name)?.parse().ok());
    let replicas = count("replicas=").unwrap_or(members.min(3));
    Shape::new(count("partitions=").unwrap_or(members.max(replicas)), replicas)
}

/// How the words of a script set a keyspace.
fn words(options: &[&str]) -> Vec<(&'static str, String)> {
    let is_given = |option: &str| options.contains(&option);
    let on_off = |is_on| if is_on { "on" } else { "off" }.to_string();
    let value_bytes_max = if is_given("long") { 9 << 20 } else { 1000 };
    let mut words = Vec::from([
        ("value", value_bytes_max.to_string()),
        ("replication", on_off(!is_given("lazy"))),
        ("read_repair", on_off(is_given("repair"))),
        ("siblings", if is_given("newest") { "newest" } else { "error" }.to_string()),
    ]);
    for name in ["w", "r"] {
        let count = |option: &&str| option.strip_prefix(name)?.strip_prefix('=').map(String::from);
        words.extend(options.iter().find_map(count).map(|count| (name, count)));
    }
    words
}

impl Scripted for Causal {
    fn born(first_view: &View, options: &[&str]) -> Causal {
        let record = Causal::record(first_view, options);
        let tokens = Tokens::new(b"secret", ClusterId(1));
        let map = Some(Map::of(&record));
        let mut settings = Settings::usual(shape(first_view, options), map, tokens);
        for option in options {
            match (*option, option.split_once('=')) {
                (_, Some(("page", keys))) => {
                    settings.limits.scan_keys = keys.parse().expect("a number");
                }
                (_, Some(("spare_dots", dots))) => {
                    settings.limits.spare_dots = dots.parse().expect("a number");
                }
                ("lazy" | "repair" | "long" | "newest", _)
                | (_, Some(("w" | "r" | "partitions" | "replicas", _))) => {}
                _ => panic!("no option {option}"),
            }
        }
        let mut engine = Causal::new(settings);
        engine.alter(&record);
        engine
    }

    fn decided(_view: ViewId, _change: Change) -> Message {
        panic!("this engine has no views")
    }

    fn record(first_view: &View, options: &[&str]) -> Keyspace {
        let mut record = siblings::first(shape(first_view, options), first_view.members());
        let words = words(options).into_iter().map(|(name, word)| (name.to_string(), word));
        record.settings.extend(words);
        record
    }

    fn name(message: &Message) -> &'static str {
        match message {
            Message::ReadA { .. } => "ReadA",
            Message::ReadB { .. } => "ReadB",
            Message::WriteA { .. } => "WriteA",
            Message::WriteAgainA { .. } => "WriteAgainA",
            Message::WriteSeenA { .. } => "WriteSeenA",
            Message::WriteB { .. } => "WriteB",
            Message::Replicate { .. } => "Replicate",
            Message::HandOver { .. } => "HandOver",
            Message::Replicated { .. } => "Replicated",
            Message::SyncA { .. } => "SyncA",
            Message::SyncB { .. } => "SyncB",
            Message::ScanA { .. } => "ScanA",
            Message::ScanB { .. } => "ScanB",
            Message::MapA { .. } => "MapA",
            Message::MapB { .. } => "MapB",
            Message::LeftA { .. } => "LeftA",
            Message::LeftB { .. } => "LeftB",
            Message::ListA { .. } => "ListA",
            Message::ListB { .. } => "ListB",
        }
    }

    fn show(message: &Message) -> String {
        match message {
            Message::ReadA { op, key } => format!("#{op} {}", word(client_key(key))),
            Message::ReadB { op, partition, is_serving, object } => {
                let serving = if *is_serving { "" } else { " not serving" };
                format!("#{op} partition {}{serving} {}", partition.0, object_word(object))
            }
            Message::WriteA { op, context, is_delete, key, value, .. } => {
                let what = if *is_delete { "delete".to_string() } else { word(value) };
                format!("#{op} {} {what} {}", word(client_key(key)), context_word(context))
            }
            Message::WriteAgainA { age_ms, op, context, key, value, .. } => {
                let (key, context) = (word(client_key(key)), context_word(context));
                format!("#{op} {key} {} {context} {age_ms} ms old", word(value))
            }
            Message::WriteSeenA { op, context, is_delete, key, value, names, .. } => {
                let what = if *is_delete { "delete".to_string() } else { word(value) };
                let (key, context) = (word(client_key(key)), context_word(context));
                format!("#{op} {key} {what} {context} and {} names", names.len())
            }
            Message::WriteB { op, ending } => match ending {
                Ending::Stored(told) => format!("#{op} stored {}", context_word(told)),
                Ending::StoredAs(told, _) => format!("#{op} stored {}", context_word(told)),
                other => format!("#{op} {other:?}"),
            },
            Message::Replicate { op, dots, key, object, .. }
            | Message::HandOver { op, dots, key, object, .. } => {
                let (key, object) = (word(client_key(key)), object_word(object));
                format!("#{op} {key} {} {object}", dots_word(dots))
            }
            Message::Replicated { op, partition } => format!("#{op} partition {}", partition.0),
            Message::SyncA { pair, clock, window, all } => {
                let (from, all) = (actor_word(pair.from), if *all { " all" } else { "" });
                let (clock, window) = (clock_word(clock), window_word(*window));
                format!("{from} to {} {clock}{window}{all}", pair.to.0)
            }
            Message::SyncB { pair, to, clock, is_joined, covers, wants, page } => {
                let is_complete = *covers == Window::default();
                let flags =
                    [(*is_joined, "joined"), (is_complete, "complete"), (wants.is_some(), "wants")];
                let flags: Vec<&str> =
                    flags.into_iter().filter(|(is_so, _)| *is_so).map(|(_, word)| word).collect();
                let (from, to) = (actor_word(pair.from), actor_word(*to));
                let (clock, page) = (clock_word(clock), page_word(page));
                let covers = window_word(*covers);
                format!("{from} to {to} {clock} {}{covers} {page}", flags.join(" "))
            }
            Message::ScanA { pair, step, .. } => {
                format!("{} to {} step {step}", actor_word(pair.from), pair.to.0)
            }
            Message::ScanB { pair, to, step, clock, page, next } => {
                let (from, to) = (actor_word(pair.from), actor_word(*to));
                let end = if next.is_empty() { "end" } else { "more" };
                let (clock, page) = (clock_word(clock), page_word(page));
                format!("{from} to {to} step {step} {clock} {page} {end}")
            }
            Message::MapA { version } => format!("has {version}"),
            Message::MapB { map } => format!("version {}", map.version),
            Message::LeftA { actor } | Message::LeftB { actor, .. } => actor_word(*actor),
            Message::ListA { op, from, limit } => format!("#{op} from {from:x} {limit}"),
            Message::ListB { op, next, keys } => {
                let keys = super::super::coordinate::plain::unpack(keys.clone()).expect("keys");
                let keys: Vec<String> = keys.iter().map(|key| word(key)).collect();
                format!("#{op} {} next {next:x?}", keys.join(" "))
            }
        }
    }

    fn show_write(class: Class, key: &Bytes, value: Option<&Bytes>) -> String {
        if class == Class::State {
            return show_state(key, value);
        }
        if class == Class::Log {
            return show_log(key, value);
        }
        let (birth, rest) = key.split_at(4);
        let birth = u32::from_be_bytes(*birth.first_chunk().expect("four bytes"));
        let (kind, rest) = rest.split_first().expect("data has a kind");
        let what = match kind {
            b'o' => {
                let object = value.map_or("nothing".to_string(), object_word);
                format!("object {} {object}", word(client_key(rest)))
            }
            b'c' => {
                let entry: Entry = value.map(|value| state_value(value)).unwrap_or_default();
                format!("clock {} {}", actor_word(actor_of(rest)), entry_word(&entry))
            }
            b'n' => {
                let key = word(client_key(rest));
                match value {
                    Some(value) => {
                        format!("unstripped {key} {}", context_word(&counters(&context_of(value))))
                    }
                    None => format!("stripped {key}"),
                }
            }
            other => format!("{other:?}"),
        };
        format!("{birth} {what}")
    }
}

fn show_log(key: &Bytes, value: Option<&Bytes>) -> String {
    let value = value.expect("no entry is deleted alone");
    let Some(Place::Entry(_, index)) = entries::place(key) else {
        return format!("log from {}", entries::first(value).expect("an index").0);
    };
    let show = |LoggedDot { part, dot, context, .. }: LoggedDot| {
        let context = match context.is_empty() {
            true => String::new(),
            false => format!(" {}", context_word(&counters(&context))),
        };
        format!("{part} dot {}{context}", dot_word(dot))
    };
    let dots: Vec<String> = dots_of(value).into_iter().map(show).collect();
    format!("log {} {}", index.0, dots.join(", "))
}

fn show_state(key: &Bytes, value: Option<&Bytes>) -> String {
    let Some(value) = value else { return format!("no {}", word(&key[..key.len().min(7)])) };
    match &key[..] {
        b"map" => format!("map {}", state_value::<Map>(value).version),
        b"birth" => format!("birth {}", state_value::<u32>(value)),
        key if key.starts_with(b"replica") => {
            let record: Record = state_value(value);
            let flags = [(record.is_joined, " joined"), (record.is_leaving, " leaving")];
            let flags: String =
                flags.into_iter().filter(|(is_so, _)| *is_so).map(|(_, word)| word).collect();
            format!("replica {} reserved {}{flags}", actor_word(record.actor), record.reserved)
        }
        _ => "garbage".to_string(),
    }
}

fn actor_word(actor: Actor) -> String {
    let Actor { partition, since, birth, node } = actor;
    let mut text = format!("{}@{}", partition.0, node.0);
    if since > 1 {
        text += &format!("v{since}");
    }
    if birth > 1 {
        text += &format!(".{birth}");
    }
    text
}

fn dot_word(dot: Dot) -> String {
    format!("{}#{}", actor_word(dot.actor), dot.counter)
}

fn dots_word(dots: &[Dot]) -> String {
    let dots: Vec<String> = dots.iter().map(|dot| dot_word(*dot)).collect();
    format!("[{}]", dots.join(" "))
}

fn counter_word(counter: Counter) -> String {
    if counter == ALL { "all".to_string() } else { counter.to_string() }
}

fn context_word(context: &[(Actor, Counter)]) -> String {
    let entries: Vec<String> = context
        .iter()
        .map(|(actor, counter)| format!("{}<={}", actor_word(*actor), counter_word(*counter)))
        .collect();
    format!("({})", entries.join(" "))
}

fn object_word(bytes: &Bytes) -> String {
    if bytes.is_empty() {
        return "absent".to_string();
    }
    let object = Object::from_bytes(bytes).expect("an object");
    let versions: Vec<String> = object
        .versions
        .iter()
        .map(|(dot, version)| format!("{}={}", dot_word(*dot), word(&version.value)))
        .collect();
    format!("{{{}}} {}", versions.join(" "), context_word(&counters(&object.context)))
}

fn counters(context: &CausalContext) -> Vec<(Actor, Counter)> {
    context.iter().collect()
}

fn entry_word(entry: &Entry) -> String {
    let mut text = counter_word(entry.base());
    for (first, last) in entry.above() {
        text += &format!(",{first}-{last}");
    }
    if entry.closed {
        text += " closed";
    }
    if entry.left {
        text += " left";
    }
    text
}

fn window_word(window: Window) -> String {
    if window == Window::default() {
        return String::new();
    }
    let [after, until] = [window.after, window.until].map(|end| end.map_or("end".into(), dot_word));
    format!(" ({after}..{until}]")
}

fn clock_word(clock: &TellClock) -> String {
    let entries: Vec<String> = clock
        .0
        .iter()
        .map(|(actor, entry)| format!("{}:{}", actor_word(*actor), entry_word(entry)))
        .collect();
    format!("<{}>", entries.join(" "))
}

fn page_word(bytes: &Bytes) -> String {
    let entries: Vec<String> = page::read(bytes.clone())
        .expect("a page")
        .into_iter()
        .map(|entry| {
            let object =
                if entry.object.is_empty() { Bytes::new() } else { entry.object.to_bytes() };
            let key = word(client_key(&entry.key));
            format!("{key} {} {}", object_word(&object), dots_word(&entry.dots))
        })
        .collect();
    format!("[{}]", entries.join("; "))
}
