//! The consistency conditions of clause 3.3.2, over all rows, and what else must hold.
//!
//! Condition 11 holds only before the first Delivery, so it is left out; that each district has the
//! customers and at least the orders it began with is checked as its cardinality.

use std::collections::BTreeMap;

use super::facts::{CustomerFacts, DistrictFacts, Facts};
use super::violations::{Rule, Violation};
use crate::tpcc::data::sizes::{District, Sizes};

/// The conditions that are checked.
pub const CHECKED: [u8; 11] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12];
/// What stands for the highest number where there is none.
const NONE: i64 = 0;

/// All that does not hold of the tables of a size.
#[must_use]
pub fn judge(facts: &Facts, sizes: Sizes) -> Vec<Violation> {
    let mut verdict = Verdict::default();
    let items = (i64::from(facts.item_count), i64::from(sizes.items()));
    verdict.equal(Rule::Cardinality, "", ("rows in ITEM", items.0), ("loaded", items.1));
    let warehouses = facts.warehouses.len() as i64;
    let expected = i64::from(sizes.warehouses);
    verdict.equal(Rule::Cardinality, "", ("warehouses", warehouses), ("loaded", expected));
    let empty = DistrictFacts::default();
    for warehouse in sizes.all_warehouses() {
        warehouse_holds(&mut verdict, facts, sizes, warehouse);
    }
    for place in sizes.all_districts() {
        verdict.at(place.warehouse, Some(place.number));
        let district = facts.districts.get(&place).unwrap_or(&empty);
        district_holds(&mut verdict, district, sizes);
        orders_hold(&mut verdict, district);
        customers_hold(&mut verdict, district);
    }
    let strangers = facts.districts.keys().filter(|place| !is_of(sizes, place)).count() as i64;
    verdict.nowhere();
    verdict.equal(Rule::Cardinality, "", ("other districts", strangers), ("loaded", 0));
    verdict.violations
}

fn is_of(sizes: Sizes, place: &District) -> bool {
    sizes.all_districts().any(|of| of == *place)
}

/// Conditions 1 and 8.
fn warehouse_holds(verdict: &mut Verdict, facts: &Facts, sizes: Sizes, warehouse: u16) {
    verdict.at(warehouse, None);
    let known = facts.warehouses.get(&warehouse).cloned().unwrap_or_default();
    let rows = i64::from(known.is_there) + i64::from(known.ytd.is_some());
    verdict.equal(Rule::Cardinality, "", ("rows of WAREHOUSE", rows), ("loaded", 2));
    let stocks = ("rows in STOCK", i64::from(known.stock_count));
    verdict.equal(Rule::Cardinality, "", stocks, ("loaded", i64::from(sizes.items())));
    let of_it = |place: &&District| place.warehouse == warehouse;
    let districts = || facts.districts.iter().filter(|(place, _)| of_it(place)).map(|(_, of)| of);
    let ytd = ("W_YTD", known.ytd.unwrap_or_default());
    let sum = districts().map(|district| district.ytd.unwrap_or_default()).sum();
    verdict.equal(Rule::Condition(1), "", ytd, ("the sum of D_YTD", sum));
    let paid = districts().map(|district| district.paid).sum();
    verdict.equal(Rule::Condition(8), "", ytd, ("the sum of H_AMOUNT", paid));
}

/// Conditions 2, 3, 4 and 9, and that all rows are there.
fn district_holds(verdict: &mut Verdict, district: &DistrictFacts, sizes: Sizes) {
    let parts = [district.ytd.is_some(), district.next_order.is_some()];
    let others = [district.is_there, district.queue_head.is_some()];
    let rows = parts.iter().chain(&others).filter(|is_there| **is_there).count() as i64;
    verdict.equal(Rule::Cardinality, "", ("rows of DISTRICT", rows), ("loaded", 4));
    let accounts = district.customers.values().filter(|customer| customer.account.is_some());
    let customers = i64::from(sizes.customers());
    let there = ("rows in CUSTOMER", accounts.count() as i64);
    verdict.equal(Rule::Cardinality, "", there, ("loaded", customers));
    let named = ("customers found by name", i64::from(district.named_count));
    verdict.equal(Rule::Index, "", named, ("loaded", customers));

    let last = i64::from(district.next_order.unwrap_or_default()) - 1;
    let last = ("D_NEXT_O_ID less 1", last);
    let heads = || district.orders.iter().filter(|(_, order)| order.head.is_some());
    let newest = heads().next_back().map_or(NONE, |(order, _)| i64::from(*order));
    verdict.equal(Rule::Condition(2), "", last, ("the highest O_ID", newest));
    // Orders are numbered without gaps, so a lost one is seen.
    let count = ("rows in ORDER", heads().count() as i64);
    verdict.equal(Rule::Cardinality, "", count, last);
    let (oldest_new, newest_new) = (district.new_orders.first(), district.new_orders.last());
    if let (Some(oldest), Some(newest)) = (oldest_new, newest_new) {
        let (oldest, newest) = (i64::from(*oldest), i64::from(*newest));
        verdict.equal(Rule::Condition(2), "", last, ("the highest NO_O_ID", newest));
        let span = ("the span of NO_O_ID", newest - oldest + 1);
        let rows = ("rows in NEW-ORDER", district.new_orders.len() as i64);
        verdict.equal(Rule::Condition(3), "", span, rows);
    }
    let head = ("the head of the queue", i64::from(district.queue_head.unwrap_or_default()));
    let oldest = oldest_new.map_or(last.1 + 1, |order| i64::from(*order));
    verdict.equal(Rule::Index, "", head, ("the oldest order that waits", oldest));
    let counted = heads().filter_map(|(_, order)| order.head).map(|(_, count, _)| i64::from(count));
    let lines = district.orders.values().map(|order| i64::from(order.line_count)).sum();
    let rows = ("rows in ORDER-LINE", lines);
    verdict.equal(Rule::Condition(4), "", ("the sum of O_OL_CNT", counted.sum()), rows);
    let ytd = ("D_YTD", district.ytd.unwrap_or_default());
    verdict.equal(Rule::Condition(9), "", ytd, ("the sum of H_AMOUNT", district.paid));
}

/// Conditions 5, 6 and 7.
fn orders_hold(verdict: &mut Verdict, district: &DistrictFacts) {
    let mut newest: BTreeMap<u32, u32> = BTreeMap::new();
    for (number, order) in &district.orders {
        let of = format!("order {number}");
        let (customer, line_count, is_delivered) = order.head.unwrap_or_default();
        newest.insert(customer, *number);
        let waits = ("rows in NEW-ORDER", i64::from(district.new_orders.contains(number)));
        let expected = ("orders without a carrier", i64::from(!is_delivered));
        verdict.equal(Rule::Condition(5), &of, waits, expected);
        let rows = ("rows in ORDER-LINE", i64::from(order.line_count));
        verdict.equal(Rule::Condition(6), &of, ("O_OL_CNT", i64::from(line_count)), rows);
        let dated = ("lines with OL_DELIVERY_D", i64::from(order.delivered_count));
        let expected = if is_delivered { i64::from(order.line_count) } else { 0 };
        verdict.equal(Rule::Condition(7), &of, dated, ("lines that a carrier took", expected));
    }
    let stray = |order: &&u32| !district.orders.contains_key(order);
    let strays = district.new_orders.iter().filter(stray).count() as i64;
    let waits = ("rows in NEW-ORDER without an order", strays);
    verdict.equal(Rule::Condition(5), "", waits, ("rows that may be so", 0));
    for (customer, number) in &newest {
        let told = district.last_orders.get(customer).copied().unwrap_or_default();
        let told = ("the last order that is kept", i64::from(told));
        let of = format!("customer {customer}");
        verdict.equal(Rule::Index, &of, told, ("the highest O_ID", i64::from(*number)));
    }
}

/// Conditions 10 and 12.
fn customers_hold(verdict: &mut Verdict, district: &DistrictFacts) {
    let mut delivered: BTreeMap<u32, i64> = BTreeMap::new();
    for order in district.orders.values() {
        if let Some((customer, ..)) = order.head {
            *delivered.entry(customer).or_default() += order.delivered_amount;
        }
    }
    for (number, customer) in &district.customers {
        let CustomerFacts { account, paid } = customer;
        let (balance, ytd_payment) = account.unwrap_or_default();
        let delivered = delivered.get(number).copied().unwrap_or_default();
        let of = format!("customer {number}");
        let expected = ("what was delivered less H_AMOUNT", delivered - paid);
        verdict.equal(Rule::Condition(10), &of, ("C_BALANCE", balance), expected);
        let both = ("C_BALANCE and C_YTD_PAYMENT", balance + ytd_payment);
        verdict.equal(Rule::Condition(12), &of, both, ("what was delivered", delivered));
    }
}

/// What was found so far, and where it is looked.
#[derive(Default)]
struct Verdict {
    violations: Vec<Violation>,
    warehouse: Option<u16>,
    district: Option<u8>,
}

impl Verdict {
    fn at(&mut self, warehouse: u16, district: Option<u8>) {
        (self.warehouse, self.district) = (Some(warehouse), district);
    }

    fn nowhere(&mut self) {
        (self.warehouse, self.district) = (None, None);
    }

    fn equal(&mut self, rule: Rule, of: &str, left: (&str, i64), right: (&str, i64)) {
        if left.1 != right.1 {
            self.violations.push(Violation {
                rule,
                warehouse: self.warehouse,
                district: self.district,
                of: of.to_owned(),
                left_name: left.0.to_owned(),
                left: left.1,
                right_name: right.0.to_owned(),
                right: right.1,
            });
        }
    }
}
