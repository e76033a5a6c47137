//! What a client asks next.

use super::Transactions;
use crate::queue::HostIndex;
use bytes::Bytes;
use quorate_kernel::change::Change;
use quorate_kernel::expiry::Expiry;
use quorate_kernel::operation::Operation;
use quorate_kernel::rng::Rng;
use quorate_kernel::transaction::{Condition, Item};

/// A key that nobody reads.
const UNUSED: &[u8] = b"unused";
/// How many of a million transactions of one item are asked for as a plain operation.
const PLAIN_PPM: u32 = 500_000;
/// How many of a million changes of a key are read before, and how many after.
const READ_PPM: u32 = 300_000;
/// How many of a million checks are of whether the key is there, not of what it has.
const PRESENCE_PPM: u32 = 150_000;

impl Transactions {
    /// The keys that a host is asked for.
    pub(super) fn keys_of(&self, host: HostIndex) -> Vec<Bytes> {
        let name = |key| match self.section.own_keys {
            true => Bytes::from(format!("n{}.k{key}", host + 1)),
            false => Bytes::from(format!("k{key}")),
        };
        (0..self.keys).map(name).collect()
    }

    /// The next keys of a client's last reads.
    pub(super) fn last_read(&mut self, index: usize, host: HostIndex) -> Operation {
        let client = &self.clients[index];
        let keys = self.keys_of(host);
        let end = keys.len().min(client.finals + self.section.items as usize);
        let items = keys[client.finals..end].iter().map(|key| Item::Get { key: key.clone() });
        let mut items: Vec<Item> = items.collect();
        if self.section.old_reads {
            // What also writes rests on what is current.
            items.push(Item::Delete { key: Bytes::from_static(UNUSED) });
        }
        let operation = Operation::Transact { items, name: None };
        self.clients[index].finals = end;
        operation
    }

    /// Draws what a client asks of its host.
    pub(super) fn draw(&mut self, index: usize, host: HostIndex, rng: &mut Rng) -> Operation {
        let mut keys = self.draw_keys(host, rng);
        if self.section.counts {
            let one = keys.swap_remove(0);
            return self.draw_count(one, rng);
        }
        let section = &self.section;
        let (get, put, delete) = (section.get, section.get + section.put, section.delete);
        let drawn = rng.below(u64::from(put + delete + section.check)) as u32;
        let mut items = Vec::new();
        if drawn < get {
            items.extend(keys.into_iter().map(|key| Item::Get { key }));
        } else if drawn < put {
            keys.into_iter().for_each(|key| self.draw_change(key, false, &mut items, rng));
        } else if drawn < put + delete {
            for key in keys {
                let is_delete = items.is_empty() || rng.chance_ppm(500_000);
                self.draw_change(key, is_delete, &mut items, rng);
            }
        } else {
            self.draw_checked(index, keys, &mut items, rng);
        }
        match &items[..] {
            [Item::Get { key }] if rng.chance_ppm(PLAIN_PPM) => Operation::get(key.clone()),
            [Item::Delete { key }] if rng.chance_ppm(PLAIN_PPM) => Operation::delete(key.clone()),
            [Item::Put { key, value, expiry: Expiry::Never }] if rng.chance_ppm(PLAIN_PPM) => {
                Operation::put(key.clone(), value.clone())
            }
            _ => Operation::Transact { items, name: None },
        }
    }

    /// Adds one to a counter, or reads it.
    fn draw_count(&self, key: Bytes, rng: &mut Rng) -> Operation {
        let (get, put) = (self.section.get, self.section.put);
        if rng.below(u64::from(get + put)) < u64::from(get) {
            return Operation::get(key);
        }
        let items = vec![Item::Change { key, change: Change::Add(1) }];
        Operation::Transact { items, name: None }
    }

    /// Some keys, each once, often with the first among them.
    fn draw_keys(&self, host: HostIndex, rng: &mut Rng) -> Vec<Bytes> {
        let mut all = self.keys_of(host);
        let count = rng.between(1, self.section.items.min(self.keys)) as usize;
        let is_hot = rng.chance_ppm(self.section.hot_ppm);
        for at in usize::from(is_hot)..count {
            let other = at + rng.below((all.len() - at) as u64) as usize;
            all.swap(at, other);
        }
        all.truncate(count);
        all
    }

    /// Checks what the client saw last of keys, and changes some of them: at least the last one.
    fn draw_checked(
        &mut self,
        index: usize,
        mut keys: Vec<Bytes>,
        items: &mut Vec<Item>,
        rng: &mut Rng,
    ) {
        let turn = rng.below(keys.len() as u64) as usize;
        keys.rotate_left(turn);
        let last = keys.len() - 1;
        for (at, key) in keys.into_iter().enumerate() {
            let Some(seen) = self.clients[index].seen.get(&key) else {
                items.push(Item::Get { key: key.clone() });
                self.draw_change(key, false, items, rng);
                continue;
            };
            let is_presence = rng.chance_ppm(PRESENCE_PPM);
            let holds = match seen {
                None => Condition::Absent,
                Some(_) if is_presence => Condition::Present,
                Some(value) => Condition::Value(value.clone()),
            };
            items.push(Item::Check { key: key.clone(), holds });
            if at == last || rng.chance_ppm(500_000) {
                let is_delete = rng.chance_ppm(200_000);
                self.draw_change(key, is_delete, items, rng);
            }
        }
    }

    /// Sets a key to a value that nobody else writes, or takes away what it has.
    fn draw_change(&mut self, key: Bytes, is_delete: bool, items: &mut Vec<Item>, rng: &mut Rng) {
        if rng.chance_ppm(READ_PPM) {
            items.push(Item::Get { key: key.clone() });
        }
        if is_delete || self.section.adds {
            items.push(Item::Delete { key: key.clone() });
        }
        if !is_delete {
            self.written += 1;
            let value = Bytes::from(self.written.to_string());
            let put = (&key, &value, self.written);
            let expiry = self.endings.draw(put, &self.section, rng);
            items.push(Item::Put { key: key.clone(), value, expiry });
            // The clock of its host may say that its time has passed: then it is never there.
            if expiry != Expiry::Never {
                return;
            }
        }
        if rng.chance_ppm(READ_PPM) {
            items.push(Item::Get { key });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::section::WorkloadSection;
    use std::collections::BTreeSet;

    fn section(more: &str) -> WorkloadSection {
        let text = format!(
            "name = \"transactions\"\nclients = 1\noperations = 1\nkeys = 6\nkeys_min = 6\n\
             items = 4\nget = 1\nput = 1\ndelete = 1\ncheck = 1\ndeadline_ms = 1\npatience_ms = 1\n\
             think = {{ kind = \"constant\", us = 1 }}\n{more}"
        );
        toml::from_str(&text).expect("it is a section")
    }

    fn drawn(section: &WorkloadSection, host: HostIndex) -> Vec<Operation> {
        let mut rng = Rng::new(1);
        let mut work = Transactions::new(section, &mut rng);
        (0..2000).map(|_| work.draw(0, host, &mut rng)).collect()
    }

    #[test]
    fn values_are_unique_and_transactions_have_several_keys() {
        let (mut values, mut most) = (BTreeSet::new(), 0);
        for operation in drawn(&section(""), 0) {
            let keys: BTreeSet<&Bytes> = operation.keys().collect();
            most = most.max(keys.len());
            let Operation::Transact { items, .. } = &operation else { continue };
            for value in items.iter().filter(|item| item.is_write()).filter_map(Item::value) {
                assert!(values.insert(value.clone()), "{value:?} was written before");
            }
        }
        assert_eq!(most, 4);
    }

    #[test]
    fn where_puts_add_each_follows_a_delete_of_its_key() {
        for operation in drawn(&section("adds = true\nown_keys = true\n"), 2) {
            assert!(operation.keys().all(|key| key.starts_with(b"n3.")), "{operation:?}");
            assert!(!matches!(operation, Operation::Put { .. }), "{operation:?}");
            let Operation::Transact { items, .. } = &operation else { continue };
            for pair in items.windows(2).filter(|pair| matches!(pair[1], Item::Put { .. })) {
                let [Item::Delete { key: taken }, Item::Put { key, .. }] = pair else {
                    panic!("{operation:?}")
                };
                assert_eq!(taken, key);
            }
            assert!(!matches!(items[0], Item::Put { .. }), "{operation:?}");
        }
    }
}
