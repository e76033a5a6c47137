//! Writes a history to a file.

use super::items::{json_of_item, json_of_outcome};
use super::{HEADER, name_of};
use crate::history::{Completion, Entry, History};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::{self, Write};
use quorate_kernel::operation::{Cursor, Operation};
use quorate_kernel::time::Time;
use serde::Serialize;
use serde_json::Value;

/// Writes a history as a file; the operations are numbered in the order of their invocations.
///
/// # Errors
/// Only what `out` itself fails with.
pub fn write(history: &History, out: &mut impl Write) -> fmt::Result {
    let mut events: Vec<(u32, Line<'_>)> = Vec::with_capacity(history.entries().len() * 2 + 1);
    for (number, entry) in history.entries().iter().enumerate() {
        events.push((entry.began, Line::Invoke(number, entry)));
        if let Some(time) = entry.completed() {
            events.push((entry.ended, Line::Complete(number, entry, time)));
        }
    }
    if let (Some(time), Some(order)) = (history.healed(), history.healed_order()) {
        events.push((order, Line::Heal(time)));
    }
    events.sort_unstable_by_key(|(order, _)| *order);
    writeln!(out, "{HEADER}")?;
    events.iter().try_for_each(|(_, line)| line.write(out))
}

enum Line<'a> {
    Invoke(usize, &'a Entry),
    Complete(usize, &'a Entry, Time),
    Heal(Time),
}

impl Line<'_> {
    fn write(&self, out: &mut impl Write) -> fmt::Result {
        match self {
            Line::Invoke(number, entry) => write_invoke(*number, entry, out),
            Line::Complete(number, entry, time) => {
                write!(out, r#"{{"event":"complete","id":{number},"at_ns":{},"#, time.0)?;
                write_completion(entry.completion(), out)
            }
            Line::Heal(time) => writeln!(out, r#"{{"event":"heal","at_ns":{}}}"#, time.0),
        }
    }
}

fn write_invoke(number: usize, entry: &Entry, out: &mut impl Write) -> fmt::Result {
    let (client, time, operation) = (entry.client().0, entry.invoked().0, entry.operation());
    write!(out, r#"{{"event":"invoke","id":{number},"client":{client},"at_ns":{time},"#)?;
    write!(out, r#""operation":"{}""#, name_of(operation))?;
    match operation {
        Operation::Get { key, .. } | Operation::Delete { key, .. } => {
            writeln!(out, r#","key":{}}}"#, json(key))
        }
        Operation::Put { key, value, .. } => {
            writeln!(out, r#","key":{},"value":{}}}"#, json(key), json(value))
        }
        Operation::Scan { from, .. } => writeln!(out, r#","from":{}}}"#, place(from)),
        Operation::Transact { items, .. } => {
            let items: Vec<String> = items.iter().map(json_of_item).collect();
            writeln!(out, r#","items":[{}]}}"#, items.join(","))
        }
        Operation::HowEnded { .. } => unreachable!("it completes another operation"),
        Operation::Tree(ask) => {
            let session = ask.session.map_or_else(|| "null".to_string(), |it| it.0.to_string());
            writeln!(out, r#","session":{session},"act":{}}}"#, plain(&ask.act))
        }
    }
}

fn write_completion(completion: &Completion, out: &mut impl Write) -> fmt::Result {
    let null = || "null".to_string();
    match completion {
        Completion::Value(value) => {
            let value = value.as_deref().map_or_else(null, json);
            writeln!(out, r#""outcome":"value","value":{value}}}"#)
        }
        Completion::Written => writeln!(out, r#""outcome":"written"}}"#),
        Completion::Deleted { existed } => {
            writeln!(out, r#""outcome":"deleted","existed":{existed}}}"#)
        }
        Completion::Page { keys, next } => {
            let keys: Vec<String> = keys.iter().map(|key| json(key)).collect();
            let next = next.as_ref().map_or_else(null, place);
            let keys = keys.join(",");
            writeln!(out, r#""outcome":"page","keys":[{keys}],"next":{next}}}"#)
        }
        Completion::Transacted(items) => {
            let items: Vec<String> = items.iter().map(json_of_outcome).collect();
            writeln!(out, r#""outcome":"transacted","items":[{}]}}"#, items.join(","))
        }
        Completion::Unmet { item } => writeln!(out, r#""outcome":"unmet","item":{item}}}"#),
        Completion::Committed => writeln!(out, r#""outcome":"committed"}}"#),
        Completion::Tree(reply) => {
            writeln!(out, r#""outcome":"tree","reply":{}}}"#, plain(reply))
        }
        Completion::Refused => writeln!(out, r#""outcome":"refused"}}"#),
        Completion::Unknown => writeln!(out, r#""outcome":"unknown"}}"#),
    }
}

/// Anything as serde writes it.
fn plain(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("plain data always serializes")
}

/// A cursor as JSON: its token, with its key if it has one.
fn place(cursor: &Cursor) -> String {
    match cursor.is_token() {
        true => cursor.token.to_string(),
        false => format!("[{},{}]", cursor.token, json(&cursor.key)),
    }
}

/// Bytes as JSON: a string if they are UTF-8, else hex digits.
pub(super) fn json(bytes: &[u8]) -> String {
    if let Ok(text) = core::str::from_utf8(bytes) {
        return Value::from(text).to_string();
    }
    let mut text = String::from(r#"{"hex":""#);
    for byte in bytes {
        write!(text, "{byte:02x}").expect("a string takes any text");
    }
    text.push_str("\"}");
    text
}
