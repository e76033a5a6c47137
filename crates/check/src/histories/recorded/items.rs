//! The items of a transaction, and what each was told, as objects of a line.

use super::changes::{
    NAMES, change_of, json_of_change, json_of_changed, json_of_unchanged, outcome_of_change,
};
use super::read::{Fields, bytes_of};
use super::write::json;
use alloc::format;
use alloc::string::{String, ToString};
use bytes::Bytes;
use quorate_kernel::transaction::{Condition, Item, ItemOutcome};

/// An item as JSON.
pub(super) fn json_of_item(item: &Item) -> String {
    let of =
        |name: &str, rest: &str| format!(r#"{{"item":"{name}","key":{}{rest}}}"#, json(item.key()));
    let with = |value: &Bytes| format!(r#","value":{}"#, json(value));
    match item {
        Item::Check { holds: Condition::Absent, .. } => of("check", r#","is":"absent""#),
        Item::Check { holds: Condition::Present, .. } => of("check", r#","is":"present""#),
        Item::Check { holds: Condition::Value(value), .. } => of("check", &with(value)),
        Item::Get { .. } => of("get", ""),
        Item::Put { value, .. } => of("put", &with(value)),
        Item::Delete { .. } => of("delete", ""),
        Item::Change { change, .. } => {
            let (name, rest) = json_of_change(change);
            of(name, &rest)
        }
    }
}

/// What an item was told, as JSON.
pub(super) fn json_of_outcome(outcome: &ItemOutcome) -> String {
    match outcome {
        ItemOutcome::Checked => r#"{"outcome":"checked"}"#.to_string(),
        ItemOutcome::Value(value) => {
            let value = value.as_deref().map_or_else(|| "null".to_string(), json);
            format!(r#"{{"outcome":"value","value":{value}}}"#)
        }
        ItemOutcome::Written => r#"{"outcome":"written"}"#.to_string(),
        ItemOutcome::Deleted { existed } => {
            format!(r#"{{"outcome":"deleted","existed":{existed}}}"#)
        }
        ItemOutcome::Changed(changed) => json_of_changed(changed),
        ItemOutcome::Unchanged(why) => json_of_unchanged(*why),
    }
}

/// Reads an item.
pub(super) fn item_of(fields: &mut Fields) -> Result<Item, String> {
    let (name, key) = (fields.text("item")?, fields.bytes("key")?);
    match name.as_str() {
        "check" if fields.has("value") => {
            Ok(Item::Check { key, holds: Condition::Value(fields.bytes("value")?) })
        }
        "check" => match fields.text("is")?.as_str() {
            "absent" => Ok(Item::Check { key, holds: Condition::Absent }),
            "present" => Ok(Item::Check { key, holds: Condition::Present }),
            other => Err(format!("a check is {other:?}; expected \"absent\" or \"present\"")),
        },
        "get" => Ok(Item::Get { key }),
        "put" => Ok(Item::Put { key, value: fields.bytes("value")? }),
        "delete" => Ok(Item::Delete { key }),
        _ => change_of(&name, &key, fields)?.ok_or_else(|| {
            format!(
                "unknown item {name:?}; expected \"check\", \"get\", \"put\", \"delete\", {NAMES}"
            )
        }),
    }
}

/// Reads what an item was told.
pub(super) fn outcome_of_item(fields: &mut Fields) -> Result<ItemOutcome, String> {
    let name = fields.text("outcome")?;
    match name.as_str() {
        "checked" => Ok(ItemOutcome::Checked),
        "value" => Ok(ItemOutcome::Value(fields.nullable("value", bytes_of)?)),
        "written" => Ok(ItemOutcome::Written),
        "deleted" => Ok(ItemOutcome::Deleted { existed: fields.flag("existed")? }),
        _ => outcome_of_change(&name, fields)?.ok_or_else(|| {
            format!(
                "unknown outcome {name:?} of an item; expected \"checked\", \"value\", \
                 \"written\", \"deleted\", \"put\", \"integer\", \"float\", \"length\" or \
                 \"unchanged\""
            )
        }),
    }
}
