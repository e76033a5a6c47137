//! The engine's messages and writes in readable form. A timestamp reads `n@node.start#operation`.

use super::super::group::{Generation, Record as GroupRecord, Standing, Status};
use super::super::keys::{Slot, client_key, state_value};
use super::super::message::{Beat, Message, Stamp, Want};
use super::super::record::{Record, Ts};
use super::super::wire::page;
use super::super::{Linearizable, Mode, Pace, Settings};
use crate::order::Order;
use crate::quorum::CrashVector;
use crate::reconfigure::{self, Ballot};
use crate::testing::shown::{show_cursor, show_list};
use crate::testing::world::incarnation;
use crate::testing::{Scripted, word};
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::operation::Cursor;
use quorate_kernel::storage::{Class, Durability};
use quorate_kernel::time::Span;
use quorate_kernel::view::{Change, View, ViewId};
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

impl Scripted for Linearizable {
    fn born(first_view: &View, options: &[&str]) -> Linearizable {
        let mut settings = Settings {
            first_views: Vec::from([first_view.clone()]),
            replicas: first_view.members().len(),
            order: Order::Hash,
            mode: Mode::Atomic,
            durability: Durability::Memory,
            value_bytes_max: 1000,
            digest_reads: false,
            ask_majority_first: false,
            transfer_bytes_per_second: 0,
            pace: Pace::default(),
        };
        for option in options {
            match *option {
                "digests" => settings.digest_reads = true,
                "ordered" => settings.order = Order::Key,
                "periodic" => settings.durability = Durability::Periodic { every_ms: 50 },
                "eventual" => settings.mode = Mode::Eventual,
                "brisk" => settings.pace = brisk(),
                "hasty" => settings.pace.purge = Span::millis(60),
                "comparing" => settings.pace.compare = Span::millis(500),
                "majority" => settings.ask_majority_first = true,
                "unrouted" => settings.first_views.clear(),
                other => panic!("no option {other}"),
            }
        }
        Linearizable::new(settings)
    }

    fn decided(view: ViewId, change: Change) -> Message {
        Message::Reconfigure(Vec::from([reconfigure::Message::P3A { view, change }]))
    }

    fn name(message: &Message) -> &'static str {
        match message {
            Message::ReadA { .. } => "ReadA",
            Message::ReadB { .. } => "ReadB",
            Message::WriteA { .. } => "WriteA",
            Message::WriteB { .. } => "WriteB",
            Message::PageA { .. } => "PageA",
            Message::PageB { .. } => "PageB",
            Message::ListA { .. } => "ListA",
            Message::ListB { .. } => "ListB",
            Message::Lacks { .. } => "Lacks",
            Message::FetchA { .. } => "FetchA",
            Message::FetchB { .. } => "FetchB",
            Message::LocateA { .. } => "LocateA",
            Message::LocateB { .. } => "LocateB",
            Message::Reconfigure(_) => "Reconfigure",
            Message::Invite { .. } => "Invite",
            Message::Learn { .. } => "Learn",
            Message::Split { .. } => "Split",
            Message::ExamineA { .. } => "ExamineA",
            Message::ExamineB { .. } => "ExamineB",
            Message::Beats(_) => "Beats",
            Message::DecisionsA { .. } => "DecisionsA",
            Message::DecisionsB { .. } => "DecisionsB",
            Message::FloorA { .. } => "FloorA",
            Message::FloorB { .. } => "FloorB",
            Message::TombsA { .. } => "TombsA",
            Message::TombsB { .. } => "TombsB",
            Message::DropA { .. } => "DropA",
            Message::TombstonesA { .. } => "TombstonesA",
            Message::TombstonesB { .. } => "TombstonesB",
            Message::DropB { .. } => "DropB",
            Message::CompareA { .. } => "CompareA",
            Message::CompareB { .. } => "CompareB",
            Message::RecordsA { .. } => "RecordsA",
            Message::RecordsB { .. } => "RecordsB",
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
            Message::WriteA { op, view, basis, key, record } => {
                let above = match (basis.generation, basis.is_imposed) {
                    (0, _) => String::new(),
                    (number, true) => format!(" read in generation {number}"),
                    (number, false) => format!(" above generation {number}"),
                };
                let (view, key, record) = (version(*view), data_key(key), show_record(record));
                format!("op {op} {view} {key} = {record}{above}{}", show_epoch(basis.epoch))
            }
            Message::WriteB { op, view, ok, stamp } => {
                let verdict = if *ok { "ok" } else { "refused" };
                format!("op {op} {} {verdict}, {}", version(*view), show_stamp(stamp))
            }
            Message::PageA { op, view, from, limit } => {
                format!("op {op} {} from {} limit {limit}", version(*view), show_cursor(from))
            }
            Message::PageB { op, stamp, next, page } => {
                format!("op {op} {}: {}", show_stamp(stamp), show_page(page, next.as_ref()))
            }
            other => show_rare(other),
        }
    }

    fn show_write(class: Class, key: &Bytes, value: Option<&Bytes>) -> String {
        if class == Class::Data {
            let (slot, key) = key.split_at(4);
            let (slot, key) = (slot[3], data_key(&Bytes::copy_from_slice(key)));
            let value = value.map_or("nothing".to_string(), show_record);
            let slot = if slot == 1 { String::new() } else { format!(" in slot {slot}") };
            return format!("{key} = {value}{slot}");
        }
        let states = ["group", "decided", "crashes", "slot", "garbage", "left", "gathered", "kept"];
        let name = states.into_iter().find(|name| key.starts_with(name.as_bytes()));
        let name = name.unwrap_or_else(|| panic!("no state {key:?}"));
        let Some(value) = value else { return format!("state {name} is gone") };
        let shown = match name {
            "group" => show_group(&state_value(value)),
            "decided" => show_change(state_value(value)),
            "crashes" => show_crashes(&state_value(value)),
            "slot" => state_value::<Slot>(value).0.to_string(),
            "garbage" => String::new(),
            "left" => format!("in v{}", state_value::<u64>(value)),
            "gathered" => format!("by all of v{}", state_value::<u64>(value)),
            _ => format!("until v{}", state_value::<u64>(value)),
        };
        format!("state {name} {}", shown.trim())
    }
}

/// Everything ten times as often, so that little time must pass in a test. Members compare what
/// they hold only if a test says so.
fn brisk() -> Pace {
    Pace {
        maintain: Span::millis(20),
        beat: Span::millis(100),
        settle: Span::millis(200),
        purge: Span::millis(500),
        compare: Span(0),
        ..Pace::default()
    }
}

fn show_rare(message: &Message) -> String {
    match message {
        Message::ListA { round, since, epoch, forgot, from } => {
            let (reason, epoch) = (if *forgot { "forgot" } else { "new" }, show_epoch(*epoch));
            let (since, from) = (version(*since), show_cursor(from));
            format!("round {round} since {since} {reason}{epoch} from {from}")
        }
        Message::ListB { round, stamp, is_source, bounds, lost, page, .. } => {
            let (stamp, page) = (show_stamp(stamp), show_page(page, bounds.next.as_ref()));
            let (lost, source) =
                (show_list(" lost(", lost), if *is_source { "" } else { " no source" });
            let from = show_cursor(&bounds.from);
            format!("round {round} {stamp}{source}{lost}: from {from} {page}")
        }
        Message::Lacks { round, awaits, .. } => {
            format!("round {round} awaits {}", members(awaits))
        }
        Message::FetchA { page, .. } | Message::FetchB { page, .. } => show_page(page, None),
        Message::Reconfigure(list) => {
            list.iter().map(show_reconfiguration).collect::<Vec<_>>().join(", ")
        }
        Message::Invite { next, old, .. } => {
            format!("to {} after {}", show_view(next), show_view(old))
        }
        Message::Learn { view, .. } | Message::LocateB { view } | Message::Split { view, .. } => {
            show_view(view)
        }
        Message::ExamineA { op, view, leaver, .. } => {
            let leaver = leaver.map(|node| format!(" for {}", node.0)).unwrap_or_default();
            format!("op {op} {}{leaver}", version(*view))
        }
        Message::ExamineB { op, stamp, said } => {
            let words = [(said.brings, "brings"), (said.keeps, "keeps"), (said.stays, "stays")];
            let words = words.into_iter().filter(|(is_so, _)| *is_so).map(|(_, word)| word);
            let words = words.collect::<Vec<_>>().join(" ");
            format!("op {op} {}: {:?} {words}", show_stamp(stamp), said.standing)
        }
        Message::LocateA { token } => format!("{token:x}"),
        Message::DecisionsA { view } => format!("after {}", version(*view)),
        Message::DecisionsB { view, changes } => {
            let changes: Vec<String> = changes.iter().map(|change| show_change(*change)).collect();
            format!("after {}: {}", version(*view), changes.join(", "))
        }
        Message::Beats(list) => {
            let beat = |beat: &Beat| format!("{} {:?}", version(beat.view), beat.standing);
            list.iter().map(beat).collect::<Vec<_>>().join(", ")
        }
        other => show_background(other),
    }
}

/// What members say when they have nothing else to do.
fn show_background(message: &Message) -> String {
    match message {
        Message::FloorA { view, generation }
        | Message::FloorB { view, generation }
        | Message::DropB { view, generation, .. } => {
            format!("{} {}", version(*view), show_generation(*generation))
        }
        Message::TombstonesA { view, generation, from } => {
            format!("{} generation {generation} from {}", version(*view), show_cursor(from))
        }
        Message::TombstonesB { generation, from, next, page, .. } => {
            let page = show_page(page, next.as_ref());
            format!("generation {generation} from {} {page}", show_cursor(from))
        }
        Message::DropA { generation, page, .. } => {
            format!("{}: {}", show_generation(*generation), show_page(page, None))
        }
        Message::TombsA { view, .. }
        | Message::TombsB { view, .. }
        | Message::CompareA { view, .. } => version(*view),
        Message::CompareB { view, page, upto, .. } => {
            let rest = if upto.is_empty() { "" } else { ", to be continued" };
            format!("{} {}{rest}", version(*view), show_page(page, None))
        }
        Message::RecordsA { view, page, .. } => {
            format!("{} {}", version(*view), show_page(page, None))
        }
        Message::RecordsB { view, generation, epoch, page, .. } => {
            let (view, epoch) = (version(*view), show_epoch(*epoch));
            format!("{view} generation {generation}{epoch}: {}", show_page(page, None))
        }
        other => unreachable!("{other:?} is shown above"),
    }
}

fn show_reconfiguration(message: &reconfigure::Message) -> String {
    use reconfigure::Message as M;
    let follows = version(message.view());
    let ballot = |ballot: Ballot| format!("{}@{}", ballot.round, incarnation(ballot.proposer));
    let verdict = |ok| if ok { "ok" } else { "refused" };
    match *message {
        M::P1A { ballot: asked, .. } => format!("P1A after {follows} ballot {}", ballot(asked)),
        M::P1B(reply) => {
            let shown = |(of, change)| format!(" accepted {} {}", ballot(of), show_change(change));
            let accepted = reply.accepted.map(shown).unwrap_or_default();
            format!(
                "P1B after {follows} ballot {} {}{accepted}",
                ballot(reply.ballot),
                verdict(reply.ok)
            )
        }
        M::P2A { ballot: asked, change, .. } => {
            format!("P2A after {follows} ballot {} {}", ballot(asked), show_change(change))
        }
        M::P2B(reply) => {
            format!("P2B after {follows} ballot {} {}", ballot(reply.ballot), verdict(reply.ok))
        }
        M::P3A { change, .. } => format!("P3A after {follows} {}", show_change(change)),
        M::P3B { installed, .. } => format!("P3B after {follows} installed {}", version(installed)),
    }
}

fn show_change(change: Change) -> String {
    match change {
        Change::Replace { out, into } => format!("replace {} by {}", out.0, into.0),
        Change::Grow { into } => format!("grow by {}", into.0),
        Change::Shrink { out } => format!("shrink by {}", out.0),
        Change::Split { at } => format!("split at {at:x}"),
    }
}

fn show_generation(generation: Generation) -> String {
    format!("generation {} floor {}", generation.number, generation.floor)
}

fn show_group(record: &GroupRecord) -> String {
    let status = match &record.status {
        Status::Ready => "ready".to_string(),
        Status::Gathering => "gathering".to_string(),
        Status::Forgot => "forgot".to_string(),
        Status::Busy { sources, forgot, .. } => {
            format!("busy({}{})", members(sources), if *forgot { " forgot" } else { "" })
        }
        Status::Learner { sources, is_done } => {
            format!("learner({}{})", members(sources), if *is_done { " done" } else { "" })
        }
        Status::Retired { parts, .. } if parts.is_empty() => "retired".to_string(),
        Status::Retired { .. } => "split".to_string(),
    };
    let lost = show_list(" lost(", &record.lost);
    let owed = record.owed.iter().map(|owed| format!(" owes {}", owed.newcomer.0));
    let owed: String = owed.collect();
    let generation = match record.generation {
        Generation { number: 0, .. } => String::new(),
        generation => format!(" {}", show_generation(generation)),
    };
    format!("{} {status}{lost}{owed}{generation}", show_view(&record.view))
}

fn data_key(key: &Bytes) -> String {
    word(&client_key(key))
}

/// The version, and of another group than the first the beginning of its name.
fn version(view: ViewId) -> String {
    match view.group.0 {
        0 | 1 => format!("v{}", view.version),
        name => format!("v{}/{:04x}", view.version, name >> 48),
    }
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
        record.value().map_or("tombstone".to_string(), |value| format!("{:?}", word(&value)));
    format!("{} {value}", show_ts(record.head().ts))
}

fn show_answer(ts: Ts, live: bool, record: &Bytes) -> String {
    match (record.is_empty(), ts == Ts::ZERO) {
        (false, _) => show_record(record),
        (true, true) => "nothing".to_string(),
        (true, false) => format!("{} {}", show_ts(ts), if live { "live" } else { "tombstone" }),
    }
}

fn show_stamp(stamp: &Stamp) -> String {
    let mut shown = version(stamp.view);
    if stamp.standing != Standing::Ready {
        shown += &format!(" {}", format!("{:?}", stamp.standing).to_lowercase());
    }
    if stamp.known.generation != Generation::default() {
        shown += &format!(" {}", show_generation(stamp.known.generation));
    }
    shown += &show_epoch(stamp.known.epoch);
    shown += &show_crashes(&stamp.crashes);
    if let Some(hint) = &stamp.hint {
        shown += &format!(" hint {}", show_view(hint));
    }
    shown
}

fn show_epoch(epoch: u64) -> String {
    if epoch == 0 { String::new() } else { format!(" epoch {epoch}") }
}

fn show_crashes(crashes: &CrashVector) -> String {
    let of = |node| Incarnation { node: NodeId(node), start: crashes.of(NodeId(node)) };
    let forgetful = (1..=9).map(of).filter(|entry| entry.start.0 > 0);
    let entries: Vec<String> = forgetful.map(incarnation).collect();
    if entries.is_empty() { String::new() } else { format!(" forgetful({})", entries.join(" ")) }
}

fn show_page(page: &Bytes, next: Option<&Cursor>) -> String {
    let entry = |(key, record): (Bytes, Record)| {
        format!("{} = {}, ", data_key(&key), show_record(record.bytes()))
    };
    let entries: String = page::entries(page.clone()).map(entry).collect();
    let next = next.map_or("end".to_string(), |next| format!("next {}", show_cursor(next)));
    format!("{entries}{next}")
}
