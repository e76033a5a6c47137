//! What transactions asked and were told, in words.

use crate::explain::{found, shown};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use quorate_kernel::change::{Change, Changed};
use quorate_kernel::expiry::{Expiry, Lifetime};
use quorate_kernel::transaction::{Condition, Copied, Item, ItemOutcome};

/// How many items of one transaction are shown.
const SHOWN_MAX: usize = 12;

/// What the items of a transaction ask for.
pub(crate) fn asked(items: &[Item]) -> String {
    let word = |item: &Item| {
        let key = shown(item.key());
        match item {
            Item::Check { holds: Condition::Absent, .. } => format!("check {key} is absent"),
            Item::Check { holds: Condition::Present, .. } => format!("check {key} is there"),
            Item::Check { holds: Condition::Value(value), .. } => {
                format!("check {key} is {}", shown(value))
            }
            Item::Get { .. } => format!("get {key}"),
            Item::Put { value, expiry, .. } => {
                format!("put {key} {}{}", shown(value), ending(*expiry))
            }
            Item::Delete { .. } => format!("delete {key}"),
            Item::Change { change, .. } => match change {
                Change::PutIf { exists: true, value, .. } => {
                    format!("put {key} {} if there is a value", shown(value))
                }
                Change::PutIf { exists: false, value, .. } => {
                    format!("put {key} {} if there is none", shown(value))
                }
                Change::Add(number) => format!("add {number} to {key}"),
                Change::AddFloat(number) => format!("add {} to {key}", shown(number)),
                Change::Append(bytes) => format!("append {} to {key}", shown(bytes)),
                Change::SetRange { offset, bytes } => {
                    format!("set {key} from byte {offset} on to {}", shown(bytes))
                }
            },
            Item::Expire { at: None, .. } => format!("let {key} not end"),
            Item::Expire { at: Some(at), when, .. } => format!("end {key} at {}, {when:?}", at.0),
            Item::Lifetime { .. } => format!("get the end of {key}"),
            Item::Copy { to, replaces, removes, .. } => {
                let verb = if *removes { "rename" } else { "copy" };
                let unless = if *replaces { "" } else { " if there is none" };
                format!("{verb} {key} to {}{unless}", shown(to))
            }
        }
    };
    listed(items.iter().map(word), items.len())
}

/// What the items of a transaction that was done were told.
pub(crate) fn told(items: &[ItemOutcome]) -> String {
    let word = |item: &ItemOutcome| match item {
        ItemOutcome::Checked => "holds".to_string(),
        ItemOutcome::Value(value) => found(value.as_ref()),
        ItemOutcome::Written => "written".to_string(),
        ItemOutcome::Deleted { existed: true } => "deleted".to_string(),
        ItemOutcome::Deleted { existed: false } => "was not there".to_string(),
        ItemOutcome::Changed(Changed::Put) => "written".to_string(),
        ItemOutcome::Changed(Changed::Integer(number)) => format!("is {number} now"),
        ItemOutcome::Changed(Changed::Float(number)) => format!("is {} now", shown(number)),
        ItemOutcome::Changed(Changed::Length(length)) => format!("has {length} bytes now"),
        ItemOutcome::Unchanged(why) => format!("not done: {why}"),
        ItemOutcome::Expiry { changed: true } => "ends so".to_string(),
        ItemOutcome::Expiry { changed: false } => "ends as before".to_string(),
        ItemOutcome::Lifetime(Lifetime::Absent) => "is not there".to_string(),
        ItemOutcome::Lifetime(Lifetime::Endless) => "does not end".to_string(),
        ItemOutcome::Lifetime(Lifetime::Until(at)) => format!("ends at {}", at.0),
        ItemOutcome::Copied(Copied::Done) => "copied".to_string(),
        ItemOutcome::Copied(Copied::NoSource) => "not copied: was not there".to_string(),
        ItemOutcome::Copied(Copied::Occupied) => "not copied: there is another".to_string(),
    };
    listed(items.iter().map(word), items.len())
}

/// When a key that is put ends, if that is said.
fn ending(expiry: Expiry) -> String {
    match expiry {
        Expiry::Never => String::new(),
        Expiry::Keep => ", which ends as before".to_string(),
        Expiry::At(at) => format!(", which ends at {}", at.0),
    }
}

fn listed(words: impl Iterator<Item = String>, count: usize) -> String {
    let mut words: Vec<String> = words.take(SHOWN_MAX).collect();
    if count > SHOWN_MAX {
        words.push(format!("{} more", count - SHOWN_MAX));
    }
    format!("[{}]", words.join(", "))
}
