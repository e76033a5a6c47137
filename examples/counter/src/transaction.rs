//! Several keys in one step.
//!
//! All of it happens in one turn on the host that is asked: it reads, checks and adds up on the
//! side, and writes only when every item can be done. What one turn writes is one batch on disk,
//! and the other hosts are told in one message, which each of them takes in in one turn.

use crate::engine::{Context, Counter, Tallies, bytes_of, number_of, shown};
use crate::tally::Tally;
use bytes::Bytes;
use quorate_kernel::ids::{NodeId, Ticket};
use quorate_kernel::mutant;
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::transaction::{Item, ItemOutcome};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a transaction comes to.
#[derive(Default)]
struct Sheet {
    /// Every key that it names, as it leaves it, and whether it changes it.
    tallies: BTreeMap<Bytes, (Tally, bool)>,
    told: Vec<ItemOutcome>,
}

impl Sheet {
    /// Does one item, so that the next ones see it.
    fn add(&mut self, item: Item, cx: &Context<'_>) -> Result<(), Refusal> {
        let at = self.told.len();
        let key = item.key();
        let entry = self.tallies.entry(key.clone());
        let (tally, is_changed) = entry.or_insert_with(|| (Counter::tally(key, cx), false));
        *is_changed |= item.is_write();
        self.told.push(match item {
            Item::Check { holds, .. } if !holds.is_met(shown(tally).as_ref()) => {
                return Err(Refusal::Unmet { item: at });
            }
            Item::Check { .. } => ItemOutcome::Checked,
            Item::Get { .. } => ItemOutcome::Value(shown(tally)),
            Item::Put { value, .. } => {
                tally.add(cx.me, number_of(&value)?)?;
                ItemOutcome::Written
            }
            Item::Delete { .. } => {
                let existed = tally.sum() > 0;
                tally.delete();
                ItemOutcome::Deleted { existed }
            }
        });
        Ok(())
    }
}

impl Counter {
    pub fn transact(&self, ticket: Ticket, items: Vec<Item>, cx: &mut Context<'_>) {
        let mut sheet = Sheet::default();
        let done = items.into_iter().try_for_each(|item| sheet.add(item, cx));
        let keys: Arc<[Bytes]> = sheet.tallies.keys().cloned().collect();
        if let Err(refusal) = done {
            if mutant!("counter_half_done") {
                let all = sheet.tallies.iter();
                all.for_each(|(key, (tally, _))| cx.fx.put(key.clone(), bytes_of(tally)));
            }
            // Nothing was written; but a check that does not hold shows what its key has.
            return cx.fx.answer_after_keys(ticket, Outcome::Refused(refusal), keys);
        }
        let mut told = Vec::new();
        for (key, (tally, is_changed)) in sheet.tallies {
            if is_changed {
                tally.check();
                cx.fx.put(key.clone(), bytes_of(&tally));
                told.push((key.to_vec(), tally));
            }
        }
        if !told.is_empty() {
            let others: Arc<[NodeId]> = self.others.clone().into();
            cx.fx.send(&others, Tallies(told));
        }
        cx.fx.answer_after_keys(ticket, Outcome::Transacted(sheet.told), keys);
    }
}
