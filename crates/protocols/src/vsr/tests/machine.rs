//! A machine of registers with a table of clients, as fuzzy in its copies as a machine may be.

use crate::vsr::{Machine, Op, Page, Store, Stored};
use bytes::Bytes;
use quorate_kernel::process::Table;
use quorate_kernel::storage::Class;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::vec::Vec;

/// How many registers there are.
pub const KEYS: u8 = 12;
/// How many of them are in one page, and are written at a time.
const PAGE: usize = 3;

/// Names a request of a client: the client, and the number of the request.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Request {
    pub client: u32,
    pub number: u32,
}

/// A client writes its request's name into a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    pub request: Request,
    pub key: u8,
}

impl Command {
    pub fn bytes(self) -> Bytes {
        postcard::to_allocvec(&self).expect("plain data").into()
    }

    /// A peer gone wrong may have brought any bytes.
    pub fn of(bytes: &Bytes) -> Option<Command> {
        postcard::from_bytes(bytes).ok()
    }
}

/// What a register holds: who has written it last, how often it was written, and the entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Register {
    pub last: Request,
    pub count: u64,
    pub op: Op,
}

/// The highest request of each client that was done.
type Clients = BTreeMap<u32, u32>;

/// What was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Executed {
    pub op: Op,
    pub command: Command,
    /// Not if it was a repeated request.
    pub is_done: bool,
}

/// The machine.
#[derive(Default)]
pub struct Registers {
    pub items: BTreeMap<u8, Register>,
    pub clients: Clients,
    /// What was executed since this was last emptied.
    pub executed: Vec<Executed>,
    dirty: BTreeSet<u8>,
    stored: Op,
    /// What is being written down: up to which entry, the clients then, and what is left.
    pass: Option<(Op, Clients, BTreeSet<u8>)>,
}

const HEAD: Bytes = Bytes::from_static(b"head");
const NEWEST: Bytes = Bytes::from_static(b"newest");

fn item(key: u8) -> Bytes {
    Vec::from([b'i', key]).into()
}

fn encode<T: Serialize>(value: &T) -> Bytes {
    postcard::to_allocvec(value).expect("plain data").into()
}

fn decode<T: for<'a> Deserialize<'a>>(bytes: &Bytes) -> T {
    postcard::from_bytes(bytes).expect("it was written by this machine")
}

impl Registers {
    fn write_newest(&self, newest: Op, store: &mut Store<'_>) {
        store.write(NEWEST, Some(encode(&newest)));
    }
}

impl Machine for Registers {
    fn is_command(&mut self, command: &Bytes) -> bool {
        Command::of(command).is_some()
    }

    fn apply(&mut self, op: Op, command: &Bytes, _store: &mut Store<'_>) {
        let command = Command::of(command).expect("only what can be read is put into the log");
        let done = self.clients.entry(command.request.client).or_default();
        let is_done = command.request.number > *done;
        self.executed.push(Executed { op, command, is_done });
        if !is_done {
            return;
        }
        *done = command.request.number;
        let register = self.items.entry(command.key).or_default();
        // A copy, or what was stored, may be newer than the rest.
        if register.op < op {
            *register = Register { last: command.request, count: register.count + 1, op };
            self.dirty.insert(command.key);
        }
    }

    fn unstored(&self) -> usize {
        self.dirty.len() * size_of::<Register>()
    }

    fn load(&mut self, store: &mut Store<'_>) -> Stored {
        let table = store.table;
        let get = |key: &Bytes| table.get(Class::Data, key);
        let (whole, clients): (Op, Clients) =
            get(&HEAD).map(|bytes| decode(&bytes)).unwrap_or_default();
        let newest: Op = get(&NEWEST).map(|bytes| decode(&bytes)).unwrap_or_default();
        self.clients = clients;
        for key in 0..KEYS {
            if let Some(bytes) = get(&item(key)) {
                self.items.insert(key, decode(&bytes));
            }
        }
        self.stored = whole;
        Stored { whole, newest: newest.max(whole) }
    }

    fn store(&mut self, applied: Op, _bytes_max: usize, store: &mut Store<'_>) {
        if self.pass.is_none() {
            self.pass = Some((applied, self.clients.clone(), mem::take(&mut self.dirty)));
        }
        self.write_newest(applied, store);
        let Some((op, clients, left)) = &mut self.pass else { return };
        for _ in 0..PAGE {
            let Some(key) = left.pop_first() else { break };
            store.write(item(key), Some(encode(&self.items[&key])));
        }
        if left.is_empty() {
            self.stored = *op;
            store.write(HEAD, Some(encode(&(*op, &*clients))));
            self.pass = None;
        }
    }

    fn stored(&self) -> Op {
        self.stored
    }

    fn head(&mut self, _at: Op) -> Bytes {
        encode(&self.clients)
    }

    fn page(&self, _at: Op, cursor: &Bytes, _bytes_max: usize, _table: &dyn Table) -> Option<Page> {
        let from = cursor.first().copied().unwrap_or_default();
        let items: Vec<(u8, Register)> =
            self.items.range(from..).take(PAGE).map(|(key, item)| (*key, *item)).collect();
        let last = items.last().map(|(key, _)| *key);
        let next =
            last.filter(|_| items.len() == PAGE).map(|key| Bytes::from(Vec::from([key + 1])));
        Some(Page { items: encode(&items), next })
    }

    fn begin_install(&mut self, _op: Op, head: &Bytes, store: &mut Store<'_>) -> bool {
        let clients = if head.is_empty() { Ok(Clients::new()) } else { postcard::from_bytes(head) };
        let Ok(clients) = clients else { return false };
        self.items.clear();
        self.clients = clients;
        self.dirty.clear();
        self.pass = None;
        self.stored = Op(0);
        (0..KEYS).for_each(|key| store.write(item(key), None));
        store.write(HEAD, None);
        store.write(NEWEST, None);
        true
    }

    fn install(&mut self, items: &Bytes, store: &mut Store<'_>) -> bool {
        let Ok(items) = postcard::from_bytes::<Vec<(u8, Register)>>(items) else { return false };
        for (key, register) in items {
            store.write(item(key), Some(encode(&register)));
            self.items.insert(key, register);
        }
        true
    }

    fn end_install(&mut self, op: Op, store: &mut Store<'_>) {
        self.stored = op;
        store.write(HEAD, Some(encode(&(op, &self.clients))));
        self.write_newest(op, store);
    }
}
