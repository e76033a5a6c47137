//! How the state of a group comes back: from the store, and from another replica.
//!
//! What is stored is a head as of one entry, and items that may be newer; the log from there on is
//! executed onto it. A copy is the same from elsewhere. Nothing volatile comes back: a primary that
//! begins finds locks, votes and decisions in the state, and asks and tells again (§4.5).

use super::execute::entry::Entry;
use super::execute::head::Head;
use super::execute::items::{page_of, take_page};
use super::keys;
use super::state::State;
use crate::vsr::{Machine, Op, Page, Store, Stored};
use bytes::Bytes;
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::process::Table;

/// How many items one page may have.
const PAGE_KEYS_MAX: usize = 1024;

impl State {
    fn take_head(&mut self, head: Head) {
        self.head = head;
        self.head.sizes = self.head.sizes_counted();
        if mutant!("txn_read_lock_lost") {
            for prepared in self.head.pending.values_mut() {
                if let Ok(share) = &mut prepared.vote {
                    share.shared.clear();
                }
            }
            self.head.sizes = self.head.sizes_counted();
        }
        self.locks = self.locks_of_votes();
    }
}

/// A head that was stored.
fn read(head: &Bytes) -> Head {
    keys::read_head(head).expect("the store returns what was put into it")
}

impl Machine for State {
    fn is_command(&mut self, command: &Bytes) -> bool {
        Entry::of(command).is_ok_and(|entry| entry.is_of(self.group))
    }

    fn apply(&mut self, op: Op, command: &Bytes, store: &mut Store<'_>) {
        // To go on without it would be another state than that of the other members.
        let has_limits = mutant!("txn_limits_in_the_log");
        let read = if has_limits { Entry::of(command) } else { Entry::of_log(command) };
        let entry = read.unwrap_or_else(|why| {
            panic!(
                "group {}: the entry at {op:?} is damaged, or of another version: {why}",
                self.group.0
            )
        });
        self.execute(op, entry, store.table);
    }

    fn load(&mut self, store: &mut Store<'_>) -> Stored {
        let (whole, newest, head) = self.items.load(store.table);
        self.take_head(head.map(|head| read(&head)).unwrap_or_default());
        self.applied = whole.0;
        invariant!(newest >= whole, "the newest item is no older than the head");
        Stored { whole, newest }
    }

    fn store(&mut self, applied: Op, bytes_max: usize, store: &mut Store<'_>) {
        let head = &self.head;
        self.items.store(applied, bytes_max, || keys::encode_head(head), store);
    }

    fn stored(&self) -> Op {
        self.items.stored()
    }

    fn unstored(&self) -> usize {
        self.items.unstored()
    }

    fn head(&mut self, _at: Op) -> Bytes {
        keys::encode_head(&self.head)
    }

    fn page(&self, _at: Op, cursor: &Bytes, bytes_max: usize, table: &dyn Table) -> Option<Page> {
        let (items, next) = self.items.range(cursor, (PAGE_KEYS_MAX, bytes_max), table);
        Some(Page { items: page_of(&items), next: next.map(|key| key.0) })
    }

    fn begin_install(&mut self, _op: Op, head: &Bytes, store: &mut Store<'_>) -> bool {
        let read = if head.is_empty() { Some(Head::default()) } else { keys::read_head(head) };
        let Some(head) = read.filter(|head: &Head| head.is_sound(self.group)) else {
            return false;
        };
        self.items.begin_install(store);
        self.take_head(head);
        self.executed.clear();
        true
    }

    fn install(&mut self, items: &Bytes, store: &mut Store<'_>) -> bool {
        let Some(items) = take_page(items) else { return false };
        self.items.install(items, store);
        true
    }

    fn end_install(&mut self, op: Op, store: &mut Store<'_>) {
        let head = keys::encode_head(&self.head);
        self.applied = op.0;
        self.items.end_install(op, &head, store);
    }
}
