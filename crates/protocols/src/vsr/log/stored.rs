//! The log of one group: what is appended, read, cut off at the end and let go of at the begin.
//!
//! This file alone knows how a log is stored: in the log of the lane that has the group's number
//! ([`quorate_kernel::entries`]), an entry at its op. A log in the store never begins earlier than
//! it did, but ops are counted anew by who begins as one that has nothing. So an index is an op
//! and, above it, how often that has happened. The newest entries are also in memory, because a
//! handler does not see in the store what was written in the same input.

use super::entry::Entry;
use super::sizes::Sizes;
use crate::vsr::action::Action;
use crate::vsr::keys::Head;
use crate::vsr::number::{Op, Position, ViewNumber};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::entries::{self, Place};
use quorate_kernel::ids::{GroupId, LogId, LogIndex};
use quorate_kernel::invariant;
use quorate_kernel::limits::{VSR_OPS_MAX, VSR_TAIL_BYTES_MAX};
use quorate_kernel::process::Table;
use quorate_kernel::storage::Class;

/// Of an index, the bits of the op.
const OP_BITS: u32 = 48;
const OP_MASK: u64 = (1 << OP_BITS) - 1;
/// Into how many parts the bytes that are kept are counted.
const STEPS: usize = 64;
/// The most times that ops may be counted anew.
const LIVES_MAX: u64 = (1 << (64 - OP_BITS)) - 2;

const _: () = assert!(VSR_OPS_MAX < OP_MASK, "an index has room for each op");

/// A group's log. Positions are ops; the first entry is behind the base.
#[derive(Debug)]
pub struct Log {
    log: LogId,
    /// How often ops were counted anew here.
    life: u64,
    base: Position,
    end: Op,
    /// The newest entries, without a gap up to the end.
    tail: VecDeque<Entry>,
    tail_bytes: usize,
    sizes: Sizes,
    /// Where each run of entries of one view begins, ascending; the base is the first.
    views: VecDeque<Position>,
    /// The newest entry that changes the members.
    members_at: Option<Position>,
}

impl Log {
    /// A log without entries, of which about `kept` bytes are to be kept.
    pub fn new(group: GroupId, kept: usize) -> Log {
        Log {
            log: LogId(group.0),
            life: 0,
            base: Position::default(),
            end: Op(0),
            tail: VecDeque::new(),
            tail_bytes: 0,
            sizes: Sizes::new(kept / STEPS),
            views: VecDeque::from([Position::default()]),
            members_at: None,
        }
    }

    /// Goes on where the log in the store begins, also if nothing else is known of the group.
    pub fn open(&mut self, table: &dyn Table) {
        invariant!(self.end == Op(0), "a log is opened before it has entries");
        let first = table.get(Class::Log, &entries::log_key(self.log));
        let first = first.and_then(|first| entries::first(&first)).unwrap_or_default();
        self.life = first.0 >> OP_BITS;
    }

    /// Reads the log back. An entry counts if none is missing before it, none before it is of a
    /// later view, and if it is not behind the end of the last view's log unless it is of that
    /// view. Others are deleted.
    pub fn load(&mut self, head: &Head, table: &dyn Table, out: &mut Vec<Action>) {
        invariant!(self.end == Op(0), "a log is read once");
        self.set_base(head.base);
        let mut junk = Vec::new();
        table.scan(Class::Log, &self.key(head.base.op.next()), &mut |key, value| {
            let index = match entries::place(key) {
                Some(Place::Entry(log, index)) if log == self.log => index,
                _ => return false,
            };
            if index.0 >> OP_BITS != self.life {
                return false;
            }
            let op = Op(index.0 & OP_MASK);
            let entry = Entry::from_stored(value);
            let is_of_view = op <= head.end || entry.view == head.normal;
            let is_next = op == self.end.next() && entry.view >= self.last().view;
            if is_next && is_of_view {
                self.push(entry);
                self.evict();
            } else {
                junk.push(op);
            }
            true
        });
        junk.into_iter().for_each(|op| self.delete(op, out));
    }

    /// Where it ends.
    pub fn end(&self) -> Op {
        self.end
    }

    /// The last entry that is not in it any more.
    pub fn base(&self) -> Position {
        self.base
    }

    /// Where it ends, and the view of the entry there.
    pub fn last(&self) -> Position {
        let view = self.views.back().expect("the base is there").view;
        Position { op: self.end, view }
    }

    /// The newest entry in it that changes the members.
    pub fn members_at(&self) -> Option<Position> {
        self.members_at
    }

    /// The view of an entry, from the base on.
    pub fn view_at(&self, op: Op) -> Option<ViewNumber> {
        if op < self.base.op || op > self.end {
            return None;
        }
        let behind = self.views.partition_point(|run| run.op <= op);
        Some(self.views[behind - 1].view)
    }

    /// The last entry behind which there are about so many bytes.
    pub fn before_bytes(&self, bytes: usize) -> Op {
        self.sizes.before(bytes).unwrap_or(self.base.op)
    }

    /// Whether it has this very entry, and so all before it.
    pub fn has(&self, position: Position) -> bool {
        self.view_at(position.op) == Some(position.view)
    }

    /// Appends an entry.
    pub fn append(&mut self, entry: Entry, out: &mut Vec<Action>) {
        invariant!(entry.view >= self.last().view, "views only rise in a log");
        out.push(write(self.key(self.end.next()), Some(entry.stored())));
        self.push(entry);
    }

    /// Cuts off what is behind `last`.
    pub fn truncate(&mut self, last: Op, out: &mut Vec<Action>) {
        invariant!(last >= self.base.op, "what the log let go of was committed");
        while self.end > last {
            self.delete(self.end, out);
            if let Some(entry) = self.tail.pop_back() {
                self.tail_bytes -= entry.size();
            }
            self.end = self.end.before();
        }
        self.sizes.truncate(last);
        while self.views.len() > 1 && self.views.back().is_some_and(|run| run.op > last) {
            self.views.pop_back();
        }
        self.members_at = self.members_at.filter(|at| at.op <= last);
    }

    /// Lets go of entries up to `upto`. The base is part of the head.
    pub fn trim(&mut self, upto: Op, out: &mut Vec<Action>) {
        invariant!(upto <= self.end, "a log ends behind its base");
        let Some(view) = self.view_at(upto).filter(|_| upto > self.base.op) else { return };
        self.begin_behind(upto, out);
        self.evict_to(self.tail_from().0.max(upto.0 + 1));
        self.sizes.trim(upto);
        while self.views.get(1).is_some_and(|run| run.op <= upto) {
            self.views.pop_front();
        }
        self.base = Position { op: upto, view };
        self.views[0] = self.base;
    }

    /// Drops everything: the log begins anew behind `base`.
    pub fn reset(&mut self, base: Position, out: &mut Vec<Action>) {
        if base.op < self.end {
            self.life += 1;
            invariant!(self.life <= LIVES_MAX, "an index has room for each time");
        }
        self.begin_behind(base.op, out);
        self.tail.clear();
        self.tail_bytes = 0;
        self.sizes.truncate(Op(0));
        self.members_at = None;
        self.set_base(base);
    }

    /// An entry; it must be there.
    pub fn get(&self, op: Op, table: &dyn Table) -> Entry {
        invariant!(op > self.base.op && op <= self.end, "entry {op:?} is not in the log");
        let from = self.tail_from();
        if op >= from {
            return self.tail[(op.0 - from.0) as usize].clone();
        }
        let stored = table.get(Class::Log, &self.key(op));
        Entry::from_stored(&stored.expect("an entry that is not in memory is stored"))
    }

    /// Entries from `from` to `upto`, at most so many and about so many bytes, at least one if it
    /// is there.
    pub fn read(
        &self,
        from: Op,
        upto: Op,
        (count, bytes): (usize, usize),
        table: &dyn Table,
    ) -> Vec<Entry> {
        let (mut entries, mut size) = (Vec::new(), 0);
        for op in from.0..=upto.0.min(self.end.0) {
            let entry = self.get(Op(op), table);
            size += entry.size();
            if !entries.is_empty() && (size > bytes || entries.len() >= count) {
                break;
            }
            entries.push(entry);
        }
        entries
    }

    /// Lets go of what memory has too much of. Only between inputs: what is read after it is in
    /// the store.
    pub fn evict(&mut self) {
        let mut rest = self.tail_bytes;
        let fits = |entry: &&Entry| {
            let is_over = rest > VSR_TAIL_BYTES_MAX;
            rest -= entry.size();
            is_over
        };
        let count = self.tail.iter().take_while(fits).count();
        self.evict_to(self.tail_from().0 + count as u64);
    }

    /// Asserts that its parts fit each other.
    pub fn check(&self) {
        invariant!(self.base.op <= self.end, "a log ends behind its base");
        invariant!(
            self.tail.len() as u64 <= self.end.since(self.base.op),
            "the tail is of the log"
        );
        invariant!(self.views.front() == Some(&self.base), "the runs begin with the base");
        let first = self.tail.front().map(|entry| entry.view);
        let kept = self.view_at(self.tail_from()).filter(|_| !self.tail.is_empty());
        invariant!(first == kept, "the runs tell the views of the entries");
    }

    fn set_base(&mut self, base: Position) {
        self.base = base;
        self.end = base.op;
        self.views = VecDeque::from([base]);
    }

    fn push(&mut self, entry: Entry) {
        self.end = self.end.next();
        if entry.view != self.last().view {
            self.views.push_back(Position { op: self.end, view: entry.view });
        }
        if entry.new_members().is_some() {
            self.members_at = Some(Position { op: self.end, view: entry.view });
        }
        self.tail_bytes += entry.size();
        self.sizes.push(self.end, entry.size());
        self.tail.push_back(entry);
    }

    /// The place of the first entry in memory.
    fn tail_from(&self) -> Op {
        Op(self.end.0 + 1 - self.tail.len() as u64)
    }

    fn evict_to(&mut self, from: u64) {
        while self.tail_from().0 < from
            && let Some(entry) = self.tail.pop_front()
        {
            self.tail_bytes -= entry.size();
        }
    }

    fn delete(&self, op: Op, out: &mut Vec<Action>) {
        out.push(write(self.key(op), None));
    }

    /// Gives up what the store has of this log up to `base`, and of its earlier lives.
    fn begin_behind(&self, base: Op, out: &mut Vec<Action>) {
        let first = entries::trim(self.index(base.next()));
        out.push(write(entries::log_key(self.log), Some(first)));
    }

    fn index(&self, op: Op) -> LogIndex {
        invariant!(op.0 <= OP_MASK, "ops are bounded");
        LogIndex(self.life << OP_BITS | op.0)
    }

    fn key(&self, op: Op) -> Bytes {
        entries::key(self.log, self.index(op))
    }
}

fn write(key: Bytes, value: Option<Bytes>) -> Action {
    Action::Write { class: Class::Log, key, value }
}
