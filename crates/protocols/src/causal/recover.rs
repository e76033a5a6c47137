//! How the state comes back from the store.
//!
//! A lane that may have lost writes has nothing left (`memory`), or what it had at a time before
//! (`periodic`, after a loss of power): batches are lost from the end, whole, and objects,
//! clocks and dot-key entries are in one. So what is there fits together, and may be all there is.
//! But dots may have been shown since that its clock does not know, and peers believe that it has
//! seen what it lost: they have dropped the entries that would tell it. Hence a new actor in both
//! cases, which copies from its peers. It begins with an empty clock where nothing is left, and
//! otherwise goes on with the data, in the same part of the store. Of its former actor it has seen
//! what is there and no more; what peers have beyond that it copies.

use super::handover::leave::Leaving;
use super::keys::{
    BIRTH, Kind, actor_key, actor_of, each_named, each_of, state_bytes, state_value, stored,
    stored_map,
};
use super::map::Shape;
use super::replicate::dot_log::{DotLog, LoggedDot};
use super::replicate::replica::{Record, Replica};
use super::replicate::unstripped::context_of;
use super::timer::Timer;
use super::{Causal, Context, Settings};
use crate::dots::clock::Entry;
use crate::dots::dot::{ALL, Actor};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::LogIndex;
use quorate_kernel::mutant;
use quorate_kernel::probe;
use quorate_kernel::process::Recovery;
use quorate_kernel::storage::Class;
use quorate_kernel::time::Span;

impl Causal {
    /// Rebuilds the state, and begins what must be begun.
    pub(super) fn recover(&mut self, recovery: Recovery, cx: &mut Context<'_>) {
        self.durable.map = stored_map(cx.table);
        if self.durable.map.is_none()
            && let Some(first) = self.settings.first_map.clone()
        {
            cx.fx.put_state(super::keys::MAP, state_bytes(&first));
            self.durable.map = Some(first);
        }
        let birth = cx.table.get(Class::State, &BIRTH);
        let is_newborn = birth.is_none() && recovery == Recovery::Intact;
        self.durable.birth = birth.map_or(0, |bytes| state_value(&bytes));
        self.durable.garbage =
            each_named(cx.table, b"garbage").into_iter().map(|(birth, _)| birth).collect();
        let records = each_named(cx.table, b"replica");
        let mut dots: BTreeMap<u32, Logged> = BTreeMap::new();
        self.durable.dots = DotLog::recover(cx.table, &mut |index, dot| {
            dots.entry(dot.part).or_default().push((index, dot));
        });
        let (mut former, shape) = (Vec::new(), self.settings.shape);
        for (part, record) in records {
            let record: Record = state_value(&record);
            let left = left_of(part, &record, recovery, shape, cx);
            let dots = dots.remove(&part).unwrap_or_default();
            // Also one that had not copied what it lacked before it was given away.
            let has_all = left == Left::All && record.is_joined;
            let has_forgotten = !has_all && !mutant!("leaver_forgets_that_it_lacks");
            let replica = match left {
                Left::Nothing if record.is_leaving => {
                    // It has nothing more to hand over, and says so.
                    probe!("causal/leaves_with_nothing");
                    Replica::new(part, record, &self.settings)
                }
                Left::Nothing => {
                    probe!("causal/forgot");
                    former.push(record.actor);
                    self.discard(part, cx);
                    continue;
                }
                Left::Earlier if !record.is_leaving => {
                    probe!("causal/fell_back");
                    let (record, found) = (self.successor(record), (Left::All, dots));
                    let replica = load(part, record, found, &self.settings, cx);
                    replica.persist(cx);
                    replica
                }
                Left::Earlier | Left::All => load(part, record, (left, dots), &self.settings, cx),
            };
            match replica.record.is_leaving {
                true => {
                    let mut leaving = Leaving::new(replica);
                    leaving.has_forgotten = has_forgotten;
                    self.durable.leaving.push(leaving);
                }
                false => drop(self.durable.replicas.insert(replica.partition(), replica)),
            }
        }
        self.take_partitions(is_newborn, cx);
        self.know_former(&former, cx);
        self.note_refilled();
        // It comes back to this node when the new births are durable.
        cx.fx.send(cx.me, super::message::Message::MapA { version: 0 });
        let sync = Span(cx.rng.below(self.settings.sync_interval.0.max(1)));
        cx.fx.arm(Timer::Sync, cx.now + sync);
        cx.fx.arm(Timer::Strip, cx.now + self.settings.strip_interval);
    }

    /// The record of a new actor that goes on with the data of another.
    fn successor(&mut self, record: Record) -> Record {
        self.durable.birth = self.durable.birth.checked_add(1).expect("fewer than 2^32 births");
        let actor = Actor { birth: self.durable.birth, ..record.actor };
        let is_joined = mutant!("successor_has_joined");
        let (reserved, finished) = (0, BTreeMap::new());
        Record { actor, reserved, is_joined, finished, ..record }
    }

    /// The actors that were lost here must be closed in the end.
    fn know_former(&mut self, former: &[Actor], cx: &mut Context<'_>) {
        for actor in former {
            let replica = self.durable.replicas.get_mut(&actor.partition);
            if let Some(replica) = replica.filter(|replica| !replica.is_closed(*actor)) {
                replica.touch(*actor);
                replica.flush(cx);
            }
        }
    }
}

/// What is left of a replica's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Left {
    /// Everything.
    All,
    /// What it had at an earlier moment.
    Earlier,
    /// Nothing.
    Nothing,
}

/// What a start finds of a replica's data. A replica's own entry of its clock is written with its
/// record, so where that is missing the data was never on disk.
fn left_of(part: u32, record: &Record, recovery: Recovery, shape: Shape, cx: &Context<'_>) -> Left {
    if recovery == Recovery::Intact || mutant!("clock_reused") {
        return Left::All;
    }
    let own = stored(part, Kind::Clock, &actor_key(record.actor));
    match cx.table.get(Class::Data, &own) {
        None => Left::Nothing,
        // What is lost here nobody else has.
        Some(_) if shape.replicas == 1 => Left::All,
        Some(_) => Left::Earlier,
    }
}

/// Dots of one replica with their entries of the log.
type Logged = Vec<(LogIndex, LoggedDot)>;

/// A replica as it was stored.
fn load(
    part: u32,
    record: Record,
    (left, dots): (Left, Logged),
    settings: &Settings,
    cx: &mut Context<'_>,
) -> Replica {
    let mut replica = Replica::new(part, record, settings);
    let mut entries: Vec<(Actor, Entry)> = Vec::new();
    each_of(cx.table, part, Kind::Clock, &[], &mut |key, value| {
        let mut entry: Entry = state_value(value);
        // Closed when that did not yet speak for earlier actors: it is closed anew.
        entry.closed &= entry.base() == ALL;
        entries.push((actor_of(key), entry));
        true
    });
    replica.clock = entries.into_iter().collect();
    replica.drop_spoken_for();
    for (index, LoggedDot { dot, key, context, name, .. }) in dots {
        if mutant!("dots_forgotten") {
            continue;
        }
        replica.see(dot, &key, name);
        replica.logged.find(index, dot);
        if !context.is_empty() {
            probe!("causal/context_from_a_dot");
            replica.unstripped.entry(key).or_default().context.merge(&context);
        }
    }
    each_of(cx.table, part, Kind::Unstripped, &[], &mut |key, value| {
        let beside = replica.unstripped.entry(Bytes::copy_from_slice(key)).or_default();
        beside.context.merge(&context_of(value));
        beside.is_marked = true;
        true
    });
    replica.names.begin(cx.now);
    // Above all that was issued and not shown. Who has lost updates issues no more, and must not
    // take them for seen.
    let (own, reserved) = (replica.actor(), replica.record.reserved);
    if left == Left::All && reserved > 0 && !mutant!("clock_reused") {
        replica.touch(own).insert_range(1, reserved);
    }
    replica.touch(own);
    replica.flush(cx);
    replica
}
