//! What a client asks next: something new, or once more a write whose outcome is unknown.

use super::{Named, Open, Siblings};
use crate::workload::fleet::Fleet;
use bytes::Bytes;
use quorate_check::siblings::{Basis, WriteNumber};
use quorate_kernel::operation::Operation;
use quorate_kernel::time::Span;
use quorate_kernel::write::{WriteId, WriteName};

/// How many of a million writes carry no context, and an older one.
const BLIND_PPM: u32 = 250_000;
const STALE_PPM: u32 = 150_000;

impl Siblings {
    /// Sends a write again, under its name.
    pub(super) fn repeat(
        &mut self,
        index: usize,
        number: WriteNumber,
        mut named: Named,
        now: u64,
    ) -> Operation {
        self.history.repeat(number);
        named.tries += 1;
        let mut ask = named.ask.clone();
        if let Operation::Put { name: Some(name), .. } = &mut ask {
            name.age = Span(now - named.first_sent);
        }
        let key = ask.key().expect("a put has a key").clone();
        self.clients[index].open =
            Some(Open::Write { key, number, named: Some(named), is_in_doubt: false });
        ask
    }

    /// Draws what a client asks, and notes it.
    pub(super) fn draw(&mut self, index: usize, fleet: &mut Fleet, now: u64) -> Operation {
        let client = &mut self.clients[index];
        let rng = &mut fleet.seats[index].rng;
        let key = self.keys[rng.below(self.keys.len() as u64) as usize].clone();
        let (get, put) = (u64::from(self.section.get), u64::from(self.section.put));
        let drawn = rng.below(get + put + u64::from(self.section.delete));
        let known = client.contexts.get(&key).filter(|known| !known.is_empty());
        let is_blind = known.is_none() || rng.chance_ppm(BLIND_PPM);
        let (basis, context) = match known {
            Some(known) if !is_blind => {
                let place = match rng.chance_ppm(STALE_PPM) {
                    true => rng.below(known.len() as u64) as usize,
                    false => known.len() - 1,
                };
                known[place].clone()
            }
            _ => (Basis::Blind, Bytes::new()),
        };
        if drawn < get || (drawn >= get + put && is_blind) {
            client.open = Some(Open::Read { key: key.clone() });
            return Operation::get_all(key, None);
        }
        let value = (drawn < get + put).then(|| {
            client.written += 1;
            Bytes::from(format!("c{index}v{}", client.written))
        });
        let number = self.history.write(&key, value.clone(), basis);
        // Nothing is drawn where no write has a name.
        let is_named =
            value.is_some() && self.section.named_ppm > 0 && rng.chance_ppm(self.section.named_ppm);
        let id = WriteId(((fleet.first + index) as u128 + 1) << 64 | u128::from(client.written));
        let id = is_named.then_some(WriteName { id, age: Span(0) });
        let ask = match value {
            Some(value) => Operation::put_over(key.clone(), value, context, id),
            None => Operation::delete_over(key.clone(), context),
        };
        let named = id.map(|_| Named { ask: ask.clone(), first_sent: now, tries: 1 });
        client.open = Some(Open::Write { key, number, named, is_in_doubt: false });
        ask
    }
}
