//! The engine's messages and writes in readable form. A timestamp reads `n@node.start#operation`.

use super::super::keys::{Lost, Stored, client_key};
use super::super::message::{Message, Stamp, Want};
use super::super::page;
use super::super::record::{Record, Ts};
use super::super::state::Status;
use super::super::{Linearizable, Settings};
use crate::quorum::CrashVector;
use crate::testing::world::incarnation;
use crate::testing::{Scripted, word};
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::storage::Class;
use quorate_kernel::view::{View, ViewId};
use std::borrow::ToOwned;
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

impl Scripted for Linearizable {
    fn born(first_view: &View, options: &[&str]) -> Linearizable {
        let mut settings = Settings {
            first_view: first_view.clone(),
            value_bytes_max: 1000,
            digest_reads: false,
            ask_majority_first: false,
        };
        for option in options {
            match *option {
                "digests" => settings.digest_reads = true,
                "majority" => settings.ask_majority_first = true,
                other => panic!("no option {other}"),
            }
        }
        Linearizable::new(settings)
    }

    fn name(message: &Message) -> &'static str {
        match message {
            Message::ReadA { .. } => "ReadA",
            Message::ReadB { .. } => "ReadB",
            Message::WriteA { .. } => "WriteA",
            Message::WriteB { .. } => "WriteB",
            Message::PageA { .. } => "PageA",
            Message::PageB { .. } => "PageB",
            Message::RefillA { .. } => "RefillA",
            Message::RefillB { .. } => "RefillB",
        }
    }

    fn show(message: &Message) -> String {
        match message {
            Message::ReadA { op, view, want, key } => {
                let want = match want {
                    Want::Value => "value",
                    Want::Digest => "digest",
                    Want::Counter => "counter",
                };
                format!("op {op} {} {want} of {}", version(*view), data_key(key))
            }
            Message::ReadB { op, stamp, ts, live, record } => {
                format!("op {op} {}: {}", show_stamp(stamp), show_answer(*ts, *live, record))
            }
            Message::WriteA { op, view, key, record } => {
                format!("op {op} {} {} = {}", version(*view), data_key(key), show_record(record))
            }
            Message::WriteB { op, view, ok, stamp } => {
                let verdict = if *ok { "ok" } else { "refused" };
                format!("op {op} {} {verdict}, {}", version(*view), show_stamp(stamp))
            }
            Message::PageA { op, view, from, limit } => {
                format!("op {op} {} from {from:x} limit {limit}", version(*view))
            }
            Message::PageB { op, stamp, next, page } => {
                format!("op {op} {}: {}", show_stamp(stamp), show_page(page, *next))
            }
            Message::RefillA { round, view, forgot, from } => {
                let reason = if *forgot { "forgot" } else { "new" };
                format!("round {round} {} {reason} from {from:x}", version(*view))
            }
            Message::RefillB { round, stamp, from, next, lost, page } => {
                let (stamp, page) = (show_stamp(stamp), show_page(page, *next));
                let lost = show_lost(lost);
                format!("round {round} {stamp}{lost}: from {from:x} {page}")
            }
        }
    }

    fn show_write(class: Class, key: &Bytes, value: Option<&Bytes>) -> String {
        let value = value.expect("the engine deletes no key of the store");
        if class == Class::Data {
            return format!("{} = {}", data_key(key), show_record(value));
        }
        let read = &value[1..];
        let shown = match &key[..] {
            b"view" => show_view(&postcard::from_bytes(read).expect("a view")),
            b"status" => show_status(&postcard::from_bytes(read).expect("a status")),
            b"crashes" => show_crashes(&postcard::from_bytes(read).expect("a crash vector")),
            b"lost" => show_lost(&postcard::from_bytes::<Lost>(read).expect("a list").0),
            other => panic!("no state {other:?}"),
        };
        format!("state {} {}", word(key), shown.trim())
    }
}

fn data_key(key: &Bytes) -> String {
    word(&client_key(key))
}

fn version(view: ViewId) -> String {
    format!("v{}", view.version)
}

fn members(nodes: &[NodeId]) -> String {
    nodes.iter().map(|node| node.0.to_string()).collect::<Vec<_>>().join(" ")
}

fn show_view(view: &View) -> String {
    format!("{}({})", version(view.id), members(view.members()))
}

fn show_ts(ts: Ts) -> String {
    format!("{}@{}#{}", ts.n, incarnation(ts.writer), ts.sequence)
}

fn show_record(record: &Bytes) -> String {
    let record = Record::from_bytes(record.clone()).expect("a record");
    let value =
        record.value().map_or("tombstone".to_owned(), |value| format!("{:?}", word(&value)));
    format!("{} {value}", show_ts(record.head().ts))
}

fn show_answer(ts: Ts, live: bool, record: &Bytes) -> String {
    match (record.is_empty(), ts == Ts::ZERO) {
        (false, _) => show_record(record),
        (true, true) => "nothing".to_owned(),
        (true, false) => format!("{} {}", show_ts(ts), if live { "live" } else { "tombstone" }),
    }
}

fn show_status(status: &Status) -> String {
    match status {
        Status::Ready => "ready".to_owned(),
        Status::Busy { sources, forgot: false } => format!("busy({})", members(sources)),
        Status::Busy { sources, forgot: true } => format!("busy({}) and forgot", members(sources)),
        Status::Forgot => "forgot".to_owned(),
    }
}

fn show_stamp(stamp: &Stamp) -> String {
    let mut shown = version(stamp.view);
    if stamp.status != Status::Ready {
        shown += &format!(" {}", show_status(&stamp.status));
    }
    shown += &show_crashes(&stamp.crashes);
    if let Some(hint) = &stamp.hint {
        shown += &format!(" hint {}", show_view(hint));
    }
    shown
}

fn show_crashes(crashes: &CrashVector) -> String {
    let entries: Vec<String> = (1..=9)
        .map(|node| Incarnation { node: NodeId(node), start: crashes.of(NodeId(node)) })
        .filter(|entry| entry.start.0 > 0)
        .map(incarnation)
        .collect();
    if entries.is_empty() { String::new() } else { format!(" forgetful({})", entries.join(" ")) }
}

fn show_lost(lost: &[Incarnation]) -> String {
    let lost: Vec<String> = lost.iter().copied().map(incarnation).collect();
    if lost.is_empty() { String::new() } else { format!(" lost({})", lost.join(" ")) }
}

fn show_page(page: &Bytes, next: Option<u64>) -> String {
    let entry = |(key, record): (Bytes, Record)| {
        format!("{} = {}, ", data_key(&key), show_record(record.bytes()))
    };
    let entries: String = page::entries(page.clone()).map(entry).collect();
    format!("{entries}{}", next.map_or("end".to_owned(), |next| format!("next {next:x}")))
}

#[test]
fn state_is_shown_by_the_names_it_is_stored_under() {
    let names = [View::KEY, Status::KEY, CrashVector::KEY, Lost::KEY];
    assert_eq!(names, [&b"view"[..], b"status", b"crashes", b"lost"]);
}
