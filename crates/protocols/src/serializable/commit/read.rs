//! Reads that write no log, and the commit of transactions that only read.
//!
//! A strict read is answered with what is there after the replica has confirmed that it still
//! leads. A key that a transaction holds exclusively may have been changed by a decision that its
//! client knows already, so whoever reads it waits for that.

use super::load::{Loaded, load_executed};
use crate::serializable::engine::{Action, Context};
use crate::serializable::execute::entry::{Dropped, Entry};
use crate::serializable::execute::items::Stored;
use crate::serializable::message::{Refused, Reply};
use crate::serializable::moves::places::bucket_of;
use crate::serializable::number::Version;
use crate::serializable::primary::in_hand::Primary;
use crate::serializable::raw::Raw;
use crate::serializable::rules::{
    self, BYTES_MAX, IN_HAND_BYTES_MAX, IN_HAND_MAX, KEYS_MAX, SWEEP_KEYS_MAX,
};
use crate::serializable::sound::is_key;
use crate::serializable::timer::READ;
use crate::vsr::Op;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::Ticket;
use quorate_kernel::limits::VSR_PAGE_BYTES_MAX;
use quorate_kernel::mutant;
use quorate_kernel::time::Time;

/// A read in hand.
#[derive(Clone, Debug)]
pub struct Reading {
    /// What was asked.
    pub asked: ReadRequest,
    /// How many bytes its keys are.
    pub bytes: usize,
    /// Whether the node has led after it was asked.
    pub is_confirmed: bool,
    /// When it was asked.
    pub since: Time,
    /// The key that it waits for.
    pub waits_for: Option<Raw>,
}

/// What a read asks for.
#[derive(Clone, Debug)]
pub enum ReadRequest {
    /// What keys have.
    Keys(Vec<Raw>),
    /// Whether versions are current.
    Versions(BTreeMap<Raw, Version>),
}

/// Keys as this replica has them.
pub fn read_any(ticket: Ticket, keys: &[Raw], cx: &mut Context<'_>) {
    if let Err(refused) = check_keys(keys.iter()) {
        return cx.refuse(ticket, refused);
    }
    if !cx.is_settled && !mutant!("txn_shows_half_a_copy") {
        return cx.refuse(ticket, Refused::NotReady);
    }
    if !keys.iter().all(|key| cx.state.has(key)) {
        return cx.refuse(ticket, Refused::Moved);
    }
    // Who is told that it is committed may be told before it is done here, and for long.
    let is_locked = keys.iter().any(|key| cx.state.locks.is_exclusive(key));
    if is_locked && !mutant!("txn_any_skips_lock") {
        return cx.refuse(ticket, Refused::NotReady);
    }
    let loaded = load_executed(keys.iter(), cx);
    let is_over = |loaded: &Loaded| loaded.values().any(|item| item.is_expired(cx.wall));
    if loaded.as_ref().is_ok_and(is_over) && !mutant!("txn_any_shows_what_has_expired") {
        // The primary removes it.
        return cx.refuse(ticket, Refused::NotReady);
    }
    match loaded.and_then(|loaded| loaded.show(keys)) {
        Ok(items) => cx.reply(ticket, Reply::Items(items)),
        Err(too_large) => cx.refuse(ticket, too_large.into()),
    }
}

/// Answers how many bytes the keys are.
fn check_keys<'a>(keys: impl ExactSizeIterator<Item = &'a Raw> + Clone) -> Result<usize, Refused> {
    let count = keys.len();
    if count == 0 {
        return Err(Refused::Empty);
    }
    if count > KEYS_MAX {
        return Err(Refused::TooManyKeys { keys: count, keys_max: KEYS_MAX });
    }
    let bytes_max = rules::ITEM_KEY_BYTES_MAX;
    let mut lengths = keys.map(|key| key.len());
    let bytes = lengths.clone().sum();
    match lengths.find(|bytes| *bytes == 0 || *bytes > bytes_max) {
        Some(bytes) => Err(Refused::KeyLength { bytes, bytes_max }),
        None if bytes > BYTES_MAX => Err(Refused::TooLarge { bytes, bytes_max: BYTES_MAX }),
        None => Ok(bytes),
    }
}

impl Primary {
    /// A client reads.
    pub(crate) fn on_read(&mut self, ticket: Ticket, keys: Vec<Raw>, cx: &mut Context<'_>) {
        match check_keys(keys.iter()) {
            Ok(bytes) => self.confirm(ticket, (ReadRequest::Keys(keys), bytes), cx),
            Err(refused) => cx.refuse(ticket, refused),
        }
    }

    /// A client commits what it has only read. If at the moment when its last read was answered
    /// all versions were current, they still are, or somebody holds a key exclusively since then,
    /// or one has changed: versions never come back.
    pub(crate) fn on_check(
        &mut self,
        ticket: Ticket,
        reads: BTreeMap<Raw, Version>,
        cx: &mut Context<'_>,
    ) {
        match check_keys(reads.keys()) {
            Ok(bytes) => self.confirm(ticket, (ReadRequest::Versions(reads), bytes), cx),
            Err(refused) => cx.refuse(ticket, refused),
        }
    }

    fn confirm(
        &mut self,
        ticket: Ticket,
        (asked, bytes): (ReadRequest, usize),
        cx: &mut Context<'_>,
    ) {
        if self.reads.len() >= IN_HAND_MAX || self.read_bytes >= IN_HAND_BYTES_MAX {
            return cx.refuse(ticket, Refused::Busy);
        }
        self.drop_read(ticket);
        self.read_bytes += bytes;
        let (since, is_confirmed, waits_for) = (cx.now, false, None);
        self.reads.insert(ticket, Reading { asked, bytes, is_confirmed, since, waits_for });
        cx.out.push(Action::Confirm(ticket));
    }

    /// The replica does not say whether it leads: somebody else may.
    pub fn not_confirmed(&mut self, ticket: Ticket, cx: &mut Context<'_>) {
        if self.drop_read(ticket) {
            cx.refuse(ticket, Refused::Busy);
        }
    }

    fn drop_read(&mut self, ticket: Ticket) -> bool {
        let Some(reading) = self.reads.remove(&ticket) else { return false };
        self.read_bytes -= reading.bytes;
        if let Some(key) = reading.waits_for
            && let Some(waiting) = self.blocked.get_mut(&key)
        {
            waiting.remove(&ticket);
            if waiting.is_empty() {
                self.blocked.remove(&key);
            }
        }
        true
    }

    /// Gives up reads that wait for too long. Who holds a key until another group answers may hold
    /// it for as long as that group is gone.
    pub(crate) fn tick_reads(&mut self, cx: &mut Context<'_>) {
        let is_late = |reading: &Reading| cx.now - reading.since >= READ;
        let late = self.reads.iter().filter(|(_, reading)| is_late(reading));
        let late: Vec<(Ticket, Option<Raw>)> =
            late.map(|(ticket, reading)| (*ticket, reading.waits_for.clone())).collect();
        for (ticket, waits_for) in late.into_iter().filter(|_| !mutant!("txn_reads_wait_on")) {
            self.drop_read(ticket);
            cx.refuse(ticket, waits_for.map_or(Refused::Busy, |key| Refused::Held { key }));
        }
    }

    /// The node has led after the question, and what was committed until then is executed.
    pub(crate) fn on_readable(&mut self, ticket: Ticket, cx: &mut Context<'_>) {
        if let Some(reading) = self.reads.get_mut(&ticket) {
            reading.is_confirmed = true;
            self.try_read(ticket, cx);
        }
    }

    /// Answers a read, unless it has to wait for a key.
    pub(crate) fn try_read(&mut self, ticket: Ticket, cx: &mut Context<'_>) {
        let Some(reading) = self.reads.get_mut(&ticket).filter(|it| it.is_confirmed) else {
            return;
        };
        reading.waits_for = None;
        let reading = reading.clone();
        let misplaced = match &reading.asked {
            ReadRequest::Keys(keys) => self.misplaced(keys.iter(), cx),
            ReadRequest::Versions(reads) => self.misplaced(reads.keys(), cx),
        };
        if let Some(refused) = misplaced {
            self.drop_read(ticket);
            return cx.refuse(ticket, refused);
        }
        let loaded = match &reading.asked {
            ReadRequest::Keys(keys) => load_executed(keys.iter(), cx),
            ReadRequest::Versions(reads) => load_executed(reads.keys(), cx),
        };
        let reply = match (&reading.asked, loaded) {
            (_, Err(too_large)) => Reply::Refused(too_large.into()),
            (ReadRequest::Keys(keys), Ok(loaded)) => {
                let may_expire = self.may_propose() || mutant!("txn_reads_expire_all");
                if may_expire {
                    self.expire_executed(loaded.iter(), cx);
                }
                if let Some((key, _)) = loaded.iter().find(|(key, it)| self.hides(key, it, cx)) {
                    if !may_expire {
                        // It is looked at again when there is room.
                        self.crowded.insert(key.clone());
                    }
                    return self.wait(ticket, key);
                }
                self.show(keys, loaded)
            }
            (ReadRequest::Versions(reads), Ok(loaded)) => {
                let is_current = |key: &Raw, version: Version| {
                    let is_free =
                        !cx.state.locks.is_exclusive(key) || mutant!("txn_check_skips_lock");
                    is_free && loaded[key].version == version
                };
                match reads.iter().find(|(key, version)| !is_current(key, **version)) {
                    Some((key, _)) => Reply::Changed { key: key.clone() },
                    None => Reply::Current,
                }
            }
        };
        self.drop_read(ticket);
        cx.reply(ticket, reply);
    }

    fn wait(&mut self, ticket: Ticket, key: &Raw) {
        let reading = self.reads.get_mut(&ticket).expect("only what is in hand waits");
        reading.waits_for = Some(key.clone());
        self.blocked.entry(key.clone()).or_default().insert(ticket);
    }

    fn show(&self, keys: &[Raw], mut loaded: Loaded) -> Reply {
        if mutant!("txn_expired_seen_again") {
            for item in loaded.values_mut().filter(|item| item.is_expired(self.clock)) {
                item.content = None;
            }
        }
        loaded.show(keys).map_or_else(|large| Reply::Refused(large.into()), Reply::Items)
    }

    /// Whether what a key has may not be shown: somebody may have changed it, or its time has
    /// passed and it was not removed yet.
    fn hides(&self, key: &Raw, item: &Stored, cx: &Context<'_>) -> bool {
        let is_locked = cx.state.locks.is_exclusive(key) && !mutant!("txn_read_skips_lock");
        let is_expired = item.is_expired(self.clock)
            && !mutant!("txn_expired_seen_again")
            && !mutant!("txn_expired_is_shown");
        is_locked || is_expired
    }

    /// Removes those of some keys, each told once with what it will have when the tail is executed,
    /// whose time has passed and that nobody holds: these are answered.
    pub(crate) fn expire<'k>(
        &mut self,
        items: impl Iterator<Item = (&'k Raw, &'k Stored)>,
        cx: &mut Context<'_>,
    ) -> Vec<Raw> {
        if mutant!("txn_expired_seen_again") || mutant!("txn_expired_is_shown") {
            return Vec::new();
        }
        let is_held = |key| cx.state.locks.is_held(key) || self.tail.locks.is_held(key);
        let items = items.filter(|(key, item)| item.is_expired(self.clock) && !is_held(key));
        let keys: Vec<_> = items.map(|(key, item)| (key.clone(), item.version)).collect();
        let gone = keys.iter().map(|(key, _)| key.clone()).collect();
        if !keys.is_empty() {
            self.propose(Entry::Expire { clock: self.clock, keys }, cx);
        }
        gone
    }

    /// The same of keys with what they have now. What the tail changes is looked at later.
    fn expire_executed<'k>(
        &mut self,
        items: impl Iterator<Item = (&'k Raw, &'k Stored)>,
        cx: &mut Context<'_>,
    ) -> Vec<Raw> {
        let items: Vec<_> = items.filter(|(key, _)| !self.tail.changes(key)).collect();
        self.expire(items.into_iter(), cx)
    }

    /// Looks at some keys: removes what has expired, and drops tombstones of entries up to one.
    pub(crate) fn sweep(&mut self, from: &Bytes, purge: Op, cx: &mut Context<'_>) {
        if self.is_full() {
            // Where nothing is committed, what was removed already would be removed again.
            return cx.out.push(Action::Swept { next: Some(from.clone()), has_found: false });
        }
        let room = (SWEEP_KEYS_MAX, VSR_PAGE_BYTES_MAX);
        let (mut items, next) = cx.state.items.range(from, room, cx.table);
        // What is longer than a key may be by now stays: no log would take its name.
        items.retain(|(key, _)| is_key(key) || mutant!("txn_sweeps_any_key"));
        let cleared = self.clear(&mut items, cx);
        let ended = self.expire_executed(items.iter().map(|(key, item)| (key, item)), cx);
        let mut keys = Vec::new();
        for (key, item) in items {
            let is_old = item.content.is_none() && item.op <= purge.0;
            let is_held = cx.state.locks.is_held(&key) || self.tail.locks.is_held(&key);
            // All keys would have the last version if the floor rose to that.
            let has_next = item.version.has_next();
            let is_changing = self.tail.changes(&key) || self.tail.purges(&key);
            let is_kept = is_held || is_changing || self.is_asked_for(bucket_of(&key), cx);
            if is_old && has_next && !is_kept {
                keys.push(Dropped { key, version: item.version, removed_at: item.op });
            }
        }
        let has_found = !(ended.is_empty() && keys.is_empty()) || cleared;
        if !keys.is_empty() {
            self.propose(Entry::Purge { keys }, cx);
        }
        cx.out.push(Action::Swept { next: next.map(|key| key.0), has_found });
    }
}
