//! Delivery (clause 2.7): the oldest order of each of a warehouse's ten districts, all in one
//! transaction. It is done when it is asked for, not queued.
//!
//! The head of a district's queue names its oldest order. Only Delivery moves it and changes orders
//! that are there, so the check of the head guards them; the customers' rows are checked too, as
//! Payment changes them. A district without such an order is skipped, and checked to have none.

use bytes::Bytes;

use super::{Attempt, Done};
use crate::tpcc::data::keys::Key;
use crate::tpcc::data::rows::{self, Customer, Line, Order, encode};
use crate::tpcc::data::sizes::{DISTRICTS, District};
use crate::tpcc::tables::{Failure, damaged, number, row};

/// The head of a district's queue.
struct Head {
    place: District,
    order: u32,
}

/// An order that is about to be delivered.
struct Due {
    head: Head,
    order: Order,
    lines: Vec<Line>,
}

pub(super) async fn run(
    attempt: &Attempt<'_>,
    warehouse: u16,
    carrier: u8,
) -> Result<Done, Failure> {
    let heads = heads(attempt, warehouse).await?;
    let mut commit = attempt.begin();
    for head in &heads {
        let key = Key::QueueHead(head.place).bytes();
        commit = commit.check(key, rows::number(i64::from(head.order)));
    }
    let (due, empty) = due(attempt, heads).await?;
    for head in &empty {
        commit = commit.check_exists(Key::NewOrder(head.place, head.order).bytes(), false);
    }
    let customer_of = |due: &Due| Key::Customer(due.head.place, due.order.customer);
    let customer_keys: Vec<Key> = due.iter().map(customer_of).collect();
    let customers = match due.is_empty() {
        true => Vec::new(),
        false => attempt.tables.read(&customer_keys).await?,
    };
    let mut sum = 0;
    for ((due, key), before) in due.into_iter().zip(&customer_keys).zip(customers) {
        let mut customer: Customer = row(key, before.as_ref())?;
        let before: Bytes = before.ok_or_else(|| damaged(key))?;
        let Due { head: Head { place, order: number }, mut order, mut lines } = due;
        let amount: i64 = lines.iter().map(|line| line.amount).sum();
        order.carrier = Some(carrier);
        for line in &mut lines {
            line.delivered = Some(attempt.date);
        }
        customer.balance += amount;
        customer.delivery_count += 1;
        sum += amount;
        commit = commit
            .put(Key::QueueHead(place).bytes(), rows::number(i64::from(number) + 1))
            .delete(Key::NewOrder(place, number).bytes())
            .put(Key::Order(place, number).bytes(), encode(&order))
            .put(Key::Lines(place, number).bytes(), encode(&lines))
            .check(key.bytes(), before)
            .put(key.bytes(), encode(&customer));
    }
    attempt.commit(commit).await?;
    Ok(Done::Committed { amount: sum, skipped: empty.len() as u64 })
}

async fn heads(attempt: &Attempt<'_>, warehouse: u16) -> Result<Vec<Head>, Failure> {
    let place = |number| District { warehouse, number };
    let keys: Vec<Key> = (1..=DISTRICTS).map(place).map(Key::QueueHead).collect();
    let read = attempt.tables.read(&keys).await?;
    let head = |((at, key), value): ((u8, &Key), &Option<Bytes>)| {
        Ok(Head { place: place(at), order: number(key, value.as_ref())? })
    };
    (1..).zip(&keys).zip(&read).map(head).collect()
}

/// The orders at the heads of queues, and the heads that have none.
async fn due(attempt: &Attempt<'_>, heads: Vec<Head>) -> Result<(Vec<Due>, Vec<Head>), Failure> {
    let of = |head: &Head| {
        let (place, order) = (head.place, head.order);
        [Key::NewOrder(place, order), Key::Order(place, order), Key::Lines(place, order)]
    };
    let keys: Vec<Key> = heads.iter().flat_map(of).collect();
    let read = attempt.tables.read(&keys).await?;
    let (mut due, mut empty) = (Vec::new(), Vec::new());
    for ((head, keys), read) in heads.into_iter().zip(keys.chunks(3)).zip(read.chunks(3)) {
        if read[0].is_none() {
            empty.push(head);
            continue;
        }
        let order = row(&keys[1], read[1].as_ref())?;
        due.push(Due { head, order, lines: row(&keys[2], read[2].as_ref())? });
    }
    Ok((due, empty))
}
