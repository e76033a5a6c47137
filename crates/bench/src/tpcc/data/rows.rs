//! The rows of the tables as values: their fields one after the other in postcard's encoding, which
//! is stable. Money is in cents, a rate in hundredths of a percent, a date in milliseconds since
//! 1970. What the key says is not repeated.

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::tpcc::data::sizes::{District, Sizes};

/// The layout of keys and rows; another one has another number.
pub const LAYOUT: u32 = 1;

/// What the load says of the data once all of it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// [`LAYOUT`] when it was written.
    pub layout: u32,
    /// How much there is.
    pub sizes: Sizes,
    /// The constant that last names were drawn with; runs draw with another (clause 2.1.6.1).
    pub name_constant: u32,
}

/// Where somebody is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    /// Two lines.
    pub streets: [String; 2],
    /// A city.
    pub city: String,
    /// Two letters.
    pub state: String,
    /// Nine digits.
    pub zip: String,
}

/// WAREHOUSE without W_YTD, and DISTRICT without D_YTD and D_NEXT_O_ID.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// 6 to 10 letters.
    pub name: String,
    /// Its address.
    pub address: Address,
    /// The sales tax, at most 2,000.
    pub tax: u32,
}

/// CUSTOMER.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Customer {
    /// 8 to 16 letters.
    pub first: String,
    /// Two letters.
    pub middle: String,
    /// One of the thousand last names.
    pub last: String,
    /// Their address.
    pub address: Address,
    /// 16 digits.
    pub phone: String,
    /// When the customer was entered.
    pub since: u64,
    /// Good credit, C_CREDIT = GC; else BC.
    pub is_good: bool,
    /// C_CREDIT_LIM.
    pub credit_limit: i64,
    /// At most 5,000.
    pub discount: u32,
    /// What is owed is below zero.
    pub balance: i64,
    /// All that was paid.
    pub ytd_payment: i64,
    /// How often something was paid.
    pub payment_count: u32,
    /// How often something was delivered.
    pub delivery_count: u32,
    /// 300 to 500 letters; for bad credit the last payments too.
    pub data: String,
}

/// HISTORY.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// Where the customer is, who may pay elsewhere.
    pub home: District,
    /// Who paid.
    pub customer: u32,
    /// When.
    pub date: u64,
    /// How much.
    pub amount: i64,
    /// Names of warehouse and district.
    pub data: String,
}

/// ORDER.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Who ordered.
    pub customer: u32,
    /// O_ENTRY_D.
    pub entered: u64,
    /// Who delivered it; none before.
    pub carrier: Option<u8>,
    /// O_OL_CNT.
    pub line_count: u32,
    /// All lines are supplied by the warehouse that was asked.
    pub is_all_local: bool,
}

/// ORDER-LINE.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// What was ordered.
    pub item: u32,
    /// The warehouse that supplies it.
    pub supplier: u16,
    /// When it was delivered; none before.
    pub delivered: Option<u64>,
    /// How many pieces.
    pub quantity: u32,
    /// OL_AMOUNT.
    pub amount: i64,
    /// S_DIST_xx of the stock.
    pub info: String,
}

/// ITEM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// I_IM_ID.
    pub image: u32,
    /// 14 to 24 letters.
    pub name: String,
    /// A piece.
    pub price: i64,
    /// 26 to 50 letters; every tenth is an original.
    pub data: String,
}

/// STOCK.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stock {
    /// How many pieces there are.
    pub quantity: i32,
    /// 24 letters for each district.
    pub infos: [String; 10],
    /// Pieces that were ordered.
    pub ytd: u32,
    /// How often it was ordered.
    pub order_count: u32,
    /// How often by another warehouse.
    pub remote_count: u32,
    /// 26 to 50 letters; every tenth is an original.
    pub data: String,
}

/// A row as a value.
#[must_use]
pub fn encode(row: &impl Serialize) -> Bytes {
    let bytes = postcard::to_allocvec(row).expect("a row has only lists of known length");
    Bytes::from(bytes)
}

/// The row of a value; none if it is no such row.
#[must_use]
pub fn decode<T: DeserializeOwned>(value: &[u8]) -> Option<T> {
    match postcard::take_from_bytes(value) {
        Ok((row, [])) => Some(row),
        _ => None,
    }
}

/// A whole number as a decimal value, as the engine adds to.
#[must_use]
pub fn number(number: i64) -> Bytes {
    Bytes::from(number.to_string())
}

/// The whole number of a decimal value.
#[must_use]
pub fn parse<T: std::str::FromStr>(value: &[u8]) -> Option<T> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_encoded_as_they_were() {
        let order = Order {
            customer: 300,
            entered: 5,
            carrier: Some(7),
            line_count: 2,
            is_all_local: true,
        };
        assert_eq!(encode(&order)[..], [0xac, 2, 5, 1, 7, 2, 1]);
        let line = Line {
            item: 1,
            supplier: 2,
            delivered: None,
            quantity: 5,
            amount: -3,
            info: "ab".to_owned(),
        };
        assert_eq!(encode(&vec![line.clone()])[..], [1, 1, 2, 0, 5, 5, 2, b'a', b'b']);
        assert_eq!(decode::<Vec<Line>>(&encode(&vec![line.clone()])), Some(vec![line]));
        assert_eq!(decode::<Order>(&encode(&order)), Some(order));
        let sizes = Sizes { warehouses: 4, scale: 1 };
        let meta = Meta { layout: LAYOUT, sizes, name_constant: 42 };
        assert_eq!(encode(&meta)[..], [1, 4, 1, 42]);
    }

    #[test]
    fn other_bytes_are_no_row() {
        assert_eq!(decode::<Order>(b""), None);
        assert_eq!(decode::<Order>(&[0xac, 2, 5, 1, 7, 2, 1, 0]), None, "something follows");
        assert_eq!(parse::<i64>(&number(-12)), Some(-12));
        assert_eq!(parse::<u32>(b"1x"), None);
    }
}
