//! OrderStatus (clause 2.6) and StockLevel (clause 2.8), which change nothing.

use std::collections::BTreeSet;

use quorate_client::Transaction;

use super::{Attempt, Done};
use crate::tpcc::data::keys::Key;
use crate::tpcc::data::rows::{self, Customer, Line, Order, Stock};
use crate::tpcc::data::sizes::District;
use crate::tpcc::inputs::Selection;
use crate::tpcc::tables::{Failure, damaged, number, row};

/// Of how many orders StockLevel looks at the items.
const RECENT_ORDERS: u32 = 20;

/// What a customer owes and ordered last: all read at one moment at which that was the last order.
pub(super) async fn order(
    attempt: &Attempt<'_>,
    home: District,
    customer: &Selection,
) -> Result<Done, Failure> {
    let customer = attempt.select(home, customer).await?;
    let last = Key::LastOrder(home, customer);
    let read = attempt.tables.read(std::slice::from_ref(&last)).await?;
    let order: u32 = number(&last, read[0].as_ref())?;
    let keys = [Key::Customer(home, customer), Key::Order(home, order), Key::Lines(home, order)];
    let is_last = Transaction::new().check(last.bytes(), rows::number(i64::from(order)));
    let read = attempt.tables.read_if(is_last, &keys).await?;
    let _: Customer = row(&keys[0], read[0].as_ref())?;
    let order: Order = row(&keys[1], read[1].as_ref())?;
    let lines: Vec<Line> = row(&keys[2], read[2].as_ref())?;
    let is_whole = order.customer == customer && order.line_count as usize == lines.len();
    if is_whole { Ok(Done::of(0)) } else { Err(damaged(&keys[1])) }
}

/// How many of the items in the district's last orders are scarce in its warehouse.
pub(super) async fn stock(
    attempt: &Attempt<'_>,
    place: District,
    threshold: i32,
) -> Result<Done, Failure> {
    let next = Key::NextOrder(place);
    let read = attempt.tables.read(std::slice::from_ref(&next)).await?;
    let next: u32 = number(&next, read[0].as_ref())?;
    let orders = next.saturating_sub(RECENT_ORDERS).max(1)..next;
    let keys: Vec<Key> = orders.map(|order| Key::Lines(place, order)).collect();
    let read = attempt.tables.read(&keys).await?;
    let mut items = BTreeSet::new();
    for (key, value) in keys.iter().zip(&read) {
        let lines: Vec<Line> = row(key, value.as_ref())?;
        items.extend(lines.iter().map(|line| line.item));
    }
    let keys: Vec<Key> = items.iter().map(|item| Key::Stock(place.warehouse, *item)).collect();
    let read = attempt.tables.read(&keys).await?;
    let mut scarce_count = 0_usize;
    for (key, value) in keys.iter().zip(&read) {
        let stock: Stock = row(key, value.as_ref())?;
        scarce_count += usize::from(stock.quantity < threshold);
    }
    assert!(scarce_count <= keys.len(), "an item is counted once");
    Ok(Done::of(0))
}
