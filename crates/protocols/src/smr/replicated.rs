//! A machine as what a log replicates.

use super::answers::Answers;
use super::changes::Changes;
use super::clients::Client;
use super::copies::Copies;
use super::early::Early;
use super::entry::{Entry, Origin};
use super::execution::{Execution, Objects};
use super::keys::{self, Head, StoredHead};
use super::machine::Machine;
use crate::vsr::{self, Op, Page, Store, Stored};
use alloc::collections::BTreeSet;
use alloc::collections::btree_map::Entry as Place;
use alloc::vec::Vec;
use bytes::Bytes;
use core::mem;
use core::ops::Bound;
use quorate_kernel::ids::{GroupId, Incarnation};
use quorate_kernel::mutant;
use quorate_kernel::process::Table;
use quorate_kernel::storage::Class;

/// A command of a client that was executed, or came again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Executed {
    /// Whose it is.
    pub client: Incarnation,
    /// Its number.
    pub number: u64,
}

/// How many objects of the state before go with one of a copy.
const GONE: usize = 2;
/// How many of them go in a turn once the copy is here. Few in tests, so that some are left.
const CLEARED: usize = if cfg!(test) { 16 } else { 4096 };

/// The replica of a machine.
#[derive(Debug)]
pub struct Replicated<M: Machine> {
    group: GroupId,
    objects: Objects<M>,
    head: Head<M>,
    changes: Changes<M::Change>,
    /// Answers of which the head keeps less.
    answers: Answers<M>,
    /// Commands of clients that were executed since this was last emptied.
    executed: Vec<Executed>,
    /// Entries that were read and are not executed yet.
    early: Early<M>,
    /// What differs from what is stored, and about how many bytes that is.
    dirty: BTreeSet<Bytes>,
    dirty_bytes: usize,
    stored: Op,
    copies: Copies<M::Object>,
    /// What is stored of the state before a copy that is under way, and is to be removed.
    gone: BTreeSet<Bytes>,
}

impl<M: Machine> Replicated<M> {
    /// The machine of a group before its first command, with nothing of it stored.
    #[must_use]
    pub fn new(group: GroupId) -> Replicated<M> {
        let mut replicated = Replicated {
            group,
            objects: Objects::<M>::new(),
            head: Head::default(),
            changes: Changes::new(0),
            answers: Answers::default(),
            executed: Vec::new(),
            early: Early::default(),
            dirty: BTreeSet::new(),
            dirty_bytes: 0,
            stored: Op(0),
            copies: Copies::default(),
            gone: BTreeSet::new(),
        };
        replicated.begin();
        replicated
    }

    /// The objects as of the last entry that was executed.
    #[must_use]
    pub fn objects(&self) -> &Objects<M> {
        &self.objects
    }

    /// The latest time of an entry, in milliseconds since 1970.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        self.head.now_ms
    }

    /// What has happened lately.
    #[must_use]
    pub fn changes(&self) -> &Changes<M::Change> {
        &self.changes
    }

    /// What is remembered of a client; nothing of one of whose node a later start is known.
    #[must_use]
    pub fn client(&self, client: Incarnation) -> Option<&Client<M>> {
        self.head.clients.get(&client.node).filter(|it| it.start == client.start)
    }

    /// The answer of a client's command that was executed, or what is kept of it, if it is
    /// remembered, and the number of the last change before it ended.
    #[must_use]
    pub fn reply(&self, client: Incarnation, number: u64) -> Option<(u64, &M::Output)> {
        let (at, kept) = self.kept(client, number)?;
        Some((at, self.answers.get(client, number).unwrap_or(kept)))
    }

    /// The same as the state keeps it: with less where the machine does not want the whole there.
    #[must_use]
    pub fn kept(&self, client: Incarnation, number: u64) -> Option<(u64, &M::Output)> {
        self.client(client)?.reply(number).map(|(at, kept)| (*at, kept))
    }

    /// How many whole answers are here of which the head keeps less.
    #[cfg(test)]
    pub fn whole_answers(&self) -> usize {
        self.answers.len()
    }

    /// Whether a later start of the client's node is known: nothing of this one is executed.
    #[must_use]
    pub fn has_ended(&self, client: Incarnation) -> bool {
        self.head.clients.get(&client.node).is_some_and(|it| it.start > client.start)
    }

    /// The clients of which answers are kept, and the last command of each.
    pub fn unacknowledged(&self) -> impl Iterator<Item = (Incarnation, u64)> {
        let kept = self.head.clients.iter().filter(|(_, client)| !client.replies.is_empty());
        kept.map(|(node, client)| (Incarnation { node: *node, start: client.start }, client.done))
    }

    /// Which commands were executed since this was last asked.
    pub fn take_executed(&mut self) -> Vec<Executed> {
        mem::take(&mut self.executed)
    }

    /// An entry was put into the log here, and these are its bytes.
    pub fn proposed(&mut self, bytes: Bytes, entry: Entry<M>) {
        self.early.put(bytes, entry);
    }

    /// What a command would find, and be answered, now: nothing of it takes effect.
    pub fn look<T>(&self, look: impl FnOnce(&mut Execution<'_, M>) -> T) -> T {
        look(&mut Execution::new(&self.objects, self.head.now_ms))
    }

    /// The first keys from one on, and their objects.
    pub fn from<'a>(&'a self, key: &'a [u8]) -> impl Iterator<Item = (&'a Bytes, &'a M::Object)> {
        self.objects.range::<[u8], _>((Bound::Included(key), Bound::Unbounded))
    }

    fn execute_of(&mut self, from: Origin, at: usize, command: &M::Command, counted: &mut usize) {
        let number = from.first + at as u64;
        let start = from.client.start;
        let client = self.head.clients.entry(from.client.node);
        let client = client.or_insert_with(|| Client::new(start));
        client.acknowledge(start, from.acked);
        if client.is_next(start, number) {
            let reply = self.execute(command, counted);
            let kept = M::kept(command, &reply).filter(|_| !mutant!("smr_keeps_whole_answers"));
            let reply = match kept {
                Some((kept, bytes)) => {
                    self.answers.put(from.client, number, reply, bytes);
                    kept
                }
                None => reply,
            };
            if let Some(client) = self.head.clients.get_mut(&from.client.node) {
                client.note(self.head.changes, reply);
            }
        }
        self.executed.push(Executed { client: from.client, number });
    }

    /// Executes a command of an entry; those before it there have counted so many objects.
    fn execute(&mut self, command: &M::Command, counted: &mut usize) -> M::Output {
        let mut on = Execution::new(&self.objects, self.head.now_ms).behind(*counted);
        let reply = M::execute(command, &mut on);
        if !mutant!("smr_each_command_counts_anew") {
            *counted = on.counted();
        }
        let (written, changes) = on.left();
        for (key, object) in written {
            self.set(key, object);
        }
        self.head.changes += changes.len() as u64;
        for change in changes {
            let bytes = M::change_bytes(&change);
            self.changes.push(change, bytes);
        }
        reply
    }

    fn set(&mut self, key: Bytes, object: Option<M::Object>) {
        self.dirty_bytes += key.len() + object.as_ref().map_or(0, M::bytes);
        self.dirty.insert(key.clone());
        match (self.objects.entry(key), object) {
            (Place::Occupied(mut place), Some(object)) => {
                self.copies.changes(place.key(), Some(place.get()));
                place.insert(object);
            }
            (Place::Occupied(place), None) => {
                self.copies.changes(place.key(), Some(place.get()));
                place.remove();
            }
            (Place::Vacant(place), object) => {
                self.copies.changes(place.key(), None);
                object.map(|object| place.insert(object));
            }
        }
    }

    /// The machine before the first command.
    fn begin(&mut self) {
        self.changes = Changes::new(self.head.changes);
        for (key, object) in M::begin() {
            self.set(key, Some(object));
        }
    }

    fn write_head(&self, at: Op, store: &mut Store<'_>) {
        store.write(keys::head(self.group), Some(keys::encode(&(at, &self.head))));
    }

    fn forget(&mut self) {
        self.objects.clear();
        self.dirty.clear();
        self.dirty_bytes = 0;
        self.executed.clear();
        self.answers = Answers::default();
        self.early = Early::default();
        self.copies = Copies::default();
        self.gone.clear();
        self.stored = Op(0);
    }

    /// Removes some of what is stored of an earlier state.
    fn remove_gone(&mut self, count: usize, store: &mut Store<'_>) {
        for _ in 0..count {
            let Some(key) = self.gone.pop_first() else { return };
            if !self.objects.contains_key(&key) {
                store.write(keys::object(self.group, &key), None);
            }
        }
    }
}

impl<M: Machine> vsr::Machine for Replicated<M> {
    fn is_command(&mut self, command: &Bytes) -> bool {
        let entry = Entry::<M>::of(command);
        let is_command = entry.is_some();
        if let Some(entry) = entry {
            self.early.put(command.clone(), entry);
        }
        is_command
    }

    fn apply(&mut self, op: Op, command: &Bytes, _store: &mut Store<'_>) {
        // To go on without it would be another state than that of the other members.
        let entry = self.early.take(command).or_else(|| Entry::<M>::of(command));
        let entry = entry.unwrap_or_else(|| {
            panic!("group {}: the entry at {op:?} is damaged, or of another version", self.group.0)
        });
        let is_later = entry.at_ms > self.head.now_ms || mutant!("smr_time_runs_back");
        self.head.now_ms = if is_later { entry.at_ms } else { self.head.now_ms };
        self.answers.pass(self.head.now_ms);
        let mut counted = 0;
        for part in entry.parts {
            if let Some(Origin { client, acked, .. }) = part.from {
                self.answers.acknowledge(client, acked);
            }
            if let Some(Origin { client, acked, .. }) = part.from
                && part.commands.is_empty()
                && let Some(known) = self.head.clients.get_mut(&client.node)
            {
                known.acknowledge(client.start, acked);
            }
            for (at, command) in part.commands.iter().enumerate() {
                match part.from {
                    Some(from) => self.execute_of(from, at, command, &mut counted),
                    None => _ = self.execute(command, &mut counted),
                }
            }
        }
        self.answers.forget_gone();
    }

    fn load(&mut self, store: &mut Store<'_>) -> Stored {
        let stored = store.table.get(Class::Data, &keys::head(self.group));
        let stored = stored.map(|bytes| {
            let read: Option<StoredHead<M>> = keys::read(&bytes);
            read.expect("the store returns what was put into it, in the version that it guards")
        });
        self.forget();
        let prefix = keys::object(self.group, &[]);
        store.table.scan(Class::Data, &prefix, &mut |key, value| {
            let Some(key) = keys::of_object(self.group, key) else { return false };
            let object = keys::read(value).expect("the store returns what was put into it");
            self.objects.insert(key, object);
            true
        });
        let Some((op, head)) = stored else {
            // Objects that are there are of a copy that was begun, which is begun again.
            self.begin();
            return Stored::default();
        };
        self.head = head;
        self.changes = Changes::new(self.head.changes);
        self.stored = op;
        Stored { whole: op, newest: op }
    }

    fn store(&mut self, applied: Op, _bytes_max: usize, store: &mut Store<'_>) {
        // All in one batch: an entry is executed on objects of the one before it.
        for key in mem::take(&mut self.dirty) {
            let value = self.objects.get(&key).map(keys::encode);
            store.write(keys::object(self.group, &key), value);
        }
        self.dirty_bytes = 0;
        self.stored = applied;
        self.write_head(applied, store);
    }

    fn stored(&self) -> Op {
        self.stored
    }

    fn unstored(&self) -> usize {
        self.dirty_bytes
    }

    fn head(&mut self, at: Op) -> Bytes {
        self.copies.begin(at);
        keys::encode(&self.head)
    }

    fn page(&self, at: Op, cursor: &Bytes, bytes_max: usize, _table: &dyn Table) -> Option<Page> {
        let bytes = |key: &Bytes, object: &M::Object| key.len() + M::bytes(object);
        let (items, next) = self.copies.page(at, cursor, bytes_max, &self.objects, bytes)?;
        Some(Page { items: keys::encode(&items), next })
    }

    fn keep(&mut self, heads: &BTreeSet<Op>) {
        self.copies.keep(heads);
    }

    fn begin_install(&mut self, _op: Op, head: &Bytes, store: &mut Store<'_>) -> bool {
        let is_empty = head.is_empty();
        let read = if is_empty { Some(Head::default()) } else { keys::read(head) };
        let Some(head) = read else { return false };
        // Nothing of it counts from now on: it is removed little by little, while the copy comes.
        store.write(keys::head(self.group), None);
        // What was removed, and is stored yet, is among what differs.
        let mut gone = mem::take(&mut self.gone);
        gone.append(&mut mem::take(&mut self.dirty));
        gone.extend(mem::take(&mut self.objects).into_keys());
        self.forget();
        (self.gone, self.head) = (gone, head);
        self.changes = Changes::new(self.head.changes);
        if is_empty {
            self.begin();
        }
        true
    }

    fn install(&mut self, items: &Bytes, store: &mut Store<'_>) -> bool {
        let Some(items) = keys::read::<Vec<(Bytes, M::Object)>>(items) else { return false };
        let count = GONE * items.len();
        for (key, object) in items {
            self.gone.remove(&key);
            store.write(keys::object(self.group, &key), Some(keys::encode(&object)));
            self.objects.insert(key, object);
        }
        self.remove_gone(count, store);
        true
    }

    fn clear_away(&mut self, store: &mut Store<'_>) -> bool {
        if mutant!("smr_clears_in_one_turn") || mutant!("smr_leaves_what_is_gone") {
            return true;
        }
        self.remove_gone(CLEARED, store);
        self.gone.is_empty()
    }

    fn end_install(&mut self, op: Op, store: &mut Store<'_>) {
        // All of it where there is no copy: the machine begins anew.
        let goes = !mutant!("smr_leaves_what_is_gone");
        self.remove_gone(if goes { self.gone.len() } else { 0 }, store);
        self.store(op, 0, store);
    }
}
