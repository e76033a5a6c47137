//! One client of registers: what it asks next, and what it waits for.

use super::door::RespDoor;
use crate::workload::fleet::Seat;
use crate::workload::section::WorkloadSection;
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
    /// Whether it waits for an answer.
    pub is_open: bool,
}

/// A client.
pub struct Client {
    index: usize,
    /// Its connection, if it speaks RESP, with its number.
    pub door: Option<(u32, RespDoor)>,
    speaks_resp: bool,
    /// How many operations it keeps in flight at most.
    pipeline: u64,
    /// The operations of the last batch.
    pub flights: Vec<Flight>,
    /// What was asked in the last batch.
    pub asked: Vec<Operation>,
    /// Where its scan goes on.
    pub scan: Option<Cursor>,
    /// The next key of its final gets.
    pub next_final: usize,
    written: u32,
}

impl Client {
    /// A client that has asked nothing.
    #[must_use]
    pub fn new(index: usize, section: &WorkloadSection, mut rng: Rng) -> Client {
        Client {
            index,
            door: None,
            speaks_resp: rng.chance_ppm(section.resp_ppm),
            pipeline: rng.between(1, section.pipeline),
            flights: Vec::new(),
            asked: Vec::new(),
            scan: None,
            next_final: 0,
            written: 0,
        }
    }

    /// It is connected; perhaps anew.
    pub fn meet(&mut self, seat: &mut Seat) {
        let is_new = |(connection, _): &(u32, RespDoor)| *connection != seat.connection;
        if self.speaks_resp && self.door.as_ref().is_none_or(is_new) {
            let door = RespDoor::new(self.index as u64, seat.rng.next());
            self.door = Some((seat.connection, door));
        }
    }

    /// Draws the next batch into `asked`.
    pub fn draw_batch(&mut self, seat: &mut Seat, section: &WorkloadSection, keys: &[Bytes]) {
        self.asked.clear();
        if let Some(from) = self.scan.take() {
            self.asked.push(Operation::Scan { from, limit: SCAN_LIMIT });
            return;
        }
        let most = self.pipeline.min(u64::from(seat.left));
        let count = seat.rng.between(1, most.max(1));
        for _ in 0..count {
            let operation = self.draw_operation(&mut seat.rng, section, keys);
            let is_scan = matches!(operation, Operation::Scan { .. });
            if is_scan && !self.asked.is_empty() {
                continue;
            }
            seat.left = seat.left.saturating_sub(1);
            self.asked.push(operation);
            if is_scan {
                return;
            }
        }
    }

    fn draw_operation(
        &mut self,
        rng: &mut Rng,
        section: &WorkloadSection,
        keys: &[Bytes],
    ) -> Operation {
        let is_hot = rng.chance_ppm(section.hot_ppm);
        let index = if is_hot { 0 } else { rng.below(keys.len() as u64) as usize };
        let key = keys[index].clone();
        let total = section.get + section.put + section.delete + section.scan;
        let drawn = rng.below(u64::from(total)) as u32;
        if drawn < section.get {
            Operation::get(key)
        } else if drawn < section.get + section.put {
            Operation::put(key, self.draw_value(rng))
        } else if drawn < section.get + section.put + section.delete {
            Operation::delete(key)
        } else {
            Operation::Scan { from: Cursor::default(), limit: SCAN_LIMIT }
        }
    }

    /// A value that nobody else writes.
    fn draw_value(&mut self, rng: &mut Rng) -> Bytes {
        self.written += 1;
        let is_long = rng.below(1000) < LONG_VALUES;
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
    use crate::delay::{Delay, Distribution};
    use crate::workload::fleet::Fleet;
    use crate::workload::section::Kind;
    use std::collections::BTreeSet;

    #[test]
    fn values_are_unique_and_quotas_are_kept() {
        let section = WorkloadSection {
            name: Kind::Registers,
            clients: 3,
            operations: 100,
            keys: 2,
            keys_min: 1,
            hot_ppm: 500_000,
            get: 1,
            put: 3,
            delete: 1,
            scan: 1,
            alter: 0,
            check: 0,
            items: 1,
            own_keys: false,
            adds: false,
            counts: false,
            old_reads: false,
            named_ppm: 0,
            expire_ppm: 0,
            clocks_off_ms: 0,
            silent_ppm: 0,
            apart_ms: None,
            has_tombstones: false,
            ordered_reads: false,
            stale_percent: 0,
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
        let think = Delay::new(&section.think);
        let mut fleet = Fleet::new(&section, think, 0, 1, 1, &mut Rng::new(1));
        for index in 0..3 {
            let mut client = Client::new(index, &section, Rng::new(index as u64));
            while fleet.seats[index].left > 0 {
                client.draw_batch(&mut fleet.seats[index], &section, &keys);
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
