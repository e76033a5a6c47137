//! What travels in one event: the requests of one node and round.

use crate::epidemic::keys::is_wire_key;
use crate::epidemic::replica::version::RequestId;
use crate::epto::LogicalTime;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::limits::EPTO_PAYLOAD_BYTES_MAX;
use quorate_kernel::plain::PlainData;
use serde::{Deserialize, Serialize};

/// The most requests in one event.
pub const REQUESTS_MAX: usize = 512;
/// The most requests that wait for an event.
pub const WAITING_MAX: usize = 4096;
/// From how many bytes on an event takes no further request.
const BATCH_BYTES: usize = 32 * 1024;

/// What a request does with its key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Act {
    /// Reads what it has when the event has its turn.
    Get,
    /// Sets its value.
    Put(Bytes),
    /// Removes it.
    Delete,
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchItem {
    /// Its name.
    pub id: RequestId,
    /// The key's wire form.
    pub key: Bytes,
    /// What it does.
    pub act: Act,
    /// The time behind which it may have been done by an earlier event; none if there was none.
    pub since: Option<LogicalTime>,
}

/// The requests of an event, done in this order. No key is written twice: a version is the event's
/// name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch(pub Vec<BatchItem>);

impl BatchItem {
    /// Whether it changes its key.
    #[must_use]
    pub fn is_write(&self) -> bool {
        self.act != Act::Get
    }

    /// About how long it is.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let value = if let Act::Put(value) = &self.act { value.len() } else { 0 };
        32 + self.key.len() + value
    }
}

impl PlainData for Batch {
    fn is_sound(&self) -> bool {
        let mut written: Vec<&Bytes> =
            self.0.iter().filter(|asked| asked.is_write()).map(|asked| &asked.key).collect();
        written.sort();
        (1..=REQUESTS_MAX).contains(&self.0.len())
            && self.0.iter().all(|asked| is_wire_key(&asked.key))
            && written.windows(2).all(|two| two[0] != two[1])
    }
}

/// The requests that wait for an event, in the order in which they came.
#[derive(Clone, Debug, Default)]
pub struct Waiting(VecDeque<BatchItem>);

impl Waiting {
    /// Takes one; returns whether there was room.
    pub fn push(&mut self, asked: BatchItem) -> bool {
        let has_room = self.0.len() < WAITING_MAX;
        if has_room {
            self.0.push_back(asked);
        }
        has_room
    }

    /// Takes out those of the next event.
    pub fn take(&mut self) -> Option<Batch> {
        let (mut batch, mut bytes, mut written) = (Vec::new(), 0, Vec::new());
        while let Some(asked) = self.0.front() {
            let is_full = batch.len() == REQUESTS_MAX || bytes >= BATCH_BYTES;
            let is_repeated = asked.is_write() && written.contains(&asked.key);
            let is_long = bytes + asked.bytes() > EPTO_PAYLOAD_BYTES_MAX;
            if !batch.is_empty() && (is_full || is_repeated || is_long) {
                break;
            }
            let asked = self.0.pop_front().expect("it is the front");
            bytes += asked.bytes();
            written.extend(asked.is_write().then(|| asked.key.clone()));
            batch.push(asked);
        }
        (!batch.is_empty()).then_some(Batch(batch))
    }

    /// Puts back what could not be broadcast.
    pub fn put_back(&mut self, batch: Batch) {
        batch.0.into_iter().rev().for_each(|asked| self.0.push_front(asked));
    }

    /// Takes out a request that nobody waits for any more.
    pub fn forget(&mut self, id: RequestId) {
        self.0.retain(|asked| asked.id != id);
    }

    /// Whether a request waits.
    #[must_use]
    pub fn has(&self, id: RequestId) -> bool {
        self.0.iter().any(|asked| asked.id == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::epidemic::keys::wire_key;

    fn asked(id: u128, key: &str, act: Act) -> BatchItem {
        BatchItem { id: RequestId(id), key: wire_key(key.as_bytes()), act, since: None }
    }

    #[test]
    fn an_event_writes_no_key_twice_and_gets_share_one() {
        let mut waiting = Waiting::default();
        let put = || Act::Put(Bytes::from_static(b"v"));
        for one in [
            asked(1, "a", Act::Get),
            asked(2, "a", put()),
            asked(3, "a", Act::Get),
            asked(4, "b", put()),
            asked(5, "a", Act::Delete),
            asked(6, "a", Act::Get),
        ] {
            assert!(waiting.push(one));
        }
        let ids = |batch: &Batch| batch.0.iter().map(|asked| asked.id.0).collect::<Vec<_>>();
        let first = waiting.take().expect("requests wait");
        assert_eq!(ids(&first), [1, 2, 3, 4]);
        assert_eq!(Batch::from_bytes(&first.to_bytes()), Ok(first.clone()));
        waiting.put_back(first);
        assert_eq!(waiting.take().map(|batch| batch.0.len()), Some(4));
        waiting.forget(RequestId(6));
        assert_eq!(ids(&waiting.take().expect("requests wait")), [5]);
        assert!(waiting.take().is_none());
        let twice = Batch(Vec::from([asked(1, "a", put()), asked(2, "a", Act::Delete)]));
        assert!(Batch::from_bytes(&twice.to_bytes()).is_err());
    }
}
