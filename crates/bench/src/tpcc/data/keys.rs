//! The keys of the nine tables: a letter, then numbers, with strokes between them.
//!
//! | key | row |
//! |---|---|
//! | `meta` | how large the data is; written last by the load |
//! | `w/W`, `wy/W` | WAREHOUSE; its W_YTD, a decimal number of cents |
//! | `d/W/D`, `dy/W/D` | DISTRICT; its D_YTD, a decimal number of cents |
//! | `dn/W/D` | its D_NEXT_O_ID, a decimal number |
//! | `dh/W/D` | its oldest order that is not delivered, a decimal number: the head of NEW-ORDER |
//! | `c/W/D/C` | CUSTOMER |
//! | `cn/W/D/NAME` | the customers of a last name, by first name: an index, which never changes |
//! | `cl/W/D/C` | a customer's last order, a decimal number: an index |
//! | `h/W/D/WRITER/N` | HISTORY, by who wrote it and a number, since it has no key of its own |
//! | `o/W/D/O`, `ol/W/D/O` | ORDER; its ORDER-LINEs as one value |
//! | `no/W/D/O` | NEW-ORDER, an empty value |
//! | `i/I`, `s/W/I` | ITEM; STOCK |
//! | `f/N` | the fence of terminal N, see `terminals/fence.rs` |
//!
//! What Payment adds to stands apart from its row (vertical partitioning, clause 1.4), so that it
//! is added to in place and two payments do not conflict. So does what each NewOrder changes of a
//! district.

use bytes::Bytes;

use crate::tpcc::data::sizes::District;

/// The key of a row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// How large the data is.
    Meta,
    /// What of a warehouse never changes.
    Warehouse(u16),
    /// What was paid in a warehouse.
    WarehouseYtd(u16),
    /// What of a district never changes.
    District(District),
    /// What was paid in a district.
    DistrictYtd(District),
    /// The number of the next order.
    NextOrder(District),
    /// The number of the oldest order that is not delivered; the next one's if all are.
    QueueHead(District),
    /// A customer.
    Customer(District, u32),
    /// The customers of a last name.
    Named(District, String),
    /// The number of a customer's last order.
    LastOrder(District, u32),
    /// A payment, where it was made.
    History(District, u64, u64),
    /// An order without its lines.
    Order(District, u32),
    /// All lines of an order.
    Lines(District, u32),
    /// An order that is not delivered.
    NewOrder(District, u32),
    /// An item.
    Item(u32),
    /// What a warehouse has of an item.
    Stock(u16, u32),
    /// What a terminal's transactions check.
    Fence(u32),
}

impl Key {
    /// As it is in the keyspace.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        let at =
            |tag: &str, place: &District| format!("{tag}/{}/{}", place.warehouse, place.number);
        let text = match self {
            Key::Meta => "meta".to_owned(),
            Key::Warehouse(warehouse) => format!("w/{warehouse}"),
            Key::WarehouseYtd(warehouse) => format!("wy/{warehouse}"),
            Key::District(place) => at("d", place),
            Key::DistrictYtd(place) => at("dy", place),
            Key::NextOrder(place) => at("dn", place),
            Key::QueueHead(place) => at("dh", place),
            Key::Customer(place, customer) => format!("{}/{customer}", at("c", place)),
            Key::Named(place, name) => format!("{}/{name}", at("cn", place)),
            Key::LastOrder(place, customer) => format!("{}/{customer}", at("cl", place)),
            Key::History(place, writer, number) => {
                format!("{}/{writer}/{number}", at("h", place))
            }
            Key::Order(place, order) => format!("{}/{order}", at("o", place)),
            Key::Lines(place, order) => format!("{}/{order}", at("ol", place)),
            Key::NewOrder(place, order) => format!("{}/{order}", at("no", place)),
            Key::Item(item) => format!("i/{item}"),
            Key::Stock(warehouse, item) => format!("s/{warehouse}/{item}"),
            Key::Fence(terminal) => format!("f/{terminal}"),
        };
        Bytes::from(text)
    }

    /// The key of these bytes; none if they are of nothing that is written here.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Key> {
        let text = std::str::from_utf8(bytes).ok()?;
        let parts: Vec<&str> = text.split('/').collect();
        let small = |at: usize| parts.get(at)?.parse::<u32>().ok();
        let warehouse = || parts.get(1)?.parse().ok();
        let place = || {
            let number = parts.get(2)?.parse().ok()?;
            Some(District { warehouse: warehouse()?, number })
        };
        let key = match parts[0] {
            "meta" => Key::Meta,
            "w" => Key::Warehouse(warehouse()?),
            "wy" => Key::WarehouseYtd(warehouse()?),
            "d" => Key::District(place()?),
            "dy" => Key::DistrictYtd(place()?),
            "dn" => Key::NextOrder(place()?),
            "dh" => Key::QueueHead(place()?),
            "c" => Key::Customer(place()?, small(3)?),
            "cn" => Key::Named(place()?, (*parts.get(3)?).to_owned()),
            "cl" => Key::LastOrder(place()?, small(3)?),
            "h" => {
                let long = |at: usize| parts.get(at)?.parse::<u64>().ok();
                Key::History(place()?, long(3)?, long(4)?)
            }
            "o" => Key::Order(place()?, small(3)?),
            "ol" => Key::Lines(place()?, small(3)?),
            "no" => Key::NewOrder(place()?, small(3)?),
            "i" => Key::Item(small(1)?),
            "s" => Key::Stock(warehouse()?, small(2)?),
            "f" => Key::Fence(small(1)?),
            _ => return None,
        };
        // Nothing else may stand for the same key, such as a number with zeros before it.
        (key.bytes() == bytes).then_some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_what_they_were() {
        let place = District { warehouse: 3, number: 10 };
        for (key, text) in [
            (Key::Meta, "meta"),
            (Key::Warehouse(3), "w/3"),
            (Key::WarehouseYtd(3), "wy/3"),
            (Key::District(place), "d/3/10"),
            (Key::DistrictYtd(place), "dy/3/10"),
            (Key::NextOrder(place), "dn/3/10"),
            (Key::QueueHead(place), "dh/3/10"),
            (Key::Customer(place, 2_999), "c/3/10/2999"),
            (Key::Named(place, "BARBARBAR".to_owned()), "cn/3/10/BARBARBAR"),
            (Key::LastOrder(place, 7), "cl/3/10/7"),
            (Key::History(place, u64::MAX, 9), "h/3/10/18446744073709551615/9"),
            (Key::Order(place, 3_001), "o/3/10/3001"),
            (Key::Lines(place, 3_001), "ol/3/10/3001"),
            (Key::NewOrder(place, 3_001), "no/3/10/3001"),
            (Key::Item(100_000), "i/100000"),
            (Key::Stock(16, 1), "s/16/1"),
            (Key::Fence(31), "f/31"),
        ] {
            assert_eq!(key.bytes(), text);
            assert_eq!(Key::parse(text.as_bytes()), Some(key));
        }
    }

    #[test]
    fn foreign_keys_are_none() {
        for text in ["", "x/1", "w", "w/", "w/01", "w/1/2", "w/70000", "c/1/2", "d/1/300", "i/-1"] {
            assert_eq!(Key::parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(Key::parse(&[0xff]), None);
    }
}
