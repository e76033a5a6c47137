//! What reads should have returned, from all that was broadcast.
//!
//! The one order is that of the events which some node has delivered. A strong read has its place
//! in it, and returns the last write before it; a replica that has missed that write may say
//! something older. Payloads of events are read from the messages that carry them.

use super::clients::{Request, writer};
use super::order::Order;
use bytes::Bytes;
use quorate_kernel::plain::PlainData;
use quorate_kernel::time::Time;
use quorate_protocols::epidemic::keys::wire_key;
use quorate_protocols::epidemic::ordered::batch::{Act, Batch};
use quorate_protocols::epidemic::replica::version::{RequestId, Version};
use quorate_protocols::epto::EventKey;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// One request of an event.
#[derive(Clone, Debug)]
struct Item {
    id: RequestId,
    key: Bytes,
    /// Which request of the history it is, if it writes.
    put: Option<u64>,
}

/// A version, and how many replicas have said so.
type Word = (Option<Version>, u64);

/// What was broadcast, and what replicas said of reads.
#[derive(Clone, Debug, Default)]
pub struct Reads {
    events: BTreeMap<EventKey, Vec<Item>>,
    /// Which version replicas said that a read at an event has, and how many.
    words: BTreeMap<(EventKey, RequestId), Vec<Word>>,
}

/// What came of reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Judged {
    /// Words of replicas on reads at their events.
    pub words: u64,
    /// Those that told of another write than the order has there: what a client sees that is
    /// content with any first word. It is an older one, or one that was done twice.
    pub stale_words: u64,
    /// Reads that were answered.
    pub reads: u64,
    /// Those whose answer is not what the order has there.
    pub stale: u64,
    /// Those whose answer is older than a write of the key that was acknowledged before they
    /// began. The order may have it so: the entry's clock had not heard of the write.
    pub behind: u64,
}

impl Reads {
    /// The payload of an event is on its way.
    pub fn learn(&mut self, event: EventKey, payload: &[u8]) {
        self.events.entry(event).or_insert_with(|| {
            let batch = Batch::from_bytes(payload).map_or(Vec::new(), |batch| batch.0);
            let put = |act: &Act| match act {
                Act::Put(value) => writer(value),
                Act::Get | Act::Delete => None,
            };
            batch.into_iter().map(|it| Item { id: it.id, put: put(&it.act), key: it.key }).collect()
        });
    }

    /// Whether it is known.
    #[must_use]
    pub fn knows(&self, event: &EventKey) -> bool {
        self.events.contains_key(event)
    }

    /// A replica says what a read at an event has.
    pub fn said(&mut self, event: EventKey, id: RequestId, version: Option<Version>) {
        let said = self.words.entry((event, id)).or_default();
        match said.iter_mut().find(|(same, _)| *same == version) {
            Some((_, count)) => *count += 1,
            None => said.push((version, 1)),
        }
    }

    /// Judges them, and the answers that clients got.
    #[must_use]
    pub fn judge(&self, order: &Order, history: &[Request]) -> Judged {
        let mut judged = Judged::default();
        let due = self.due(order);
        for ((event, id), said) in &self.words {
            let Some((key, put)) = due.of_reads.get(&(*event, *id)) else { continue };
            for (version, count) in said {
                let wrote = ordered(*version).map(|event| due.puts.get(&(event, key.clone())));
                judged.words += count;
                judged.stale_words += if wrote == put.as_ref().map(Some) { 0 } else { *count };
            }
        }
        let acknowledged = Acknowledged::of(history);
        for read in history.iter().filter(|one| !one.is_put) {
            let Some(answer) = read.answer.as_ref().filter(|answer| answer.is_done) else {
                continue;
            };
            judged.reads += 1;
            let version = answer.value.and_then(|put| acknowledged.version_of(put, history));
            let Some(event) = answer.event else { continue };
            let known = due.of_keys.get(&(event, wire_key(&read.key())));
            judged.stale += u64::from(known.is_some_and(|due| !due.contains(&answer.value)));
            let before = acknowledged.before(read.key, read.at);
            // A write that was never acknowledged has a version that no client knows.
            let is_known = answer.value.is_none() || version.is_some();
            judged.behind += u64::from(is_known && version < before);
        }
        judged
    }

    /// What the order has at each read.
    fn due(&self, order: &Order) -> Due {
        let (mut newest, mut done) = (HashMap::new(), HashSet::new());
        let mut due = Due::default();
        for (event, items) in self.events.iter().filter(|(event, _)| order.has(event)) {
            for item in items {
                let key = item.key.clone();
                if let Some(put) = item.put {
                    due.puts.insert((*event, key.clone()), put);
                    // The first event of a request does it; others are told what it did.
                    if done.insert(item.id) {
                        newest.insert(key, put);
                    }
                } else {
                    let put: Option<u64> = newest.get(&key).copied();
                    due.of_keys.entry((*event, key.clone())).or_default().insert(put);
                    due.of_reads.insert((*event, item.id), (key, put));
                }
            }
        }
        due
    }
}

#[derive(Default)]
struct Due {
    /// The key of each read, and which request wrote what it should return.
    of_reads: HashMap<(EventKey, RequestId), (Bytes, Option<u64>)>,
    /// One event may read a key before it writes it, and behind that.
    of_keys: HashMap<(EventKey, Bytes), BTreeSet<Option<u64>>>,
    /// Which request an event wrote a key for. A request that was sent twice has two events.
    puts: HashMap<(EventKey, Bytes), u64>,
}

fn ordered(version: Option<Version>) -> Option<EventKey> {
    match version {
        Some(Version::Ordered(event)) => Some(event),
        _ => None,
    }
}

/// Acknowledged writes of each key by when that was, each with the newest version until then.
struct Acknowledged(HashMap<u32, Vec<(Time, EventKey)>>);

impl Acknowledged {
    fn of(history: &[Request]) -> Acknowledged {
        let mut keys: HashMap<u32, Vec<(Time, EventKey)>> = HashMap::new();
        for put in history.iter().filter(|one| one.is_put) {
            let answer = put.answer.as_ref().filter(|answer| answer.is_done);
            let Some((at, event)) = answer.and_then(|it| Some((it.at, it.event?))) else {
                continue;
            };
            keys.entry(put.key).or_default().push((at, event));
        }
        for puts in keys.values_mut() {
            puts.sort_unstable();
            let mut newest = puts[0].1;
            for (_, event) in puts {
                newest = newest.max(*event);
                *event = newest;
            }
        }
        Acknowledged(keys)
    }

    /// The newest version of a key that was acknowledged before a time.
    fn before(&self, key: u32, at: Time) -> Option<EventKey> {
        let puts = self.0.get(&key)?;
        let count = puts.partition_point(|(acknowledged, _)| *acknowledged < at);
        Some(puts[count.checked_sub(1)?].1)
    }

    /// The version of what a request wrote; none if that was not acknowledged.
    fn version_of(&self, put: u64, history: &[Request]) -> Option<EventKey> {
        history.get(usize::try_from(put).ok()?)?.answer.as_ref()?.event
    }
}

#[cfg(test)]
mod tests {
    use super::super::clients::{Conclusion, value};
    use super::*;
    use quorate_kernel::ids::Incarnation;
    use quorate_protocols::epidemic::ordered::batch::BatchItem;
    use quorate_protocols::epto::LogicalTime;

    const PUT: u64 = 0;
    const NEWER: u64 = 1;

    fn event(time: u64) -> EventKey {
        EventKey { time: LogicalTime(time), source: Incarnation::default() }
    }

    /// Two writes, the first of them sent again behind the second, and a read.
    fn world() -> (Order, Reads) {
        let (mut order, mut reads) = (Order::default(), Reads::default());
        (0..=4).for_each(|time| order.took(0, 0, event(time)));
        let acts = [Act::Put(value(PUT, 8)), Act::Put(value(NEWER, 8)), Act::Put(value(PUT, 8))];
        for (time, act) in (1..).zip(acts.into_iter().chain([Act::Get])) {
            let id = RequestId(if time == 3 { 1 } else { u128::from(time) });
            let item = BatchItem { id, key: wire_key(b"key-0"), act, since: None };
            reads.learn(event(time), &Batch(vec![item]).to_bytes());
        }
        (order, reads)
    }

    fn asked(is_put: bool, at: u64, told: u64, value: Option<u64>) -> Request {
        let event = Some(event(told));
        let answer = Some(Conclusion { at: Time(at + 1), is_done: true, event, value });
        Request { key: 0, is_put, at: Time(at), answer }
    }

    #[test]
    fn a_word_is_right_if_it_tells_the_last_write_and_no_other() {
        let (order, mut reads) = world();
        // What stands there: the newer write; an older one; one done again; nothing.
        for version in [Some(2), Some(1), Some(3), None] {
            let version = version.map(|time| Version::Ordered(event(time)));
            reads.said(event(4), RequestId(4), version);
        }
        let judged = reads.judge(&order, &[]);
        assert_eq!((judged.words, judged.stale_words), (4, 3));
    }

    #[test]
    fn an_answer_is_stale_by_the_order_and_behind_by_what_was_acknowledged() {
        let (order, reads) = world();
        let puts = [asked(true, 0, 1, None), asked(true, 10, 2, None)];
        let judge = |value| {
            let read = asked(false, 20, 4, Some(value));
            let judged = reads.judge(&order, &[puts[0].clone(), puts[1].clone(), read]);
            (judged.reads, judged.stale, judged.behind)
        };
        assert_eq!(judge(NEWER), (1, 0, 0));
        assert_eq!(judge(PUT), (1, 1, 1));
    }
}
