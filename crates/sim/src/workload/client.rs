//! One client: what it asks next, whom it is connected to, what it waits for.

use super::door::RespDoor;
use crate::delay::Delay;
use crate::queue::HostIndex;
use crate::scenario::WorkloadSection;
use bytes::{BufMut, Bytes, BytesMut};
use quorate_check::history::OperationId;
use quorate_kernel::operation::{Cursor, Operation};
use quorate_kernel::rng::Rng;

/// How many keys a page of a scan has, about: few, so that a scan has several pages.
const SCAN_LIMIT: u32 = 2;
/// How many of a thousand values are long.
const LONG_VALUES: u64 = 20;
const LONG_VALUE_BYTES: usize = 600;

/// One operation of a batch that was sent.
#[derive(Clone, Copy, Debug)]
pub struct Flight {
    /// Its entry in the history.
    pub id: OperationId,
    /// Whether it must succeed.
    pub is_strict: bool,
    /// Whether it waits for an answer.
    pub is_open: bool,
}

/// A client.
pub struct Client {
    /// Its number.
    pub index: usize,
    /// Its own randomness.
    pub rng: Rng,
    /// The host it is connected to.
    pub host: Option<HostIndex>,
    /// Counts connections; what was meant for an earlier one is void.
    pub connection: u32,
    /// Its connection, if it speaks RESP.
    pub door: Option<RespDoor>,
    /// Whether it speaks RESP.
    pub speaks_resp: bool,
    /// How many operations it keeps in flight at most.
    pub pipeline: u64,
    /// The operations of the last batch.
    pub flights: Vec<Flight>,
    /// What was asked in the last batch.
    pub asked: Vec<Operation>,
    /// How many of them are open.
    pub open: usize,
    /// How many operations it may still begin in this stage.
    pub left: u32,
    /// Until when it waits for the open operations.
    pub patient_until: u64,
    /// Whether an event will look at its patience.
    pub is_watched: bool,
    /// Where its scan goes on.
    pub scan: Option<Cursor>,
    /// The next key of its final gets.
    pub next_final: usize,
    written: u32,
}

impl Client {
    /// A client that is not connected.
    #[must_use]
    pub fn new(index: usize, section: &WorkloadSection, mut rng: Rng) -> Client {
        let speaks_resp = rng.chance_ppm(section.resp_ppm);
        let pipeline = rng.between(1, section.pipeline);
        let share = section.operations / section.clients as u32;
        let rest = section.operations % section.clients as u32;
        Client {
            index,
            rng,
            host: None,
            connection: 0,
            door: None,
            speaks_resp,
            pipeline,
            flights: Vec::new(),
            asked: Vec::new(),
            open: 0,
            left: share + u32::from((index as u32) < rest),
            patient_until: 0,
            is_watched: false,
            scan: None,
            next_final: 0,
            written: 0,
        }
    }

    /// Leaves its host; whatever was under way there no longer reaches it.
    pub fn disconnect(&mut self) {
        self.connection += 1;
        self.host = None;
        self.door = None;
    }

    /// Connects to a host.
    pub fn connect(&mut self, host: HostIndex) {
        self.connection += 1;
        self.host = Some(host);
        if self.speaks_resp {
            self.door = Some(RespDoor::new(self.index as u64, self.rng.next()));
        }
    }

    /// Draws the next batch into `asked`.
    pub fn draw_batch(&mut self, section: &WorkloadSection, keys: &[Bytes]) {
        self.asked.clear();
        if let Some(from) = self.scan.take() {
            self.asked.push(Operation::Scan { from, limit: SCAN_LIMIT });
            return;
        }
        let most = self.pipeline.min(u64::from(self.left));
        let count = self.rng.between(1, most.max(1));
        for _ in 0..count {
            let operation = self.draw_operation(section, keys);
            let is_scan = matches!(operation, Operation::Scan { .. });
            if is_scan && !self.asked.is_empty() {
                continue;
            }
            self.left = self.left.saturating_sub(1);
            self.asked.push(operation);
            if is_scan {
                return;
            }
        }
    }

    fn draw_operation(&mut self, section: &WorkloadSection, keys: &[Bytes]) -> Operation {
        let is_hot = self.rng.chance_ppm(section.hot_ppm);
        let index = if is_hot { 0 } else { self.rng.below(keys.len() as u64) as usize };
        let key = keys[index].clone();
        let total = section.get + section.put + section.delete + section.scan;
        let drawn = self.rng.below(u64::from(total)) as u32;
        if drawn < section.get {
            Operation::get(key)
        } else if drawn < section.get + section.put {
            Operation::put(key, self.draw_value())
        } else if drawn < section.get + section.put + section.delete {
            Operation::delete(key)
        } else {
            Operation::Scan { from: Cursor::default(), limit: SCAN_LIMIT }
        }
    }

    /// A value that nobody else writes.
    fn draw_value(&mut self) -> Bytes {
        self.written += 1;
        let is_long = self.rng.below(1000) < LONG_VALUES;
        let mut value = BytesMut::with_capacity(if is_long { LONG_VALUE_BYTES } else { 16 });
        value.put_u8(b'c');
        put_number(&mut value, self.index as u32);
        value.put_u8(b'.');
        put_number(&mut value, self.written);
        if is_long {
            value.resize(LONG_VALUE_BYTES, b'.');
        }
        value.freeze()
    }

    /// How long it waits before the next batch.
    pub fn pause(&mut self, section: &WorkloadSection, think: &Delay) -> u64 {
        if self.rng.chance_ppm(section.burst_ppm) {
            return self.rng.between(1000, 50_000);
        }
        think.sample(&mut self.rng)
    }
}

fn put_number(out: &mut BytesMut, mut number: u32) {
    let mut digits = [0; 10];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.put_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delay::Distribution;
    use std::collections::BTreeSet;

    #[test]
    fn values_are_unique_and_quotas_are_kept() {
        let section = WorkloadSection {
            clients: 3,
            operations: 100,
            keys: 2,
            keys_min: 1,
            hot_ppm: 500_000,
            get: 1,
            put: 3,
            delete: 1,
            scan: 1,
            think: Distribution::Constant { us: 1 },
            burst_ppm: 0,
            pipeline: 4,
            deadline_ms: 1,
            patience_ms: 1,
            resp_ppm: 0,
        };
        let keys = [Bytes::from_static(b"a"), Bytes::from_static(b"b")];
        let mut values = BTreeSet::new();
        let mut count = 0;
        for index in 0..3 {
            let mut client = Client::new(index, &section, Rng::new(index as u64));
            while client.left > 0 {
                client.draw_batch(&section, &keys);
                assert!((1..=4).contains(&client.asked.len()));
                count += client.asked.len();
                for asked in &client.asked {
                    if let Operation::Put { value, .. } = asked {
                        assert!(values.insert(value.clone()), "{value:?} was written before");
                    }
                }
            }
        }
        assert_eq!(count, 100);
    }
}
