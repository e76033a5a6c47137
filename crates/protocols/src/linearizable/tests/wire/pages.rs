//! Stored values have their bytes, and `docs/wire.md` and `docs/disk.md` show what the code does.

use super::bytes::{frame, hex, unhex};
use super::golden::{generation, golden, next_view, ts, view, who};
use crate::linearizable::group::{Owed, Record as GroupRecord, Status};
use crate::linearizable::keys::{Slot, Stored, state_bytes, state_value};
use crate::linearizable::record::Record;
use crate::quorum::CrashVector;
use crate::reconfigure::{Acceptor, Ballot};
use quorate_kernel::ids::{NodeId, Start};
use quorate_kernel::view::Change;
use std::borrow::ToOwned;
use std::string::String;
use std::vec::Vec;
use std::{env, format, fs};

/// Records of groups, one in each status.
fn groups() -> Vec<(&'static str, GroupRecord, &'static str)> {
    let nodes = || Vec::from([NodeId(1), NodeId(300)]);
    let of = |status| GroupRecord {
        view: next_view(),
        status,
        slot: Slot(5),
        acceptor: Acceptor::default(),
        lost: Vec::new(),
        generation: generation(),
        owed: Vec::new(),
        epoch: 3,
    };
    let mut full = of(Status::Ready);
    let next = next_view();
    let change = Change::Shrink { out: NodeId(2) };
    let ballot = Ballot { round: 7, proposer: who(1, 2) };
    full.acceptor.on_accept(&next, next.id, ballot, change);
    full.lost = Vec::from([who(1, 2), who(2, 2)]);
    full.owed = Vec::from([Owed { newcomer: NodeId(2), next: next.clone(), old: view() }]);
    let since = next.id;
    let parts = next.after(&Change::Split { at: 8 }).expect("it fits");
    Vec::from([
        (
            "`group`: ready",
            full,
            "01010407090202ac020005070102010701020202020102020204ac0201020104\
             07090202ac02010307090201ac0203",
        ),
        (
            "`group`: busy",
            of(Status::Busy { sources: nodes(), since, forgot: true }),
            "01010407090202ac02010201ac0201040105000000000004ac020003",
        ),
        ("`group`: forgot", of(Status::Forgot), "01010407090202ac020205000000000004ac020003"),
        (
            "`group`: learner",
            of(Status::Learner { sources: nodes(), is_done: true }),
            "01010407090202ac02030201ac020105000000000004ac020003",
        ),
        (
            "`group`: retired",
            of(Status::Retired {
                was_ready: true,
                forgot: false,
                lacking: None,
                parts: Vec::new(),
            }),
            "01010407090202ac02040100000005000000000004ac020003",
        ),
        (
            "`group`: split",
            of(Status::Retired { was_ready: true, forgot: false, lacking: None, parts }),
            "01010407090202ac02040100000286b98588be93efe63f0507080202ac02a0e8f4\
             ac92e6e993050508090202ac0205000000000004ac020003",
        ),
    ])
}

fn change() -> Change {
    Change::Replace { out: NodeId(1), into: NodeId(2) }
}

fn crashes() -> CrashVector {
    let mut crashes = CrashVector::default();
    crashes.raise(NodeId(2), Start(5));
    crashes
}

/// Every kind of stored value, with its bytes in hexadecimal digits.
fn stored() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let record = |value| Record::new(ts(), value).bytes().to_vec();
    let groups = groups().into_iter();
    let mut list: Vec<_> =
        groups.map(|(what, group, bytes)| (what, state_bytes(&group).to_vec(), bytes)).collect();
    list.extend([
        ("`decided`", state_bytes(&change()).to_vec(), "01000102"),
        ("`slot`", state_bytes(&Slot(5)).to_vec(), "0105"),
        ("`crashes`", state_bytes(&crashes()).to_vec(), "01010205"),
        (
            "record: value `v`",
            record(Some(b"v")),
            "11000000000000012c000000000000000200000004000000000000000976",
        ),
        (
            "record: tombstone",
            record(None),
            "10000000000000012c0000000000000002000000040000000000000009",
        ),
    ]);
    list
}

#[test]
fn every_stored_value_has_its_bytes() {
    let wrong = |(what, value, bytes): (&str, Vec<u8>, &str)| {
        let actual = hex(&value);
        (actual != bytes).then(|| format!("{what}: {actual}\n"))
    };
    let wrong: String = stored().into_iter().filter_map(wrong).collect();
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn what_was_stored_is_read_back() {
    for (what, group, bytes) in groups() {
        assert_eq!(state_value::<GroupRecord>(&unhex(bytes)), group, "{what}");
    }
    for (what, _, bytes) in stored().into_iter().skip(groups().len()) {
        let bytes = unhex(bytes);
        match what {
            "`decided`" => assert_eq!(state_value::<Change>(&bytes), change()),
            "`slot`" => assert_eq!(state_value::<Slot>(&bytes), Slot(5)),
            "`crashes`" => assert_eq!(state_value::<CrashVector>(&bytes), crashes()),
            _ => assert_eq!(Record::stored(bytes.clone().into()).bytes(), &bytes, "{what}"),
        }
    }
}

#[test]
fn the_page_on_the_wire_shows_every_message() {
    let golden = golden();
    let row = |one: &super::golden::Golden| {
        let [head, first, second] = one.bytes;
        let piece = |digits: &str| {
            if digits.is_empty() { "–".to_owned() } else { format!("`{digits}`") }
        };
        let pieces = [head, first, second].map(piece).join(" / ");
        format!("| {} | {pieces} |\n", one.name())
    };
    let rows: String = golden.iter().map(row).collect();
    let list = golden.iter().find(|one| one.name() == "ListA").expect("one of each");
    let text = hex(&frame(&list.message));
    let page = Page::read("wire.md")
        .with("frame", &format!("```text\n{text}\n```\n"))
        .with("linearizable", &format!("| message | bytes |\n|---|---|\n{rows}"));
    for one in &golden {
        let row = format!("\n| {} | {} |", one.tag(), one.name());
        assert!(page.text.contains(&row), "the page has no row for {}", one.name());
    }
    page.finish();
}

#[test]
fn the_page_on_the_disk_shows_every_value() {
    let row = |(what, _, bytes): (&str, Vec<u8>, &str)| format!("| {what} | `{bytes}` |\n");
    let rows: String = stored().into_iter().map(row).collect();
    let page =
        Page::read("disk.md").with("linearizable", &format!("| what | bytes |\n|---|---|\n{rows}"));
    let named = [Slot::KEY, CrashVector::KEY].map(|key| str::from_utf8(key).expect("a name"));
    for key in named.into_iter().chain(["group", "decided", "kept", "garbage"]) {
        let row = format!("\n| `{key}`");
        assert!(page.text.contains(&row), "the page has no row {row}");
    }
    page.finish();
}

/// A page of the manual with parts that are made from the code.
struct Page {
    path: String,
    before: String,
    text: String,
}

impl Page {
    fn read(name: &str) -> Page {
        let path = format!("{}/../../docs/{name}", env!("CARGO_MANIFEST_DIR"));
        let text = fs::read_to_string(&path).expect("the page is there");
        Page { path, before: text.clone(), text }
    }

    /// Puts `part` between the marks of this name.
    fn with(mut self, name: &str, part: &str) -> Page {
        let mark = format!("<!-- bytes: {name} -->\n");
        let begin = self.text.find(&mark).expect("the page has the mark") + mark.len();
        let length = self.text[begin..].find("<!-- end -->").expect("the mark has an end");
        self.text.replace_range(begin..begin + length, part);
        self
    }

    fn finish(self) {
        if env::var_os("UPDATE_SCRIPTS").is_some() {
            fs::write(&self.path, &self.text).expect("a writable page");
        } else {
            assert_eq!(self.text, self.before, "UPDATE_SCRIPTS=1 writes {} anew", self.path);
        }
    }
}
