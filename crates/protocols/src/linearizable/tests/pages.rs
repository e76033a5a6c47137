//! Stored values have their bytes, and `docs/wire.md` and `docs/disk.md` show what the code does.

use super::super::keys::{Lost, Stored};
use super::super::record::{Record, Ts};
use super::super::state::Status;
use super::wire::{frame, golden, hex, unhex, view_id, who};
use crate::quorum::CrashVector;
use crate::testing::disk::Disk;
use quorate_kernel::ids::{NodeId, Start};
use quorate_kernel::storage::Class;
use quorate_kernel::view::{Range, View};
use std::borrow::ToOwned;
use std::string::String;
use std::vec::Vec;
use std::{env, format, fs};

/// Every kind of stored value, with its bytes in hexadecimal digits.
fn stored() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let view = View::new(view_id(), Range::ALL, Vec::from([NodeId(1), NodeId(2), NodeId(300)]));
    let busy = Status::Busy { sources: Vec::from([NodeId(1), NodeId(2)]), forgot: true };
    let mut crashes = CrashVector::default();
    crashes.raise(NodeId(2), Start(5));
    let lost = Lost(Vec::from([who(1, 2), who(2, 2)]));
    let ts = Ts { n: 300, writer: who(2, 4), sequence: 9 };
    let record = |value| Record::new(ts, value).bytes().to_vec();
    Vec::from([
        (
            "`view`",
            view.to_bytes().to_vec(),
            "010103ffffffffffffffffff01ffffffffffffffffff01030102ac02",
        ),
        ("`status`: ready", Status::Ready.to_bytes().to_vec(), "0100"),
        ("`status`: busy", busy.to_bytes().to_vec(), "010102010201"),
        ("`status`: forgot", Status::Forgot.to_bytes().to_vec(), "0102"),
        ("`crashes`", crashes.to_bytes().to_vec(), "01010205"),
        ("`lost`", lost.to_bytes().to_vec(), "010201020202"),
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
    ])
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
    fn read<T: Stored>(bytes: &str) -> T {
        let mut disk = Disk::new(false);
        disk.write(Class::State, &T::key(), Some(&unhex(bytes).into()));
        T::load(&disk).expect("the value is there")
    }
    let values = stored();
    let again = [
        read::<View>(values[0].2).to_bytes(),
        read::<Status>(values[1].2).to_bytes(),
        read::<Status>(values[2].2).to_bytes(),
        read::<Status>(values[3].2).to_bytes(),
        read::<CrashVector>(values[4].2).to_bytes(),
        read::<Lost>(values[5].2).to_bytes(),
        Record::stored(unhex(values[6].2).into()).bytes().clone(),
        Record::stored(unhex(values[7].2).into()).bytes().clone(),
    ];
    assert!(again.iter().zip(&values).all(|(again, (_, value, _))| again == value));
    assert_eq!(again.len(), values.len());
}

#[test]
fn the_page_on_the_wire_shows_every_message() {
    let golden = golden();
    let row = |one: &super::wire::Golden| {
        let [head, first, second] = one.bytes;
        let piece = |digits: &str| {
            if digits.is_empty() { "–".to_owned() } else { format!("`{digits}`") }
        };
        let pieces = [head, first, second].map(piece).join(" / ");
        format!("| {} | {pieces} |\n", one.name())
    };
    let rows: String = golden.iter().map(row).collect();
    let refill = golden.iter().find(|one| one.name() == "RefillA").expect("one of each");
    let text = hex(&frame(&refill.message));
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
    for key in [View::KEY, Status::KEY, CrashVector::KEY, Lost::KEY] {
        let row = format!("\n| `{}` |", str::from_utf8(key).expect("a name"));
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
