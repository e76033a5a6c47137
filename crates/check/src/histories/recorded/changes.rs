//! Changes of a value where it stands, and what each was told, as objects of a line.

use super::expiry::{expiry_of, json_of_expiry};
use super::read::Fields;
use super::write::json;
use alloc::format;
use alloc::string::String;
use bytes::Bytes;
use quorate_kernel::change::{Change, Changed, Unchanged};
use quorate_kernel::transaction::{Item, ItemOutcome};

/// The names of the items that are changes, for errors.
pub(super) const NAMES: &str = "\"put_if\", \"add\", \"add_float\", \"append\" or \"set_range\"";

/// Why a change is not done, by the word of it.
const WHYS: [(&str, Unchanged); 6] = [
    ("condition", Unchanged::Condition),
    ("no_integer", Unchanged::NotAnInteger),
    ("no_number", Unchanged::NotAFloat),
    ("overflow", Unchanged::Overflow),
    ("infinite", Unchanged::NotFinite),
    ("too_long", Unchanged::TooLong),
];

/// The name of the item that a change is, and its fields but the key.
pub(super) fn json_of_change(change: &Change) -> (&'static str, String) {
    let value = |value: &Bytes| format!(r#","value":{}"#, json(value));
    match change {
        Change::PutIf { exists, value: put, expiry } => {
            let ends = json_of_expiry(*expiry);
            ("put_if", format!(r#","exists":{exists}{}{ends}"#, value(put)))
        }
        Change::Add(number) => ("add", format!(r#","number":{number}"#)),
        Change::AddFloat(number) => ("add_float", value(number)),
        Change::Append(bytes) => ("append", value(bytes)),
        Change::SetRange { offset, bytes } => {
            ("set_range", format!(r#","offset":{offset}{}"#, value(bytes)))
        }
    }
}

/// What a change that was done was told, as JSON.
pub(super) fn json_of_changed(changed: &Changed) -> String {
    match changed {
        Changed::Put => String::from(r#"{"outcome":"put"}"#),
        Changed::Integer(number) => format!(r#"{{"outcome":"integer","number":{number}}}"#),
        Changed::Float(number) => format!(r#"{{"outcome":"float","value":{}}}"#, json(number)),
        Changed::Length(bytes) => format!(r#"{{"outcome":"length","bytes":{bytes}}}"#),
    }
}

/// What a change that was not done was told, as JSON.
pub(super) fn json_of_unchanged(why: Unchanged) -> String {
    let (word, _) = WHYS.iter().find(|(_, it)| *it == why).expect("each has a word");
    format!(r#"{{"outcome":"unchanged","why":"{word}"}}"#)
}

/// Reads an item that is a change; none if it has another name.
pub(super) fn change_of(
    name: &str,
    key: &Bytes,
    fields: &mut Fields,
) -> Result<Option<Item>, String> {
    let change = match name {
        "put_if" => {
            let exists = fields.flag("exists")?;
            let value = fields.bytes("value")?;
            Change::PutIf { exists, value, expiry: expiry_of(fields)? }
        }
        "add" => Change::Add(fields.integer("number")?),
        "add_float" => Change::AddFloat(fields.bytes("value")?),
        "append" => Change::Append(fields.bytes("value")?),
        "set_range" => {
            let offset = fields.number("offset")?;
            Change::SetRange { offset, bytes: fields.bytes("value")? }
        }
        _ => return Ok(None),
    };
    Ok(Some(Item::Change { key: key.clone(), change }))
}

/// Reads what a change was told; none if it has another name.
pub(super) fn outcome_of_change(
    name: &str,
    fields: &mut Fields,
) -> Result<Option<ItemOutcome>, String> {
    Ok(Some(ItemOutcome::Changed(match name {
        "put" => Changed::Put,
        "integer" => Changed::Integer(fields.integer("number")?),
        "float" => Changed::Float(fields.bytes("value")?),
        "length" => Changed::Length(fields.number("bytes")?),
        "unchanged" => {
            let said = fields.text("why")?;
            let why = WHYS.iter().find(|(word, _)| *word == said);
            let (_, why) = why.ok_or_else(|| format!("nothing is unchanged for {said:?}"))?;
            return Ok(Some(ItemOutcome::Unchanged(*why)));
        }
        _ => return Ok(None),
    })))
}
