//! Messages and writes in readable form.

use super::super::keys::Records;
use super::super::message::{Message, Part};
use super::super::{Merkle, Settings};
use bytes::Bytes;
use quorate_kernel::ids::ClusterId;
use quorate_kernel::keyspace::Keyspace;
use quorate_kernel::storage::Class;
use quorate_kernel::time::Span;
use quorate_kernel::view::{Change, View, ViewId};
use quorate_protocols::causal::keys::{client_key, state_value};
use quorate_protocols::causal::map::{Map, Shape};
use quorate_protocols::causal::message::Pair;
use quorate_protocols::causal::page;
use quorate_protocols::causal::token::Tokens;
use quorate_protocols::dots::object::Object;
use quorate_protocols::testing::{Scripted, siblings, word};
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

fn number(options: &[&str], name: &str) -> Option<u16> {
    options.iter().find_map(|option| option.strip_prefix(name)?.parse().ok())
}

fn shape(first_view: &View, options: &[&str]) -> Shape {
    let members = first_view.members().len() as u16;
    let replicas = number(options, "replicas=").unwrap_or(members.min(3));
    Shape::new(number(options, "partitions=").unwrap_or(members), replicas)
}

impl Scripted for Merkle {
    fn born(first_view: &View, options: &[&str]) -> Merkle {
        let map = Map::of(&Merkle::record(first_view, options));
        let tokens = Tokens::new(b"secret", ClusterId(1));
        let mut settings = Settings::usual(shape(first_view, options), Some(map), tokens);
        settings.sync_interval = Span::millis(100);
        settings.replicate_on_write = !options.contains(&"lazy");
        settings.width = number(options, "width=").map_or(10, u32::from);
        Merkle::new(settings)
    }

    fn decided(_view: ViewId, _change: Change) -> Message {
        panic!("the baseline has no views")
    }

    fn record(first_view: &View, options: &[&str]) -> Keyspace {
        siblings::first(shape(first_view, options), first_view.members())
    }

    fn name(message: &Message) -> &'static str {
        match message {
            Message::ReadA { .. } => "ReadA",
            Message::ReadB { .. } => "ReadB",
            Message::WriteA { .. } => "WriteA",
            Message::WriteB { .. } => "WriteB",
            Message::Replicate { .. } => "Replicate",
            Message::Roots { .. } => "Roots",
            Message::Buckets { .. } => "Buckets",
            Message::Leaves { .. } => "Leaves",
            Message::Keys { .. } => "Keys",
            Message::Repair { .. } => "Repair",
            Message::MapA { .. } => "MapA",
            Message::MapB { .. } => "MapB",
        }
    }

    fn show(message: &Message) -> String {
        match message {
            Message::ReadA { op, key } => format!("#{op} {}", word(client_key(key))),
            Message::ReadB { op, is_serving, object, .. } => {
                let serving = if *is_serving { "" } else { " not serving" };
                format!("#{op}{serving} {}", object_word(object))
            }
            Message::WriteA { op, key, value, .. } => {
                format!("#{op} {} {}", word(client_key(key)), word(value))
            }
            Message::WriteB { op, told } => format!("#{op} told {}", told.is_some()),
            Message::Replicate { key, object } => {
                format!("{} {}", word(client_key(key)), object_word(object))
            }
            Message::Roots { pair, exchange, parts } => {
                format!("{} #{exchange} {}", pair_word(*pair), parts_word(parts))
            }
            Message::Buckets { pair, exchange, parts } => {
                format!("{} #{exchange} {}", pair_word(*pair), parts_word(parts))
            }
            Message::Leaves { pair, parts } => {
                format!("{} {}", pair_word(*pair), parts_word(parts))
            }
            Message::Keys { pair, leaves } => {
                let shown = leaves.iter().map(|leaf| {
                    let keys: Vec<String> =
                        leaf.keys.iter().map(|(key, _)| word(client_key(key))).collect();
                    format!("{}/{}: {}", leaf.home, leaf.at, keys.join(" "))
                });
                format!("{} [{}]", pair_word(*pair), shown.collect::<Vec<_>>().join("; "))
            }
            Message::Repair { pair, wants, page } => {
                let wants = if *wants { "wants " } else { "" };
                let entries = page::read(page.clone()).expect("a page");
                let shown = entries.iter().map(|entry| {
                    let object = object_word(&entry.object.to_bytes());
                    format!("{} {object}", word(client_key(&entry.key)))
                });
                let shown: Vec<String> = shown.collect();
                format!("{} {wants}[{}]", pair_word(*pair), shown.join("; "))
            }
            Message::MapA { version } => format!("has {version}"),
            Message::MapB { map } => format!("version {}", map.version),
        }
    }

    fn show_write(class: Class, key: &Bytes, value: Option<&Bytes>) -> String {
        let Some(value) = value else { return format!("no {}", word(key)) };
        match (class, &key[..]) {
            (Class::State, b"map") => format!("map {}", state_value::<Map>(value).version),
            (Class::State, b"birth") => format!("birth {}", state_value::<u32>(value)),
            (Class::State, _) => {
                let records: Records = state_value(value);
                let shown = records.iter().map(|(actor, has_joined)| {
                    let joined = if *has_joined { "" } else { " joining" };
                    format!("{}@{}.{}{joined}", actor.partition.0, actor.node.0, actor.birth)
                });
                format!("replicas {}", shown.collect::<Vec<_>>().join(", "))
            }
            (Class::Log, _) => unreachable!("this engine keeps no log"),
            (Class::Data, key) => {
                let birth = u32::from_be_bytes(*key.first_chunk().expect("four bytes"));
                format!("{birth} {} {}", word(client_key(&key[5..])), object_word(value))
            }
        }
    }
}

fn pair_word(pair: Pair) -> String {
    format!("{} to {}", pair.from.partition.0, pair.to.0)
}

/// For each part its group, its place and how many hashes it has.
fn parts_word(parts: &[Part]) -> String {
    let shown = parts.iter().map(|part| {
        let count = part.hashes.len();
        format!("{}/{}: {count}", part.home, part.at)
    });
    format!("[{}]", shown.collect::<Vec<_>>().join("; "))
}

fn object_word(bytes: &Bytes) -> String {
    let object = Object::from_bytes(bytes).expect("an object");
    if object.is_empty() {
        return "absent".to_string();
    }
    let versions: Vec<String> = object
        .versions
        .iter()
        .map(|(dot, version)| {
            format!("{}#{}={}", dot.actor.node.0, dot.counter, word(&version.value))
        })
        .collect();
    let context: Vec<String> = object
        .context
        .iter()
        .map(|(actor, counter)| format!("{}<={counter}", actor.node.0))
        .collect();
    format!("{{{}}} ({})", versions.join(" "), context.join(" "))
}
