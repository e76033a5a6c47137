//! What a peer tells a replica that joins: page by page, the keys that both hold.
//!
//! Listed are keys with an object, and keys that only the dot-key map still knows: of a delete that
//! some replica may not have seen, the newcomer must be able to tell it, too.

use crate::causal::keys::{Kind, each_of, hash_of};
use crate::causal::message::{Message, Pair, TellClock};
use crate::causal::page;
use crate::causal::replicate::replica::Replica;
use crate::causal::{Causal, Context, Limits};
use crate::dots::dot::Dot;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::{Bytes, BytesMut};
use core::ops::RangeInclusive;
use quorate_kernel::ids::Incarnation;
use quorate_kernel::invariant;
use quorate_kernel::probe;

impl Causal {
    /// A replica that joins asks for the keys from one on.
    pub(crate) fn on_scan(
        &mut self,
        from: Incarnation,
        pair: Pair,
        step: u64,
        key: &Bytes,
        cx: &mut Context<'_>,
    ) {
        if pair.to == pair.from.partition {
            return self.on_scan_of_former(from, (pair, step), key, cx);
        }
        let Some(at) = self.greet(from, pair, cx) else { return };
        let (shape, limits) = (self.settings.shape, self.settings.limits);
        let Some(map) = &self.durable.map else { return };
        let replica = self.durable.replicas.get_mut(&at).expect("it was greeted");
        invariant!(!replica.record.is_leaving, "a replica is in one place");
        invariant!(replica.clock.own(pair.from).is_some(), "who copies is known, and waited for");
        // From here on this replica waits for the newcomer before it drops a dot.
        replica.flush(cx);
        let hashes = shape.hashes(&shape.shared(at, pair.from.partition));
        let asked = Pair { map: map.version, ..pair };
        let answer = answer(replica, (asked, step), (&hashes, limits, key), cx);
        cx.fx.send(from, answer);
    }
}

/// The answer to whoever scans: what a replica has of the keys from one on with these hashes, by
/// the map that the question is answered with.
pub(super) fn answer(
    replica: &Replica,
    (asked, step): (Pair, u64),
    (hashes, limits, key): (&RangeInclusive<u64>, Limits, &Bytes),
    cx: &Context<'_>,
) -> Message {
    let (page, end) = list(replica, hashes, limits, key, cx);
    Message::ScanB {
        pair: Pair { from: replica.actor(), to: asked.from.partition, map: asked.map },
        to: asked.from,
        step,
        clock: TellClock::of(&replica.clock),
        page,
        next: end.to_vec(),
    }
}

/// What a replica has of the keys from one on with these hashes, and the key to continue at; empty
/// at the end.
pub(crate) fn list(
    replica: &Replica,
    hashes: &RangeInclusive<u64>,
    limits: Limits,
    key: &Bytes,
    cx: &Context<'_>,
) -> (Bytes, Bytes) {
    let is_inside = |key: &[u8]| hashes.contains(&hash_of(key));
    let mut listed: BTreeMap<Bytes, (Bytes, Vec<Dot>)> = BTreeMap::new();
    let (mut size, mut end) = (0, Bytes::new());
    each_of(cx.table, replica.part, Kind::Object, key, &mut |key, object| {
        if !is_inside(key) {
            return false;
        }
        if listed.len() >= limits.scan_keys || size >= limits.page_bytes {
            end = Bytes::copy_from_slice(key);
            return false;
        }
        size += object.len();
        let key = Bytes::copy_from_slice(key);
        let told = told(replica, &key, Some(object));
        listed.insert(key, told);
        true
    });
    let mut unlisted = 0;
    for known in replica.dot_keys.keys_from(key) {
        if !is_inside(known) || (!end.is_empty() && *known >= end) {
            break;
        }
        if !listed.contains_key(known) {
            unlisted += 1;
            if unlisted > limits.scan_keys {
                end = known.clone();
                break;
            }
            listed.insert(known.clone(), told(replica, known, None));
        }
    }
    if !end.is_empty() {
        probe!("causal/scan_of_pages");
    }
    let mut page = BytesMut::new();
    for (key, (object, dots)) in listed.iter().filter(|(key, _)| end.is_empty() || **key < end) {
        page::push(&mut page, key, object, dots);
    }
    (page.freeze(), end)
}

/// What the newcomer is told of a key, and the updates that go with it. It counts those that are
/// left out as seen, but knows no names of their writes: whoever may still need them asks others.
fn told(replica: &Replica, key: &Bytes, object: Option<&Bytes>) -> (Bytes, Vec<Dot>) {
    let (dots, _) = page::told(replica.dot_keys.of(key), page::DOTS_MAX);
    (replica.told(key, object, 0, &dots), dots)
}
