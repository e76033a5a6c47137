//! How the state comes back from the store.
//!
//! A lane that may have lost writes has lost objects and clocks alike: nothing of them can be
//! trusted, and dots may have been shown that its clock does not know. So it gives every replica
//! up and begins new ones, with new actors and empty clocks, which copy from their peers.

use super::keys::{
    BIRTH, Kind, actor_of, each_named, each_of, state_bytes, state_value, stored_map,
};
use super::leave::Leaving;
use super::replica::{Record, Replica};
use super::timer::Timer;
use super::unstripped::{context_of, dot_value_of};
use super::{Causal, Context, Settings};
use crate::dots::clock::Entry;
use crate::dots::dot::{Actor, Dot};
use alloc::vec::Vec;
use bytes::Bytes;
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
        let mut former = Vec::new();
        for (birth, record) in records {
            let record: Record = state_value(&record);
            let is_lost = recovery == Recovery::Forgot && !mutant!("clock_reused");
            if is_lost {
                probe!("causal/forgot");
                former.push(record.actor);
                self.discard(birth, cx);
            } else if record.is_leaving {
                self.durable.leaving.push(Leaving::new(load(record, &self.settings, cx)));
            } else {
                let replica = load(record, &self.settings, cx);
                self.durable.replicas.insert(replica.position(), replica);
            }
        }
        self.take_positions(is_newborn, cx);
        self.know_former(&former, cx);
        // It comes back to this node when the new births are durable.
        cx.fx.send(cx.me, super::message::Message::MapA { version: 0 });
        let sync = Span(cx.rng.below(self.settings.sync_interval.0.max(1)));
        cx.fx.arm(Timer::Sync, cx.now + sync);
        cx.fx.arm(Timer::Strip, cx.now + self.settings.strip_interval);
    }

    /// The actors that were lost here must be closed in the end.
    fn know_former(&mut self, former: &[Actor], cx: &mut Context<'_>) {
        for actor in former {
            if let Some(replica) = self.durable.replicas.get_mut(&actor.position) {
                replica.touch(*actor);
                replica.flush(cx);
            }
        }
    }
}

/// A replica as it was stored.
fn load(record: Record, settings: &Settings, cx: &mut Context<'_>) -> Replica {
    let birth = record.actor.birth;
    let mut replica = Replica::new(record, settings.shape, settings.limits);
    let mut entries: Vec<(Actor, Entry)> = Vec::new();
    each_of(cx.table, birth, Kind::Clock, &[], &mut |key, value| {
        entries.push((actor_of(key).0, state_value(value)));
        true
    });
    replica.clock = entries.into_iter().collect();
    each_of(cx.table, birth, Kind::DotKey, &[], &mut |key, value| {
        let (actor, counter) = actor_of(key);
        let counter = counter.first_chunk().expect("the store returns whole keys");
        let (key, context, name) = dot_value_of(value);
        replica.see(Dot { actor, counter: u64::from_be_bytes(*counter) }, &key, name);
        if !context.is_empty() {
            probe!("causal/context_from_a_dot");
            replica.unstripped.entry(key).or_default().context.merge(&context);
        }
        true
    });
    each_of(cx.table, birth, Kind::Unstripped, &[], &mut |key, value| {
        let beside = replica.unstripped.entry(Bytes::copy_from_slice(key)).or_default();
        beside.context.merge(&context_of(value));
        beside.is_marked = true;
        true
    });
    replica.names.begin(cx.now);
    // Above all that may have been shown before a batch was lost.
    let (own, reserved) = (replica.actor(), replica.record.reserved);
    if reserved > 0 && !mutant!("clock_reused") {
        replica.touch(own).insert_range(1, reserved);
    }
    replica.touch(own);
    replica.flush(cx);
    replica
}
