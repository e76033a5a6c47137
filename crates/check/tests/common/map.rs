//! A map that does transactions, and tells what each item is told.
#![allow(dead_code)] // Each test file uses its own part of it.

use bytes::Bytes;
use quorate_check::history::Completion::{self, Transacted, Unmet};
use quorate_kernel::transaction::ItemOutcome::{Checked, Deleted, Written};
use quorate_kernel::transaction::{Condition, Item, ItemOutcome};
use std::collections::BTreeMap;

pub type Map = BTreeMap<String, String>;

/// What a get in a transaction was told; an empty text stands for nothing.
pub fn saw(text: &str) -> ItemOutcome {
    ItemOutcome::Value((!text.is_empty()).then(|| Bytes::copy_from_slice(text.as_bytes())))
}

pub fn is_met(holds: &Condition, found: Option<&String>) -> bool {
    let found = found.map(|text| Bytes::copy_from_slice(text.as_bytes()));
    holds.is_met(found.as_ref())
}

/// Does a transaction; now and then `lies` says that an item is told something else.
pub fn told_by(
    items: &[Item],
    map: &mut Map,
    lies: &mut dyn FnMut() -> bool,
    invented: u64,
) -> Completion {
    let (mut now, mut told) = (map.clone(), Vec::new());
    for (at, item) in items.iter().enumerate() {
        let key = String::from_utf8(item.key().to_vec()).expect("text");
        let found = now.get(&key).cloned();
        let is_lie = lies();
        told.push(match item {
            Item::Check { holds, .. } if is_met(holds, found.as_ref()) == is_lie => {
                return Unmet { item: at };
            }
            Item::Check { .. } => Checked,
            Item::Get { .. } if is_lie => saw(&invented.to_string()),
            Item::Get { .. } => saw(&found.unwrap_or_default()),
            Item::Put { value, .. } => {
                now.insert(key, String::from_utf8(value.to_vec()).expect("text"));
                Written
            }
            Item::Delete { .. } => Deleted { existed: now.remove(&key).is_some() != is_lie },
            _ => unreachable!("nobody asks for it here"),
        });
    }
    *map = now;
    Transacted(told)
}
