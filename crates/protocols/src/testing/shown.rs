//! What happened, in words, and what a process tells of its state.

use super::world::World;
use super::{Scripted, word};
use quorate_kernel::effects::Note;
use quorate_kernel::engine::Capability;
use quorate_kernel::ids::Incarnation;
use quorate_kernel::operation::{Cursor, Operation, Outcome, Which};
use quorate_kernel::process::{Inspect, Process};
use quorate_kernel::values::Values;
use quorate_kernel::write::Replaces;
use std::borrow::ToOwned;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

/// One row of a table, by the names of its cells.
pub type Row = BTreeMap<&'static str, String>;

impl<P: Scripted> World<P> {
    /// A field of a node's inspected state.
    pub fn field(&mut self, id: u64, name: &str) -> String {
        field(self.node(id).process.as_ref().expect("the node is up"), name)
    }

    /// The rows of a table of a node's inspected state, each as its cells.
    pub fn rows(&mut self, id: u64, table: &str) -> Vec<Row> {
        rows(self.node(id).process.as_ref().expect("the node is up"), table)
    }
}

/// A field of a process's state.
pub fn field(process: &impl Process, name: &str) -> String {
    struct Find<'a>(&'a str, Option<String>);
    impl Inspect for Find<'_> {
        fn field(&mut self, name: &'static str, value: &dyn Display) {
            if name == self.0 {
                self.1 = Some(value.to_string());
            }
        }
    }
    let mut find = Find(name, None);
    process.inspect(&mut find);
    find.1.unwrap_or_else(|| panic!("no field {name}"))
}

/// The rows of a table of a process's state.
pub fn rows(process: &impl Process, table: &str) -> Vec<Row> {
    struct Collect<'a>(&'a str, Vec<Row>);
    impl Inspect for Collect<'_> {
        fn field(&mut self, _name: &'static str, _value: &dyn Display) {}

        fn row(&mut self, table: &'static str, cells: &[(&'static str, &dyn Display)]) {
            if table == self.0 {
                self.1.push(cells.iter().map(|(name, value)| (*name, value.to_string())).collect());
            }
        }
    }
    let mut collect = Collect(table, Vec::new());
    process.inspect(&mut collect);
    process.parts().iter().for_each(|part| part.show(&mut collect));
    collect.1
}

/// `node.start` without leading zeros.
pub fn incarnation(who: Incarnation) -> String {
    format!("{}.{}", who.node.0, who.start.0)
}

pub(super) fn show_note(note: &Note) -> String {
    format!("announces {note:?}")
}

/// A cursor: its token, and its key if it has one.
pub fn show_cursor(cursor: &Cursor) -> String {
    match cursor.is_token() {
        true => format!("{:x}", cursor.token),
        false => format!("{:x} {}", cursor.token, word(&cursor.key)),
    }
}

pub(super) fn show_operation(operation: &Operation) -> String {
    match operation {
        Operation::Get { key, which: Which::One, .. } => format!("get {}", word(key)),
        Operation::Get { key, which: Which::All, .. } => format!("read {}", word(key)),
        Operation::Get { key, which: Which::After(_), .. } => format!("get {} after", word(key)),
        Operation::Get { key, which: Which::Version(version), .. } => {
            format!("get {} of {version}", word(key))
        }
        Operation::Put { key, value, replaces: Replaces::Whatever, .. } => {
            format!("put {} {}", word(key), word(value))
        }
        Operation::Put { key, value, replaces: Replaces::Seen(context), .. } => {
            let basis = if context.is_empty() { "blind" } else { "with context" };
            format!("write {} {} {basis}", word(key), word(value))
        }
        Operation::Put { key, value, replaces: Replaces::After(_), .. } => {
            format!("put {} {} after", word(key), word(value))
        }
        Operation::Put { key, value, replaces: Replaces::Version(version), .. } => {
            format!("put {} {} as {version}", word(key), word(value))
        }
        Operation::Delete { key, replaces: Replaces::Seen(_) } => format!("remove {}", word(key)),
        Operation::Delete { key, .. } => format!("delete {}", word(key)),
        Operation::Scan { from, limit } => format!("scan {} {limit}", show_cursor(from)),
        Operation::Transact { items, .. } => format!("transact {items:?}"),
        Operation::HowEnded { .. } => "how ended".to_owned(),
        Operation::Tree(ask) => format!("{:?} {:?}", ask.session, ask.act),
    }
}

pub(super) fn show_outcome(operation: &Operation, outcome: &Outcome) -> String {
    let is_plain = operation.needs().all(|needs| needs != Capability::Siblings);
    match outcome {
        Outcome::Values { values, .. } if !is_plain => {
            let values: Vec<String> = values.iter().map(|value| word(value)).collect();
            format!("siblings [{}]", values.join(" "))
        }
        Outcome::Written { .. } | Outcome::Deleted { .. } if !is_plain => "stored".to_owned(),
        Outcome::Values { values: Values::None, .. } => "nothing".to_owned(),
        Outcome::Values { values, .. } => {
            let values: Vec<String> = values.iter().map(|value| word(value)).collect();
            format!("value {}", values.join(" "))
        }
        Outcome::Written { .. } => "written".to_owned(),
        Outcome::Deleted { existed, .. } => format!("deleted {}", u8::from(*existed)),
        Outcome::Page { keys, next } => {
            let keys: Vec<String> = keys.iter().map(|key| word(key)).collect();
            let next = next.as_ref().map_or("end".to_owned(), show_cursor);
            format!("page {}, next {next}", keys.join(" "))
        }
        Outcome::Refused(refusal) => format!("refused: {refusal}"),
        Outcome::Explained(explanation) => {
            let steps: Vec<String> = explanation
                .steps
                .iter()
                .map(|step| match step.member {
                    Some(member) => format!("{} {}", member.0, step.what),
                    None => step.what.clone(),
                })
                .collect();
            let answered: Vec<String> =
                explanation.answered.iter().map(|member| member.0.to_string()).collect();
            format!("explained by {}: {}", answered.join(" "), steps.join("; "))
        }
        Outcome::Examined(examination) => {
            let parts = examination.parts.iter().map(|part| {
                let holders = part.holders.iter();
                let holders: Vec<String> =
                    holders.map(|it| format!("{} {:?}", it.node.0, it.holds)).collect();
                let awaited = part.awaited.iter();
                let awaited: Vec<String> =
                    awaited.map(|it| format!("; {} {}", it.node.0, it.what.text())).collect();
                format!("{} of {}{}", part.quorum, holders.join(", "), awaited.concat())
            });
            format!("held by {}", parts.collect::<Vec<String>>().join("; "))
        }
        Outcome::Transacted(items) => format!("transacted {items:?}"),
        Outcome::Ended(ended) => format!("{ended:?}"),
        Outcome::Tree(reply) => format!("{:?} at {}", reply.told, reply.zxid.0),
        Outcome::Noted => "noted".to_owned(),
        Outcome::Closed { silent } => format!("closed, {} silent", silent.len()),
        Outcome::More(events) => {
            let words: Vec<String> = events.iter().map(|event| event.word()).collect();
            format!("more: {}", words.join(", "))
        }
    }
}

/// A list of starts in brackets that `title` opens; nothing if there are none.
pub fn show_list(title: &str, list: &[Incarnation]) -> String {
    let list: Vec<String> = list.iter().copied().map(incarnation).collect();
    if list.is_empty() { String::new() } else { format!("{title}{})", list.join(" ")) }
}
