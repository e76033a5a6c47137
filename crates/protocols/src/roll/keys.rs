//! What the lane keeps in the store, beside what the roll does.
//!
//! | key | value | class | written by | may be dropped |
//! |---|---|---|---|---|
//! | `coming` | how often the host has come before, 8 bytes, the highest first; the same of the coming whose roll is kept for those that are behind, if one is | state | a removal | never: an earlier name does not come again |
//! | how often it has come, 8 bytes, then a key of Rapid's roll | Rapid's | state | Rapid's roll | when the host is on a later roll |
//! | the same, then `prime` | version byte, how it stands, its view with all that is reported in it | state | PRIME, with each view, and when it is removed | when the host comes again |

use crate::membership;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::process::Table;
use quorate_kernel::storage::Class;

const COMING: &[u8] = b"coming";
/// What PRIME has stored.
pub(super) const PRIME: &[u8] = b"prime";

pub(super) fn coming_key() -> Bytes {
    Bytes::from_static(COMING)
}

pub(super) fn store_coming(coming: u64, former: Option<u64>) -> Bytes {
    let numbers = [Some(coming), former];
    numbers.iter().flatten().flat_map(|number| number.to_be_bytes()).collect()
}

/// How often the host has come before, and the coming whose roll is kept.
pub(super) fn load_coming(table: &dyn Table) -> (u64, Option<u64>) {
    let Some(value) = table.get(Class::State, &coming_key()) else { return (0, None) };
    let number = |bytes: &[u8]| {
        u64::from_be_bytes(bytes.try_into().expect("the store returns what was put into it"))
    };
    let (coming, former) = value.split_at(8);
    (number(coming), (!former.is_empty()).then(|| number(former)))
}

/// A key of the roll, of one coming.
pub(super) fn of(coming: u64, key: &[u8]) -> Bytes {
    [&coming.to_be_bytes()[..], key].concat().into()
}

/// All keys of the roll, of one coming.
pub(super) fn all_of(coming: u64) -> Vec<Bytes> {
    membership::KEYS.iter().chain([&PRIME]).map(|key| of(coming, key)).collect()
}

/// What the roll has stored in one coming.
pub(super) struct OfComing<'a> {
    pub coming: u64,
    pub table: &'a dyn Table,
}

impl Table for OfComing<'_> {
    fn get(&self, class: Class, key: &Bytes) -> Option<Bytes> {
        self.table.get(class, &of(self.coming, key))
    }

    fn scan(&self, class: Class, from: &[u8], each: &mut dyn FnMut(&[u8], &Bytes) -> bool) {
        let prefix = self.coming.to_be_bytes();
        self.table.scan(class, &of(self.coming, from), &mut |key, value| {
            key.strip_prefix(&prefix[..]).is_some_and(|key| each(key, value))
        });
    }
}
