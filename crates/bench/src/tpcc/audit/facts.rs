//! What the conditions need to know of the rows, gathered row by row in any order.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::DeserializeOwned;

use crate::tpcc::data::keys::Key;
use crate::tpcc::data::rows::{self, Customer, History, Item, Line, Meta, Order, Site, Stock};
use crate::tpcc::data::sizes::District;

/// What is known of all rows.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Rows of any kind.
    pub row_count: u64,
    /// ITEM.
    pub item_count: u32,
    /// By their numbers.
    pub warehouses: BTreeMap<u16, WarehouseFacts>,
    /// By their places.
    pub districts: BTreeMap<District, DistrictFacts>,
}

/// What is known of a warehouse.
#[derive(Clone, Debug, Default)]
pub struct WarehouseFacts {
    /// It has a row.
    pub is_there: bool,
    /// W_YTD, if it has one.
    pub ytd: Option<i64>,
    /// STOCK.
    pub stock_count: u32,
}

/// What is known of a district.
#[derive(Clone, Debug, Default)]
pub struct DistrictFacts {
    /// It has a row.
    pub is_there: bool,
    /// D_YTD, if it has one.
    pub ytd: Option<i64>,
    /// D_NEXT_O_ID, if it has one.
    pub next_order: Option<u32>,
    /// The head of its queue, if it has one.
    pub queue_head: Option<u32>,
    /// H_AMOUNT of all payments that were made here.
    pub paid: i64,
    /// By their numbers.
    pub customers: BTreeMap<u32, CustomerFacts>,
    /// By their numbers.
    pub orders: BTreeMap<u32, OrderFacts>,
    /// NO_O_ID.
    pub new_orders: BTreeSet<u32>,
    /// Customers that are found by their last names.
    pub named_count: u32,
    /// The last order of each customer.
    pub last_orders: BTreeMap<u32, u32>,
}

/// What is known of a customer.
#[derive(Clone, Debug, Default)]
pub struct CustomerFacts {
    /// C_BALANCE and C_YTD_PAYMENT, if there is a row.
    pub account: Option<(i64, i64)>,
    /// H_AMOUNT of all payments, wherever they were made.
    pub paid: i64,
}

/// What is known of an order.
#[derive(Clone, Debug, Default)]
pub struct OrderFacts {
    /// O_C_ID, O_OL_CNT, and whether a carrier delivered it, if there is a row.
    pub head: Option<(u32, u32, bool)>,
    /// Its lines.
    pub line_count: u32,
    /// How many of them are delivered.
    pub delivered_count: u32,
    /// OL_AMOUNT of those.
    pub delivered_amount: i64,
}

impl Facts {
    /// Takes a row.
    ///
    /// # Errors
    /// It is none of the tables', or not encoded as one.
    pub fn add(&mut self, key: &[u8], value: &[u8]) -> Result<(), String> {
        let name = || String::from_utf8_lossy(key).into_owned();
        let parsed =
            Key::parse(key).ok_or_else(|| format!("{} is no key of the tables", name()))?;
        self.row_count += 1;
        self.take(parsed, value).ok_or_else(|| format!("the value of {} is no row", name()))
    }

    fn take(&mut self, key: Key, value: &[u8]) -> Option<()> {
        match key {
            Key::Meta => is::<Meta>(value)?,
            Key::Fence(_) => {}
            Key::Item(_) => {
                is::<Item>(value)?;
                self.item_count += 1;
            }
            Key::Warehouse(warehouse) => {
                is::<Site>(value)?;
                self.warehouses.entry(warehouse).or_default().is_there = true;
            }
            Key::WarehouseYtd(warehouse) => {
                self.warehouses.entry(warehouse).or_default().ytd = Some(rows::parse(value)?);
            }
            Key::Stock(warehouse, _) => {
                is::<Stock>(value)?;
                self.warehouses.entry(warehouse).or_default().stock_count += 1;
            }
            Key::History(place, ..) => {
                let history: History = rows::decode(value)?;
                self.districts.entry(place).or_default().paid += history.amount;
                let home = self.districts.entry(history.home).or_default();
                home.customers.entry(history.customer).or_default().paid += history.amount;
            }
            Key::District(place)
            | Key::DistrictYtd(place)
            | Key::NextOrder(place)
            | Key::QueueHead(place)
            | Key::Customer(place, _)
            | Key::Named(place, _)
            | Key::LastOrder(place, _)
            | Key::Order(place, _)
            | Key::Lines(place, _)
            | Key::NewOrder(place, _) => {
                self.districts.entry(place).or_default().take(&key, value)?;
            }
        }
        Some(())
    }
}

impl DistrictFacts {
    fn take(&mut self, key: &Key, value: &[u8]) -> Option<()> {
        match key {
            Key::District(_) => {
                is::<Site>(value)?;
                self.is_there = true;
            }
            Key::DistrictYtd(_) => self.ytd = Some(rows::parse(value)?),
            Key::NextOrder(_) => self.next_order = Some(rows::parse(value)?),
            Key::QueueHead(_) => self.queue_head = Some(rows::parse(value)?),
            Key::Customer(_, customer) => {
                let row: Customer = rows::decode(value)?;
                let account = Some((row.balance, row.ytd_payment));
                self.customers.entry(*customer).or_default().account = account;
            }
            Key::Named(..) => {
                let customers: Vec<u32> = rows::decode(value)?;
                self.named_count += customers.len() as u32;
            }
            Key::LastOrder(_, customer) => {
                self.last_orders.insert(*customer, rows::parse(value)?);
            }
            Key::Order(_, order) => {
                let row: Order = rows::decode(value)?;
                let head = (row.customer, row.line_count, row.carrier.is_some());
                self.orders.entry(*order).or_default().head = Some(head);
            }
            Key::Lines(_, order) => {
                let lines: Vec<Line> = rows::decode(value)?;
                let delivered = lines.iter().filter(|line| line.delivered.is_some());
                let facts = self.orders.entry(*order).or_default();
                facts.line_count = lines.len() as u32;
                facts.delivered_count = delivered.clone().count() as u32;
                facts.delivered_amount = delivered.map(|line| line.amount).sum();
            }
            Key::NewOrder(_, order) => {
                self.new_orders.insert(*order);
            }
            _ => unreachable!("only keys of a district come here"),
        }
        Some(())
    }
}

/// Whether a value is such a row.
fn is<T: DeserializeOwned>(value: &[u8]) -> Option<()> {
    rows::decode::<T>(value).map(drop)
}
