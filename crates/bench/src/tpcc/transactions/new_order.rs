//! NewOrder (clause 2.4): one round of reads, then the order, its lines and the stocks at one
//! moment.
//!
//! It is done if the district's next order number and the stocks are what was read. Tax, discount
//! and prices never change, so they are not checked.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use bytes::Bytes;

use super::{Attempt, Done};
use crate::tpcc::data::keys::Key;
use crate::tpcc::data::rows::{self, Customer, Item, Line, Order, Site, Stock, encode};
use crate::tpcc::data::sizes::District;
use crate::tpcc::inputs::Wanted;
use crate::tpcc::tables::{Failure, number, row};

/// Rates are in hundredths of a percent.
const RATE_ONE: i128 = 10_000;
/// What of a stock stays at least; below it more comes in.
const STOCK_RESERVE: i32 = 10;
/// How many pieces come in.
const STOCK_REFILL: i32 = 91;

/// A stock by its warehouse and item: as it was read, and as it becomes.
type Stocks = BTreeMap<(u16, u32), (Bytes, Stock)>;

pub(super) async fn run(
    attempt: &Attempt<'_>,
    place: District,
    customer: u32,
    wanted: &[Wanted],
) -> Result<Done, Failure> {
    let keys = [
        Key::Warehouse(place.warehouse),
        Key::District(place),
        Key::NextOrder(place),
        Key::Customer(place, customer),
    ];
    let items = wanted.iter().map(|line| Key::Item(line.item));
    let stocks = wanted.iter().map(|line| Key::Stock(line.supplier, line.item));
    let all: Vec<Key> = keys.iter().cloned().chain(items).chain(stocks).collect();
    let read = attempt.tables.read(&all).await?;
    let (first, lines_read) = read.split_at(keys.len());
    if lines_read[..wanted.len()].iter().any(Option::is_none) {
        return Ok(Done::RolledBack);
    }
    let warehouse: Site = row(&keys[0], first[0].as_ref())?;
    let district: Site = row(&keys[1], first[1].as_ref())?;
    let order: u32 = number(&keys[2], first[2].as_ref())?;
    let buyer: Customer = row(&keys[3], first[3].as_ref())?;
    let (lines, stocks) = fill(place, wanted, lines_read)?;

    let sum = lines.iter().map(|line| line.amount).sum();
    let head = Order {
        customer,
        entered: attempt.date,
        carrier: None,
        line_count: lines.len() as u32,
        is_all_local: wanted.iter().all(|line| line.supplier == place.warehouse),
    };
    let mut commit = attempt
        .begin()
        .check(keys[2].bytes(), rows::number(i64::from(order)))
        .put(keys[2].bytes(), rows::number(i64::from(order) + 1))
        .put(Key::Order(place, order).bytes(), encode(&head))
        .put(Key::Lines(place, order).bytes(), encode(&lines))
        .put(Key::NewOrder(place, order).bytes(), Bytes::new())
        .put(Key::LastOrder(place, customer).bytes(), rows::number(i64::from(order)));
    for ((supplier, item), (before, stock)) in stocks {
        let key = Key::Stock(supplier, item).bytes();
        commit = commit.check(key.clone(), before).put(key, encode(&stock));
    }
    attempt.commit(commit).await?;
    Ok(Done::of(total(sum, buyer.discount, warehouse.tax + district.tax)))
}

/// The lines of an order, and the stocks without what they take, from the values of the items and
/// then of the stocks. Several lines may take from one stock.
fn fill(
    place: District,
    wanted: &[Wanted],
    read: &[Option<Bytes>],
) -> Result<(Vec<Line>, Stocks), Failure> {
    let (items, stock_values) = read.split_at(wanted.len());
    let mut stocks = Stocks::new();
    let mut lines = Vec::with_capacity(wanted.len());
    for ((want, item), value) in wanted.iter().zip(items).zip(stock_values) {
        let item: Item = row(&Key::Item(want.item), item.as_ref())?;
        let (_, stock) = match stocks.entry((want.supplier, want.item)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let stock = row(&Key::Stock(want.supplier, want.item), value.as_ref())?;
                unknown.insert((value.clone().unwrap_or_default(), stock))
            }
        };
        take(stock, want, want.supplier != place.warehouse);
        lines.push(Line {
            item: want.item,
            supplier: want.supplier,
            delivered: None,
            quantity: want.quantity,
            amount: i64::from(want.quantity) * item.price,
            info: stock.infos[usize::from(place.number - 1)].clone(),
        });
    }
    Ok((lines, stocks))
}

/// Takes what is wanted from a stock, which is refilled where too little would stay.
fn take(stock: &mut Stock, want: &Wanted, is_remote: bool) {
    let quantity = i32::try_from(want.quantity).expect("a line has few pieces");
    stock.quantity -= quantity;
    if stock.quantity < STOCK_RESERVE {
        stock.quantity += STOCK_REFILL;
    }
    stock.ytd += want.quantity;
    stock.order_count += 1;
    stock.remote_count += u32::from(is_remote);
}

/// What is to be paid, in cents: the sum less the discount, and the taxes on that.
fn total(sum: i64, discount: u32, taxes: u32) -> i64 {
    let whole =
        i128::from(sum) * (RATE_ONE - i128::from(discount)) * (RATE_ONE + i128::from(taxes));
    i64::try_from(whole / (RATE_ONE * RATE_ONE)).expect("an order is far below 2^63 cents")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stock() -> Stock {
        Stock {
            quantity: 20,
            infos: [(); 10].map(|()| "info".to_owned()),
            ytd: 0,
            order_count: 0,
            remote_count: 0,
            data: String::new(),
        }
    }

    #[test]
    fn lines_of_one_item_take_from_one_stock() {
        let place = District { warehouse: 1, number: 10 };
        let item = Item { image: 1, name: String::new(), price: 250, data: String::new() };
        let wanted = [(2, 3), (1, 4), (2, 5)].map(|(supplier, quantity)| Wanted {
            item: 9,
            supplier,
            quantity,
        });
        let values = [encode(&item), encode(&stock())];
        let read: Vec<_> = values.iter().flat_map(|value| vec![Some(value.clone()); 3]).collect();
        let (lines, stocks) = fill(place, &wanted, &read).unwrap();
        assert_eq!(lines.iter().map(|line| line.amount).collect::<Vec<_>>(), [750, 1_000, 1_250]);
        let (before, remote) = &stocks[&(2, 9)];
        assert_eq!((before, remote.quantity, remote.ytd), (&values[1], 12, 8));
        assert_eq!((remote.order_count, remote.remote_count), (2, 2));
        assert_eq!(stocks[&(1, 9)].1.remote_count, 0);
        assert!(fill(place, &wanted[..1], &[Some(values[0].clone()), None]).is_err());
    }

    #[test]
    fn stocks_are_refilled() {
        let mut stock = stock();
        let want = Wanted { item: 1, supplier: 1, quantity: 10 };
        take(&mut stock, &want, false);
        assert_eq!((stock.quantity, stock.ytd), (10, 10));
        take(&mut stock, &want, true);
        assert_eq!((stock.quantity, stock.ytd), (91, 20), "10 less 10 is below 10");
        assert_eq!((stock.order_count, stock.remote_count), (2, 1));
    }

    #[test]
    fn totals_have_discount_and_taxes() {
        assert_eq!(total(10_000, 0, 0), 10_000);
        assert_eq!(total(10_000, 5_000, 0), 5_000);
        assert_eq!(total(10_000, 1_000, 2_000), 10_800);
    }
}
