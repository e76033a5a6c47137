//! Two engines that only this world has, and messages in readable form.

use crate::catalog::{Entry, Message};
use crate::reconfigure;
use quorate_kernel::engine::{Engine, Listing, Placement};
use quorate_kernel::keyspace::CatalogRefusal;
use quorate_kernel::rules::{Alter, Setting, Takes};
use std::format;
use std::string::String;
use std::vec::Vec;

const REPLICAS: Setting = Setting {
    name: "replicas",
    takes: Takes::Word(&["1", "2", "3", "5"]),
    default: "3",
    alter: Alter::Live("groups grow or shrink"),
};
const DURABILITY: Setting = Setting {
    name: "durability",
    takes: Takes::Durability,
    default: "sync",
    alter: Alter::Never("it says what is on disk"),
};
const GROUPS: Engine = Engine {
    name: "groups",
    placement: Placement::Groups,
    numbers: &[],
    settings: &[REPLICAS, DURABILITY],
    can: &[],
    listing: Listing { is_complete: false, text: "" },
    quorum: |_| 1,
    token: |_, _| 0,
    mode: |_| "eventual",
    // The catalog opens nothing.
    open: |_| Err(CatalogRefusal::NotLearnt),
};
/// Engines that only this world has: one of groups, one of partitions.
pub const ENGINES: &[&Engine] = &[
    &GROUPS,
    &Engine {
        name: "places",
        placement: Placement::Partitions,
        settings: &[
            Setting { alter: Alter::Never("clocks would lie"), ..REPLICAS },
            DURABILITY,
            Setting {
                name: "partitions",
                takes: Takes::Whole(1, 1024),
                default: "8",
                alter: Alter::Never("keys would move"),
            },
        ],
        ..GROUPS
    },
];

/// A message in readable form.
pub fn show(message: &Message) -> String {
    match message {
        Message::Decide(message) => show_decide(message),
        Message::Length { version, purpose } => format!("Length {version} {purpose:?}"),
        Message::Entries { follows, entries } => {
            let entries: Vec<String> = entries.iter().map(show_entry).collect();
            format!("Entries after {follows}: {}", entries.join(", "))
        }
        Message::Snapshot { catalog } => format!("Snapshot {}", catalog.version()),
    }
}

fn show_decide(message: &reconfigure::Message<Entry>) -> String {
    use reconfigure::Message as M;
    match message {
        M::P1A { view, ballot } => {
            format!("P1A after {} round {}", view.version, ballot.round)
        }
        M::P1B(reply) => {
            let found = reply.accepted.as_ref().map(|(_, entry)| show_entry(entry));
            format!("P1B after {} ok {} found {found:?}", reply.view.version, reply.ok)
        }
        M::P2A { view, change, .. } => {
            format!("P2A after {}: {}", view.version, show_entry(change))
        }
        M::P2B(reply) => {
            format!("P2B after {} ok {}", reply.view.version, reply.ok)
        }
        M::P3A { view, change } => {
            format!("P3A after {}: {}", view.version, show_entry(change))
        }
        M::P3B { view, .. } => format!("P3B after {}", view.version),
    }
}

fn show_entry(entry: &Entry) -> String {
    use crate::catalog::Decree as D;
    match &entry.decree {
        D::Create { name, engine, .. } => format!("create {name}={engine}"),
        D::Alter { lane, settings } => format!("alter {} {settings:?}", lane.0),
        D::Drop { lane } => format!("drop {}", lane.0),
        D::Replace { lane, partition, to, .. } => {
            format!("replace {} partition {partition} by {}", lane.0, to.0)
        }
        D::Settle { lane, partition, .. } => format!("settle {} partition {partition}", lane.0),
        D::HandOver { lane, partition, .. } => {
            format!("hand over {} partition {partition}", lane.0)
        }
        D::Gone { lane, node } => format!("gone {} node {}", lane.0, node.0),
        D::Members(change) => format!("{change:?}"),
    }
}
