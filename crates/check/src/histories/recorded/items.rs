//! The items of a transaction, and what each was told, as objects of a line.

use super::changes::{
    NAMES, change_of, json_of_change, json_of_changed, json_of_unchanged, outcome_of_change,
};
use super::expiry::{
    expire_of, expiry_of, json_of_expire, json_of_expiry, json_of_lifetime, outcome_of_expiry,
};
use super::read::{Fields, bytes_of};
use super::write::json;
use alloc::format;
use alloc::string::{String, ToString};
use bytes::Bytes;
use quorate_kernel::transaction::{Condition, Copied, Item, ItemOutcome};

/// What became of a copy, by the word of it.
const COPIED: [(&str, Copied); 3] =
    [("done", Copied::Done), ("no_source", Copied::NoSource), ("occupied", Copied::Occupied)];

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
        Item::Put { value, expiry, .. } => of("put", &(with(value) + &json_of_expiry(*expiry))),
        Item::Delete { .. } => of("delete", ""),
        Item::Change { change, .. } => {
            let (name, rest) = json_of_change(change);
            of(name, &rest)
        }
        Item::Expire { at, when, .. } => of("expire", &json_of_expire(*at, *when)),
        Item::Lifetime { .. } => of("lifetime", ""),
        Item::Copy { to, replaces, removes, .. } => {
            let to = json(to);
            of("copy", &format!(r#","to":{to},"replaces":{replaces},"removes":{removes}"#))
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
        ItemOutcome::Expiry { changed } => {
            format!(r#"{{"outcome":"expiry","changed":{changed}}}"#)
        }
        ItemOutcome::Lifetime(lifetime) => json_of_lifetime(*lifetime),
        ItemOutcome::Copied(copied) => {
            let (word, _) = COPIED.iter().find(|(_, it)| it == copied).expect("each has a word");
            format!(r#"{{"outcome":"copied","is":"{word}"}}"#)
        }
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
        "put" => {
            let value = fields.bytes("value")?;
            Ok(Item::Put { key, value, expiry: expiry_of(fields)? })
        }
        "delete" => Ok(Item::Delete { key }),
        "copy" => {
            let (to, replaces) = (fields.bytes("to")?, fields.flag("replaces")?);
            Ok(Item::Copy { key, to, replaces, removes: fields.flag("removes")? })
        }
        _ => {
            let item = change_of(&name, &key, fields)?;
            let item = item.map_or_else(|| expire_of(&name, &key, fields), |it| Ok(Some(it)))?;
            item.ok_or_else(|| {
                format!(
                    "unknown item {name:?}; expected \"check\", \"get\", \"put\", \"delete\", \
                     \"copy\", \"expire\", \"lifetime\", {NAMES}"
                )
            })
        }
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
        "copied" => {
            let word = fields.text("is")?;
            let copied = COPIED.iter().find(|(it, _)| *it == word);
            let (_, copied) = copied.ok_or_else(|| format!("no copy is {word:?}"))?;
            Ok(ItemOutcome::Copied(*copied))
        }
        _ => {
            let told = outcome_of_change(&name, fields)?;
            let told = told.map_or_else(|| outcome_of_expiry(&name, fields), |it| Ok(Some(it)))?;
            told.ok_or_else(|| {
                format!(
                    "unknown outcome {name:?} of an item; expected \"checked\", \"value\", \
                     \"written\", \"deleted\", \"put\", \"integer\", \"float\", \"length\", \
                     \"unchanged\", \"copied\", \"expiry\" or \"lifetime\""
                )
            })
        }
    }
}
