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
use crate::causal::state::Durable;
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

/// A longer entry is ended, and another one begun.
const ENTRY_BYTES_MAX: usize = 1 << 20;

/// What of the log is not given up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DotLog {
    /// How many dots each entry has, of all replicas, also of those that were given up.
    counts: VecDeque<(LogIndex, usize)>,
    /// How many all entries have together.
    dots: usize,
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
        let mut log = DotLog { first, next: first, ..DotLog::default() };
        table.scan(Class::Log, &entries::key(DOTS, first), &mut |key, value| {
            let Some(entries::Place::Entry(DOTS, index)) = entries::place(key) else {
                return false;
            };
            let dots = dots_of(value);
            log.note(index, dots.len());
            dots.into_iter().for_each(|dot| each(index, dot));
            true
        });
        log
    }

    /// How many dots there are, needed or not.
    pub fn len(&self) -> usize {
        self.dots
    }

    /// An entry has so many dots.
    fn note(&mut self, index: LogIndex, dots: usize) {
        self.counts.push_back((index, dots));
        self.dots += dots;
        self.next = LogIndex(index.0 + 1);
    }

    /// The entries before this one are given up.
    fn give_up(&mut self, to: LogIndex) {
        while let Some((_, dots)) = self.counts.front().filter(|(index, _)| *index < to) {
            self.dots -= dots;
            self.counts.pop_front();
        }
        self.first = to;
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
    /// What this turn adds: each dot, and where it ends among the bytes.
    fresh: Vec<(Dot, usize)>,
    fresh_bytes: Vec<u8>,
}

impl LoggedDots {
    /// The store has a dot in this entry.
    pub fn find(&mut self, index: LogIndex, dot: Dot) {
        self.written.push_back((index, dot));
    }
}

impl Replica {
    /// A dot is in the entry that this turn writes.
    pub(super) fn log_dot(&mut self, dot: Dot, key: &Bytes, context: &CausalContext) {
        let (name, logged) = (self.dot_keys.name(dot), &mut self.logged);
        let bytes = core::mem::take(&mut logged.fresh_bytes);
        logged.fresh_bytes = add_dot(self.part, (dot, key), (context, name), bytes);
        logged.fresh.push((dot, logged.fresh_bytes.len()));
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
    /// The turn ends: what it has seen for the first time is one entry, or several where that is
    /// much.
    pub(crate) fn write_dots(&mut self, cx: &mut Context<'_>) {
        let Durable { replicas, leaving, dots: log, .. } = &mut self.durable;
        let leaving = leaving.iter_mut().map(|one| &mut one.replica);
        let (mut entry, mut count) = (empty_entry(), 0);
        for replica in replicas.values_mut().chain(leaving) {
            let logged = &mut replica.logged;
            let (bytes, mut from) = (core::mem::take(&mut logged.fresh_bytes), 0);
            for (dot, to) in core::mem::take(&mut logged.fresh) {
                if count > 0 && entry.len() + to - from > ENTRY_BYTES_MAX {
                    let full = core::mem::replace(&mut entry, empty_entry());
                    cx.fx.put_entry(DOTS, log.next, full.into());
                    log.note(log.next, core::mem::take(&mut count));
                }
                entry.extend_from_slice(&bytes[from..to]);
                logged.written.push_back((log.next, dot));
                (from, count) = (to, count + 1);
            }
        }
        if count > 0 {
            cx.fx.put_entry(DOTS, log.next, entry.into());
            log.note(log.next, count);
        }
    }

    /// Gives up the entries of the log of which no dot is needed.
    pub(crate) fn trim_dots(&mut self, cx: &mut Context<'_>) {
        let needed = self.durable.with_leaving().filter_map(Replica::first_needed).min();
        let needed = needed.unwrap_or(self.durable.dots.next);
        if needed > self.durable.dots.first {
            for replica in self.durable.with_leaving() {
                if !mutant!("clock_goes_with_dot") {
                    replica.save();
                }
                replica.flush(cx);
            }
            cx.fx.trim_log(DOTS, needed);
            self.durable.dots.give_up(needed);
        }
        self.durable.dots.is_moving = self.is_sparse();
    }

    /// Whether most dots of the log are not needed.
    fn is_sparse(&mut self) -> bool {
        let spare = self.settings.limits.spare_dots;
        let needed: usize = self.durable.with_leaving().map(|one| one.dot_keys.len()).sum();
        let of_replicas = |durable: &mut Durable| {
            durable.with_leaving().map(|one| one.logged.written.len()).sum::<usize>()
        };
        let logged = if mutant!("counts_dots_of_replicas_alone") {
            of_replicas(&mut self.durable)
        } else {
            self.durable.dots.len()
        };
        logged > 2 * needed + spare
    }

    /// Whether dots are to be written anew.
    pub(crate) fn is_moving_dots(&self) -> bool {
        self.durable.dots.is_moving
    }

    /// Writes some of the dots anew that stand first and are needed, if most are not. What stood
    /// before them is given up in the same batch, so none is ever there twice.
    pub(crate) fn move_dots(&mut self, cx: &mut Context<'_>) {
        if !self.durable.dots.is_moving {
            return;
        }
        let mut looked = 0;
        while looked < PAGE_KEYS {
            let fronts = self.durable.with_leaving();
            let fronts = fronts.filter_map(|one| one.logged.written.front().map(|(at, _)| *at));
            let Some(first) = fronts.min() else { break };
            let replicas = self.durable.with_leaving();
            looked += replicas.map(|replica| replica.move_dots(first, cx)).sum::<usize>();
        }
        self.trim_dots(cx);
    }
}
