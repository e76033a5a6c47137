//! What the tables begin with (clause 4.3.3.1), in pieces that do not depend on each other.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use bytes::Bytes;
use quorate_kernel::rng::{Rng, mix};

use crate::tpcc::data::draws::{self, Constants};
use crate::tpcc::data::keys::Key;
use crate::tpcc::data::rows::{Customer, History, Item, Line, Order, Site, Stock, encode, number};
use crate::tpcc::data::sizes::{DISTRICTS, District, Sizes};

/// What each customer has paid, H_AMOUNT, in cents.
const PAID: i64 = 1_000;
/// C_CREDIT_LIM.
const CREDIT_LIMIT: i64 = 5_000_000;
/// Items and stocks of one piece.
const PIECE_ROWS: u32 = 1_000;
/// Who writes the history of the load.
const LOAD_WRITER: u64 = 0;

/// A row as it is written.
pub type Row = (Key, Bytes);

/// A part of the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Some of the items.
    Items(RangeInclusive<u32>),
    /// Some stocks of a warehouse.
    Stocks(u16, RangeInclusive<u32>),
    /// A warehouse without its districts.
    Warehouse(u16),
    /// A district with its customers and orders.
    District(District),
}

/// The data of a size and seed.
#[derive(Clone, Copy, Debug)]
pub struct Population {
    sizes: Sizes,
    seed: u64,
    constants: Constants,
    /// Milliseconds since 1970, the date of everything.
    date: u64,
}

impl Population {
    /// The data of this size, seed and date.
    #[must_use]
    pub fn new(sizes: Sizes, seed: u64, date: u64) -> Population {
        Population { sizes, seed, constants: Constants::of_load(seed), date }
    }

    /// The constant that last names are drawn with.
    #[must_use]
    pub fn name_constant(&self) -> u32 {
        self.constants.name
    }

    /// How many rows there are.
    #[must_use]
    pub fn row_count(&self) -> u64 {
        let (items, customers) = (u64::from(self.sizes.items()), self.sizes.customers());
        let undelivered = customers + 1 - self.sizes.first_undelivered();
        let district = 4 + 5 * customers + self.sizes.last_names() + undelivered;
        let warehouse = 2 + items + u64::from(DISTRICTS) * u64::from(district);
        items + u64::from(self.sizes.warehouses) * warehouse
    }

    /// All of it.
    #[must_use]
    pub fn pieces(&self) -> Vec<Piece> {
        let items = self.sizes.items();
        let ranges = || {
            let first = (1..=items).step_by(PIECE_ROWS as usize);
            first.map(move |first| first..=items.min(first + PIECE_ROWS - 1))
        };
        let mut pieces: Vec<Piece> = ranges().map(Piece::Items).collect();
        for warehouse in self.sizes.all_warehouses() {
            pieces.push(Piece::Warehouse(warehouse));
            pieces.extend(ranges().map(|range| Piece::Stocks(warehouse, range)));
        }
        pieces.extend(self.sizes.all_districts().map(Piece::District));
        pieces
    }

    /// The rows of a piece, the same each time.
    #[must_use]
    pub fn rows(&self, piece: &Piece) -> Vec<Row> {
        let label = match piece {
            Piece::Items(range) => u64::from(*range.start()),
            Piece::Stocks(warehouse, range) => {
                1 << 32 | u64::from(*warehouse) << 40 | u64::from(*range.start())
            }
            Piece::Warehouse(warehouse) => 2 << 32 | u64::from(*warehouse) << 40,
            Piece::District(place) => {
                3 << 32 | u64::from(place.warehouse) << 40 | u64::from(place.number)
            }
        };
        let mut rng = Rng::new(mix(self.seed) ^ mix(label));
        match piece {
            Piece::Items(range) => {
                let row = |number| (Key::Item(number), encode(&item(&mut rng)));
                range.clone().map(row).collect()
            }
            Piece::Stocks(warehouse, range) => {
                let row = |number| (Key::Stock(*warehouse, number), encode(&stock(&mut rng)));
                range.clone().map(row).collect()
            }
            Piece::Warehouse(warehouse) => {
                let paid = i64::from(DISTRICTS) * i64::from(self.sizes.customers()) * PAID;
                vec![
                    (Key::Warehouse(*warehouse), encode(&site(&mut rng))),
                    (Key::WarehouseYtd(*warehouse), number(paid)),
                ]
            }
            Piece::District(place) => self.district(&mut rng, *place),
        }
    }

    fn district(&self, rng: &mut Rng, place: District) -> Vec<Row> {
        let customers = self.sizes.customers();
        let paid = i64::from(customers) * PAID;
        let mut rows = vec![
            (Key::District(place), encode(&site(rng))),
            (Key::DistrictYtd(place), number(paid)),
            (Key::NextOrder(place), number(i64::from(customers) + 1)),
            (Key::QueueHead(place), number(i64::from(self.sizes.first_undelivered()))),
        ];
        self.customers(rng, place, &mut rows);
        self.orders(rng, place, &mut rows);
        rows
    }

    fn customers(&self, rng: &mut Rng, place: District, rows: &mut Vec<Row>) {
        let mut named: BTreeMap<String, Vec<(String, u32)>> = BTreeMap::new();
        for customer in 1..=self.sizes.customers() {
            let name = match customer <= self.sizes.last_names() {
                true => customer - 1,
                false => draws::name_number(rng, &self.constants, self.sizes),
            };
            let row = self.customer(rng, draws::last_name(name));
            let sorted_by = (row.first.clone(), customer);
            named.entry(row.last.clone()).or_default().push(sorted_by);
            rows.push((Key::Customer(place, customer), encode(&row)));
            let history = History {
                home: place,
                customer,
                date: self.date,
                amount: PAID,
                data: draws::text(rng, 12, 24),
            };
            let key = Key::History(place, LOAD_WRITER, u64::from(customer));
            rows.push((key, encode(&history)));
        }
        for (name, mut customers) in named {
            customers.sort();
            let customers: Vec<u32> = customers.into_iter().map(|(_, number)| number).collect();
            rows.push((Key::Named(place, name), encode(&customers)));
        }
    }

    fn customer(&self, rng: &mut Rng, last: String) -> Customer {
        Customer {
            first: draws::text(rng, 8, 16),
            middle: "OE".to_owned(),
            last,
            address: draws::address(rng),
            phone: draws::digits(rng, 16),
            since: self.date,
            is_good: rng.below(10) > 0,
            credit_limit: CREDIT_LIMIT,
            discount: rng.between(0, 5_000) as u32,
            balance: -PAID,
            ytd_payment: PAID,
            payment_count: 1,
            delivery_count: 0,
            data: draws::text(rng, 300, 500),
        }
    }

    fn orders(&self, rng: &mut Rng, place: District, rows: &mut Vec<Row>) {
        // Each customer has one order.
        let mut customers: Vec<u32> = (1..=self.sizes.customers()).collect();
        draws::shuffle(rng, &mut customers);
        for (order, customer) in (1..).zip(customers) {
            let is_delivered = order < self.sizes.first_undelivered();
            let line_count = rng.between(5, 15) as u32;
            let row = Order {
                customer,
                entered: self.date,
                carrier: is_delivered.then(|| rng.between(1, 10) as u8),
                line_count,
                is_all_local: true,
            };
            let line = |_| Line {
                item: rng.between(1, u64::from(self.sizes.items())) as u32,
                supplier: place.warehouse,
                delivered: is_delivered.then_some(self.date),
                quantity: 5,
                amount: if is_delivered { 0 } else { rng.between(1, 999_999) as i64 },
                info: draws::text(rng, 24, 24),
            };
            let lines: Vec<Line> = (0..line_count).map(line).collect();
            rows.push((Key::Order(place, order), encode(&row)));
            rows.push((Key::Lines(place, order), encode(&lines)));
            rows.push((Key::LastOrder(place, customer), number(i64::from(order))));
            if !is_delivered {
                rows.push((Key::NewOrder(place, order), Bytes::new()));
            }
        }
    }
}

fn site(rng: &mut Rng) -> Site {
    let name = draws::text(rng, 6, 10);
    Site { name, address: draws::address(rng), tax: rng.between(0, 2_000) as u32 }
}

fn item(rng: &mut Rng) -> Item {
    Item {
        image: rng.between(1, 10_000) as u32,
        name: draws::text(rng, 14, 24),
        price: rng.between(100, 10_000) as i64,
        data: draws::item_data(rng),
    }
}

fn stock(rng: &mut Rng) -> Stock {
    Stock {
        quantity: rng.between(10, 100) as i32,
        infos: [(); 10].map(|()| draws::text(rng, 24, 24)),
        ytd: 0,
        order_count: 0,
        remote_count: 0,
        data: draws::item_data(rng),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tpcc::data::rows::decode;
    use std::collections::BTreeSet;

    #[test]
    fn a_warehouse_has_the_standards_cardinalities() {
        let sizes = Sizes { warehouses: 1, scale: 1 };
        let population = Population::new(sizes, 9, 0);
        let place = District { warehouse: 1, number: 3 };
        let rows = population.rows(&Piece::District(place));
        let count = |is: fn(&Key) -> bool| rows.iter().filter(|(key, _)| is(key)).count();
        assert_eq!(count(|key| matches!(key, Key::Customer(..))), 3_000);
        assert_eq!(count(|key| matches!(key, Key::History(..))), 3_000);
        assert_eq!(count(|key| matches!(key, Key::Order(..))), 3_000);
        assert_eq!(count(|key| matches!(key, Key::Lines(..))), 3_000);
        assert_eq!(count(|key| matches!(key, Key::LastOrder(..))), 3_000);
        assert_eq!(count(|key| matches!(key, Key::NewOrder(..))), 900);
        assert_eq!(count(|key| matches!(key, Key::Named(..))), 1_000);
        let covers = |is: fn(&Piece) -> Option<&RangeInclusive<u32>>| {
            let pieces = population.pieces();
            pieces.iter().filter_map(is).map(|range| range.end() - range.start() + 1).sum::<u32>()
        };
        let items = |piece: &Piece| matches!(piece, Piece::Items(_));
        assert_eq!(population.pieces().iter().filter(|piece| items(piece)).count(), 100);
        assert_eq!(
            covers(|piece| if let Piece::Items(of) = piece { Some(of) } else { None }),
            100_000
        );
        assert_eq!(
            covers(|piece| if let Piece::Stocks(_, of) = piece { Some(of) } else { None }),
            100_000
        );
    }

    #[test]
    fn pieces_are_apart_and_repeat_themselves() {
        let sizes = Sizes { warehouses: 2, scale: 100 };
        let population = Population::new(sizes, 1, 7);
        let mut keys = BTreeSet::new();
        for piece in population.pieces() {
            let rows = population.rows(&piece);
            assert_eq!(rows, population.rows(&piece));
            for (key, _) in rows {
                assert!(keys.insert(key.bytes()), "{key:?} is there once");
            }
        }
        assert_eq!(keys.len() as u64, population.row_count());
    }

    #[test]
    fn names_lead_to_their_customers_by_first_name() {
        let sizes = Sizes { warehouses: 1, scale: 2 };
        let place = District { warehouse: 1, number: 1 };
        let rows = Population::new(sizes, 1, 7).rows(&Piece::District(place));
        let rows: BTreeMap<Key, Bytes> = rows.into_iter().collect();
        let mut count = 0;
        for (key, value) in &rows {
            let Key::Named(_, name) = key else { continue };
            let customers: Vec<u32> = decode(value).unwrap();
            let of = |customer: &u32| {
                decode::<Customer>(&rows[&Key::Customer(place, *customer)]).unwrap()
            };
            let firsts: Vec<String> = customers.iter().map(|one| of(one).first).collect();
            assert!(firsts.is_sorted());
            assert!(customers.iter().all(|one| of(one).last == *name));
            count += customers.len();
        }
        assert_eq!(count, 1_500, "each is found by the name");
    }
}
