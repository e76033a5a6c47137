//! The log of dots: which updates a host has seen, and of which keys, until all replicas have.
//!
//! What a turn has seen for the first time, at all replicas of the host, is one entry of one log
//! ([`quorate_kernel::entries`]), in the batch of the objects. From its entries clocks, the dot-key
//! map and contexts are put together after a restart.
//!
//! Entries are given up from the first on, once none of their dots is in the dot-key map. What only
//! they said of clocks is written before, in the same batch; what they said of contexts, when the
//! dot left the map. A dot that has left it may be back after a restart, as its entry is still
//! there: every replica has seen it, so it leaves again. Where a few dots are needed for long, as a
//! replica is away, they would keep all entries behind them: once most dots of the log are not
//! needed, those that are and stand first are written anew, at its end.

use super::replica::Replica;
use super::strip::PAGE_KEYS;
use crate::causal::keys::{DOTS, add_dot, dots_of, empty_entry};
use crate::causal::{Causal, Context};
use crate::dots::context::CausalContext;
use crate::dots::dot::Dot;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::entries;
use quorate_kernel::ids::LogIndex;
use quorate_kernel::mutant;
use quorate_kernel::probe;
use quorate_kernel::process::Table;
use quorate_kernel::storage::Class;
use quorate_kernel::write::WriteId;

/// How many dots that are not needed the log may have beside as many as are needed.
pub(crate) const SPARE_DOTS: usize = 1 << 16;

/// What of the log is not given up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DotLog {
    /// The first entry.
    first: LogIndex,
    /// The next one to be written.
    next: LogIndex,
    /// Whether dots are being written anew.
    is_moving: bool,
}

impl DotLog {
    /// What the store has of the log: hands each dot on with its entry and its replica's part.
    pub fn recover(table: &dyn Table, each: &mut dyn FnMut(LogIndex, LoggedDot)) -> DotLog {
        let first = table.get(Class::Log, &entries::log_key(DOTS));
        let first = first.and_then(|first| entries::first(&first)).unwrap_or_default();
        let mut next = first;
        table.scan(Class::Log, &entries::key(DOTS, first), &mut |key, value| {
            let Some(entries::Place::Entry(DOTS, index)) = entries::place(key) else {
                return false;
            };
            next = LogIndex(index.0 + 1);
            dots_of(value).into_iter().for_each(|dot| each(index, dot));
            true
        });
        DotLog { first, next, is_moving: false }
    }
}

/// A dot as the log has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoggedDot {
    /// The part of the store of the replica that has seen it.
    pub part: u32,
    /// The dot.
    pub dot: Dot,
    /// The key that it updated.
    pub key: Bytes,
    /// The context that the object had then, if the dot brought it.
    pub context: CausalContext,
    /// The write's name, if it has one.
    pub name: Option<WriteId>,
}

/// What one replica has in the log.
#[derive(Debug, Default)]
pub(crate) struct LoggedDots {
    /// The dots of entries that were not given up, oldest first, whether needed or not.
    written: VecDeque<(LogIndex, Dot)>,
    /// What this turn adds.
    fresh: Vec<Dot>,
    fresh_bytes: Vec<u8>,
}

impl LoggedDots {
    /// The store has a dot in this entry.
    pub fn find(&mut self, index: LogIndex, dot: Dot) {
        self.written.push_back((index, dot));
    }

    /// How many dots there are, needed or not.
    pub fn len(&self) -> usize {
        self.written.len() + self.fresh.len()
    }

    /// Whether the entry that this turn has to write was written.
    pub fn is_written(&self) -> bool {
        self.fresh.is_empty()
    }

    fn end_turn(&mut self, index: LogIndex, entry: &mut Vec<u8>) {
        entry.append(&mut self.fresh_bytes);
        self.written.extend(self.fresh.drain(..).map(|dot| (index, dot)));
    }
}

impl Replica {
    /// A dot is in the entry that this turn writes.
    pub(super) fn log_dot(&mut self, dot: Dot, key: &Bytes, context: &CausalContext) {
        let (name, logged) = (self.dot_keys.name(dot), &mut self.logged);
        let bytes = core::mem::take(&mut logged.fresh_bytes);
        logged.fresh_bytes = add_dot(self.part, (dot, key), (context, name), bytes);
        logged.fresh.push(dot);
    }

    /// The first entry of the log that has a dot which is needed.
    fn first_needed(&mut self) -> Option<LogIndex> {
        while let Some((index, dot)) = self.logged.written.front() {
            if self.dot_keys.get(*dot).is_some() && !mutant!("needed_dots_are_given_up") {
                return Some(*index);
            }
            self.logged.written.pop_front();
        }
        None
    }

    /// What of an entry is needed is written anew. Returns how many dots were looked at.
    fn move_dots(&mut self, first: LogIndex, cx: &mut Context<'_>) -> usize {
        let mut looked = 0;
        while let Some((at, dot)) = self.logged.written.front().copied()
            && at <= first
        {
            self.logged.written.pop_front();
            looked += 1;
            let Some(key) = self.dot_keys.get(dot).cloned() else { continue };
            probe!("causal/dot_moved");
            self.keep_beside(&key, cx);
            if !mutant!("moved_dot_is_lost") {
                self.log_dot(dot, &key, &CausalContext::default());
            }
        }
        looked
    }
}

impl Causal {
    /// The turn ends: what it has seen for the first time is one entry.
    pub(crate) fn write_dots(&mut self, cx: &mut Context<'_>) {
        let (mut entry, next) = (Vec::new(), self.durable.dots.next);
        for replica in self.durable.with_leaving().filter(|one| !one.logged.is_written()) {
            if entry.is_empty() {
                entry = empty_entry();
            }
            replica.logged.end_turn(next, &mut entry);
        }
        if !entry.is_empty() {
            cx.fx.put_entry(DOTS, next, entry.into());
            self.durable.dots.next = LogIndex(next.0 + 1);
        }
    }

    /// Gives up the entries of the log of which no dot is needed.
    pub(crate) fn trim_dots(&mut self, cx: &mut Context<'_>) {
        let DotLog { first, next, .. } = self.durable.dots;
        let needed = self.durable.with_leaving().filter_map(Replica::first_needed).min();
        let needed = needed.unwrap_or(next);
        if needed > first {
            for replica in self.durable.with_leaving() {
                if !mutant!("clock_goes_with_dot") {
                    replica.save();
                }
                replica.flush(cx);
            }
            cx.fx.trim_log(DOTS, needed);
            self.durable.dots.first = needed;
        }
        self.durable.dots.is_moving = self.is_sparse();
    }

    /// Whether most dots of the log are not needed.
    fn is_sparse(&mut self) -> bool {
        let spare = self.settings.limits.spare_dots;
        let counts = self.durable.with_leaving().map(|one| (one.logged.len(), one.dot_keys.len()));
        let (logged, needed) = counts.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        logged > 2 * needed + spare
    }

    /// Whether dots are to be written anew.
    pub(crate) fn is_moving_dots(&self) -> bool {
        self.durable.dots.is_moving
    }

    /// Writes some of the dots anew that stand first and are needed, if most are not.
    pub(crate) fn move_dots(&mut self, cx: &mut Context<'_>) {
        let mut looked = 0;
        while self.durable.dots.is_moving && looked < PAGE_KEYS {
            let fronts = self.durable.with_leaving();
            let fronts = fronts.filter_map(|one| one.logged.written.front().map(|(at, _)| *at));
            let Some(first) = fronts.min() else { break };
            let replicas = self.durable.with_leaving();
            looked += replicas.map(|replica| replica.move_dots(first, cx)).sum::<usize>();
            self.durable.dots.is_moving = self.is_sparse();
        }
    }
}
