//! What a world is made of: a disk, replicas, and a group with its log.

use crate::serializable::{Entry, Member, State};
use crate::vsr::{self, Store};
use bytes::Bytes;
use quorate_kernel::ids::{GroupId, Ticket};
use quorate_kernel::process::Table;
use quorate_kernel::storage::Class;
use std::collections::BTreeMap;
use std::format;
use std::string::String;
use std::vec::Vec;

/// How many replicas a group has.
pub const REPLICAS: usize = 3;

/// A lane's bytes.
#[derive(Default)]
pub struct Disk(pub BTreeMap<Bytes, Bytes>);

impl Table for Disk {
    fn get(&self, _class: Class, key: &Bytes) -> Option<Bytes> {
        self.0.get(key).cloned()
    }

    fn scan(&self, _class: Class, from: &[u8], each: &mut dyn FnMut(&[u8], &Bytes) -> bool) {
        for (key, value) in self.0.range(Bytes::copy_from_slice(from)..) {
            if !each(key, value) {
                return;
            }
        }
    }
}

impl Disk {
    /// Calls a machine; what it writes is there afterwards.
    pub fn call<T>(&mut self, call: impl FnOnce(&mut Store<'_>) -> T) -> T {
        let mut out = Vec::new();
        let answer = call(&mut Store::new(&*self, &mut out));
        for action in out {
            match action {
                vsr::Action::Write { key, value: Some(value), .. } => _ = self.0.insert(key, value),
                vsr::Action::Write { key, value: None, .. } => _ = self.0.remove(&key),
                other => panic!("a machine only writes, and does not {other:?}"),
            }
        }
        answer
    }
}

/// One replica of a group.
pub struct Replica {
    pub state: State,
    pub member: Member,
    pub disk: Disk,
    /// How many entries it has executed.
    pub applied: usize,
    /// How far its wall clock is ahead of time.
    pub skew_ms: i64,
    /// Whether a copy is under way.
    pub is_copying: bool,
}

/// One group.
pub struct Group {
    pub id: GroupId,
    pub log: Vec<Bytes>,
    /// How often it has lost something.
    pub life: u64,
    /// What the primary has proposed and nobody has committed.
    pub tail: Vec<Bytes>,
    pub primary: usize,
    pub replicas: Vec<Replica>,
    /// Reads that are not confirmed.
    pub confirms: Vec<Ticket>,
    /// Whether the log takes nothing.
    pub is_full: bool,
}

impl Group {
    pub fn new(id: GroupId) -> Group {
        let replica = || Replica {
            state: State::new(id),
            member: Member::default(),
            disk: Disk::default(),
            applied: 0,
            skew_ms: 0,
            is_copying: false,
        };
        Group {
            id,
            log: Vec::new(),
            life: 0,
            tail: Vec::new(),
            primary: 0,
            replicas: (0..REPLICAS).map(|_| replica()).collect(),
            confirms: Vec::new(),
            is_full: false,
        }
    }
}

/// An entry in short.
pub fn show(entry: &Entry) -> String {
    match entry {
        Entry::Prepared(prepared) => {
            let vote = match &prepared.vote {
                Ok(share) => {
                    let (shared, exclusive) = (&share.shared, &share.exclusive);
                    format!("yes, shared {shared:?}, exclusive {exclusive:?}")
                }
                Err(cause) => format!("no, {cause:?}"),
            };
            format!("Prepared {:?} seq {} {vote}", prepared.rank.tx, prepared.seq.0)
        }
        other => format!("{other:?}"),
    }
}
