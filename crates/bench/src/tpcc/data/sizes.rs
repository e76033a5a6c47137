//! How much data there is: the standard's cardinalities, divided by a scale.

use serde::{Deserialize, Serialize};

/// Districts of a warehouse, at any scale.
pub const DISTRICTS: u8 = 10;
/// The most warehouses of a run on real hosts.
pub const WAREHOUSES_MAX: u16 = 16;
/// The largest divisor: every district still has orders that are not delivered.
pub const SCALE_MAX: u32 = 100;
/// Customers of a district at scale 1, and its orders when it begins.
const CUSTOMERS: u32 = 3_000;
/// Items at scale 1, and the stocks of each warehouse.
const ITEMS: u32 = 100_000;
/// How many of a district's first orders are not delivered, of this many.
const UNDELIVERED: (u32, u32) = (900, 3_000);
/// How many last names there are.
pub const LAST_NAMES: u32 = 1_000;

/// The size of the data, as it is kept with the data (clause 1.2 and 4.3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sizes {
    /// Warehouses, numbered from 1.
    pub warehouses: u16,
    /// What customers, orders and items are divided by; 1 is the standard's size.
    pub scale: u32,
}

impl Sizes {
    /// Customers of each district; as many orders are there when it begins, one of each.
    #[must_use]
    pub fn customers(self) -> u32 {
        CUSTOMERS / self.scale
    }

    /// Items, and stocks of each warehouse.
    #[must_use]
    pub fn items(self) -> u32 {
        ITEMS / self.scale
    }

    /// The first of a district's orders that is not delivered when it begins.
    #[must_use]
    pub fn first_undelivered(self) -> u32 {
        self.customers() - self.customers() * UNDELIVERED.0 / UNDELIVERED.1 + 1
    }

    /// The last names that customers have: the first of them get one each.
    #[must_use]
    pub fn last_names(self) -> u32 {
        LAST_NAMES.min(self.customers())
    }

    /// Every warehouse.
    pub fn all_warehouses(self) -> impl Iterator<Item = u16> {
        1..=self.warehouses
    }

    /// Every district of every warehouse.
    pub fn all_districts(self) -> impl Iterator<Item = District> {
        let of = |warehouse| (1..=DISTRICTS).map(move |number| District { warehouse, number });
        self.all_warehouses().flat_map(of)
    }
}

/// A district of a warehouse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct District {
    /// Its warehouse, from 1.
    pub warehouse: u16,
    /// Its number in the warehouse, 1 to 10.
    pub number: u8,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_size_is_the_standards() {
        let full = Sizes { warehouses: 2, scale: 1 };
        assert_eq!((full.customers(), full.items(), full.last_names()), (3_000, 100_000, 1_000));
        assert_eq!(full.first_undelivered(), 2_101);
        assert_eq!(full.all_districts().count(), 20);
    }

    #[test]
    fn the_smallest_has_some_of_each() {
        let small = Sizes { warehouses: 1, scale: SCALE_MAX };
        assert_eq!((small.customers(), small.items(), small.last_names()), (30, 1_000, 30));
        assert_eq!(small.first_undelivered(), 22);
    }
}
