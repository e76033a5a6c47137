//! The items of a group: in memory what changed lately, the rest in the lane's table.

use super::act::WallMs;
use super::evaluate::Content;
use crate::serializable::keys;
use crate::serializable::number::{TxId, Version};
use crate::serializable::raw::Raw;
use crate::serializable::sound::are_items;
use crate::vsr::{Op, Store};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::GroupId;
use quorate_kernel::process::Table;
use quorate_kernel::storage::Class;
use serde::{Deserialize, Serialize};

/// What is known of one key. Without a value it is a tombstone: its version goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// How often the key was changed.
    pub version: Version,
    /// The place of the entry that changed it last.
    pub op: u64,
    /// Whose entry that was.
    pub writer: TxId,
    /// The value, and when it is removed.
    pub content: Option<(Raw, Option<WallMs>)>,
}

/// The same, in the bytes that it is read from.
#[derive(Deserialize)]
struct Seen<'a> {
    version: Version,
    op: u64,
    writer: TxId,
    #[serde(borrow)]
    content: Option<(&'a [u8], Option<WallMs>)>,
}

impl Stored {
    /// What was stored; the value is a part of these bytes.
    fn of(bytes: &Bytes) -> Stored {
        let Seen { version, op, writer, content } = keys::decode(bytes);
        let value = |value: &[u8]| Raw(bytes.slice_ref(value));
        let content = content.map(|(seen, expires)| (value(seen), expires));
        Stored { version, op, writer, content }
    }

    /// The value, if there is one.
    #[must_use]
    pub fn content(&self) -> Option<Content> {
        let (value, expires) = self.content.as_ref()?;
        Some(Content { value: value.0.clone(), expires: *expires })
    }

    /// Whether its value is there, and its time has passed.
    #[must_use]
    pub fn is_expired(&self, clock: WallMs) -> bool {
        self.content.as_ref().is_some_and(|(_, expires)| expires.is_some_and(|at| at <= clock))
    }

    /// About how many bytes it takes.
    pub fn size(&self) -> usize {
        self.content.as_ref().map_or(0, |(value, _)| value.len()) + 32
    }
}

/// Items that the table does not show yet; none if the key is dropped.
type Overlay = BTreeMap<Raw, Option<Stored>>;

/// A pass of storing: what is written down bit by bit.
#[derive(Debug)]
struct Pass {
    /// The head, as of which entry.
    head: (Op, Bytes),
    /// What is left to be written.
    left: BTreeSet<Raw>,
}

/// The items.
#[derive(Debug)]
pub struct Items {
    group: GroupId,
    /// Changed, and not written.
    dirty: Overlay,
    /// About how many bytes that is.
    dirty_bytes: usize,
    /// Written in this call or the one before: the table shows it from the next input on.
    written: [Overlay; 2],
    /// The table was emptied in this call or the one before.
    emptied: [bool; 2],
    /// Nothing of a later entry is in the table or came with a copy.
    settled: Op,
    stored: Op,
    pass: Option<Pass>,
}

impl Items {
    /// No items.
    pub fn new(group: GroupId) -> Items {
        let (dirty, written) = (Overlay::new(), [Overlay::new(), Overlay::new()]);
        let emptied = [false; 2];
        let (settled, stored) = (Op(0), Op(0));
        Items { group, dirty, dirty_bytes: 0, written, emptied, settled, stored, pass: None }
    }

    /// Everything up to this entry was handed to the store.
    pub fn stored(&self) -> Op {
        self.stored
    }

    /// What is known of a key.
    pub fn get(&self, key: &Raw, table: &dyn Table) -> Option<Stored> {
        for overlay in [&self.dirty, &self.written[0], &self.written[1]] {
            if let Some(item) = overlay.get(key) {
                return item.clone();
            }
        }
        if self.emptied.contains(&true) {
            return None;
        }
        table.get(Class::Data, &keys::item(self.group, key)).map(|bytes| Stored::of(&bytes))
    }

    /// Changes a key, unless a copy, or what was stored, already has this or more.
    pub fn set(&mut self, op: Op, key: Raw, item: Stored, table: &dyn Table) {
        debug_assert_eq!(item.op, op.0, "an item tells who has changed it");
        let has = if op <= self.settled { self.get(&key, table) } else { None };
        if has.is_none_or(|has| has.op < op.0) {
            self.keep(key, Some(item));
        }
    }

    fn keep(&mut self, key: Raw, item: Option<Stored>) {
        let length = key.len();
        self.dirty_bytes += size(length, item.as_ref());
        if let Some(before) = self.dirty.insert(key, item) {
            self.dirty_bytes -= size(length, before.as_ref());
        }
    }

    /// About how many bytes are in memory alone.
    pub fn unstored(&self) -> usize {
        self.dirty_bytes
    }

    /// Drops a key.
    pub fn drop_key(&mut self, key: Raw) {
        self.keep(key, None);
    }

    /// Some keys from one on, ascending, about so many bytes, and where the next ones begin.
    pub fn range(
        &self,
        from: &[u8],
        (keys_max, bytes_max): (usize, usize),
        table: &dyn Table,
    ) -> (Vec<(Raw, Stored)>, Option<Raw>) {
        let mut found = Overlay::new();
        let mut bound: Option<Raw> = None;
        let mut room = (keys_max, bytes_max);
        let mut fits = |key: &Raw, size: usize| {
            if room.0 == 0 || room.1 == 0 {
                bound = Some(bound.take().map_or_else(|| key.clone(), |has| has.min(key.clone())));
                return false;
            }
            room = (room.0 - 1, room.1.saturating_sub(key.len() + size));
            true
        };
        if !self.emptied.contains(&true) {
            let first = keys::item(self.group, from);
            table.scan(Class::Data, &first, &mut |stored, value| {
                let Some(key) = keys::of_item(self.group, stored) else { return false };
                let may = fits(&key, value.len());
                if may {
                    found.insert(key, Some(keys::decode(value)));
                }
                may
            });
        }
        let [new, old] = &self.written;
        let from = Raw(Bytes::copy_from_slice(from));
        for overlay in [old, new, &self.dirty] {
            room = (keys_max, bytes_max);
            let mut fits = |key: &Raw, size: usize| {
                let is_before = bound.as_ref().is_none_or(|bound| key < bound);
                if is_before && (room.0 == 0 || room.1 == 0) {
                    bound = Some(key.clone());
                }
                room = (room.0.saturating_sub(1), room.1.saturating_sub(key.len() + size));
                bound.as_ref().is_none_or(|bound| key < bound)
            };
            for (key, item) in overlay.range(from.clone()..) {
                if !fits(key, item.as_ref().map_or(0, Stored::size)) {
                    break;
                }
                found.insert(key.clone(), item.clone());
            }
        }
        if let Some(bound) = &bound {
            found.split_off(bound);
        }
        let items = found.into_iter().filter_map(|(key, item)| Some((key, item?))).collect();
        (items, bound)
    }

    /// What the last call has written, the table shows.
    fn roll(&mut self) {
        self.written.swap(0, 1);
        self.written[0].clear();
        self.emptied = [false, self.emptied[0]];
    }

    /// Writes some of what is not stored yet; `head` is made if a pass begins.
    pub fn store(
        &mut self,
        applied: Op,
        bytes_max: usize,
        head: impl FnOnce() -> Bytes,
        store: &mut Store<'_>,
    ) {
        self.roll();
        let dirty = &self.dirty;
        let pass = self.pass.get_or_insert_with(|| Pass {
            head: (applied, head()),
            left: dirty.keys().cloned().collect(),
        });
        // Before its items: an item may be of any entry up to here.
        store.write(keys::newest(self.group), Some(keys::encode(&applied.0)));
        let mut bytes = 0;
        while bytes < bytes_max
            && let Some(key) = pass.left.pop_first()
        {
            let Some(item) = self.dirty.remove(&key) else { continue };
            bytes += size(key.len(), item.as_ref());
            store.write(keys::item(self.group, &key), item.as_ref().map(keys::encode));
            self.written[0].insert(key, item);
        }
        self.dirty_bytes -= bytes;
        if pass.left.is_empty() {
            let Pass { head: (op, head), .. } = self.pass.take().expect("it is there");
            self.write_head(op, &head, store);
        }
    }

    fn write_head(&mut self, op: Op, head: &Bytes, store: &mut Store<'_>) {
        store.write(keys::head(self.group), Some(keys::encode(&(op.0, Raw(head.clone())))));
        self.stored = op;
    }

    /// What was stored: the head, as of which entry, and the newest entry that items may be of.
    pub fn load(&mut self, table: &dyn Table) -> (Op, Op, Option<Bytes>) {
        let get = |key: Bytes| table.get(Class::Data, &key);
        let head: Option<(u64, Raw)> = get(keys::head(self.group)).map(|it| keys::decode(&it));
        let newest: Option<u64> = get(keys::newest(self.group)).map(|it| keys::decode(&it));
        let whole = Op(head.as_ref().map_or(0, |(op, _)| *op));
        self.settled = whole.max(Op(newest.unwrap_or_default()));
        self.stored = whole;
        (whole, self.settled, head.map(|(_, head)| head.0))
    }

    /// Drops everything: a copy follows.
    pub fn begin_install(&mut self, store: &mut Store<'_>) {
        let mut stored = Vec::new();
        let first = keys::item(self.group, &[]);
        store.table.scan(Class::Data, &first, &mut |key, _| {
            let is_item = keys::of_item(self.group, key).is_some();
            if is_item {
                stored.push(Bytes::copy_from_slice(key));
            }
            is_item
        });
        // What the table does not show yet is dropped as well.
        let shown_later = self.written.iter().flat_map(|overlay| overlay.keys());
        stored.extend(shown_later.map(|key| keys::item(self.group, key)));
        stored.into_iter().for_each(|key| store.write(key, None));
        store.write(keys::head(self.group), None);
        store.write(keys::newest(self.group), None);
        *self = Items { emptied: [true, false], ..Items::new(self.group) };
    }

    /// Takes a page of a copy.
    pub fn install(&mut self, items: Vec<(Raw, Stored)>, store: &mut Store<'_>) {
        self.roll();
        for (key, item) in items {
            self.settled = self.settled.max(Op(item.op));
            store.write(keys::item(self.group, &key), Some(keys::encode(&item)));
            self.written[0].insert(key, Some(item));
        }
    }

    /// The copy is complete; its head is of this entry.
    pub fn end_install(&mut self, op: Op, head: &Bytes, store: &mut Store<'_>) {
        self.settled = self.settled.max(op);
        store.write(keys::newest(self.group), Some(keys::encode(&self.settled.0)));
        self.write_head(op, head, store);
    }

    /// The overlays, for tests of what is in memory.
    #[cfg(test)]
    pub fn dirty_count(&self) -> usize {
        self.dirty.len()
    }
}

/// About how many bytes a key of this length takes, with what it has.
fn size(length: usize, item: Option<&Stored>) -> usize {
    length + item.map_or(0, Stored::size)
}

/// What is in a page that a peer has sent; nothing if it is none.
pub fn take_page(bytes: &Bytes) -> Option<Vec<(Raw, Stored)>> {
    keys::read(bytes).filter(|items: &Vec<(Raw, Stored)>| are_items(items))
}

/// The page of these items.
pub fn page_of(items: &[(Raw, Stored)]) -> Bytes {
    keys::encode(&items)
}
