//! Which transaction comes next, and about what: the mix of clause 5.2.3 and the input of
//! clauses 2.4.1 to 2.8.1.

use quorate_kernel::rng::Rng;
use serde::{Deserialize, Serialize};

use crate::tpcc::data::draws::{self, Constants};
use crate::tpcc::data::sizes::{DISTRICTS, District, Sizes};

/// The five transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A customer orders 5 to 15 items.
    NewOrder,
    /// A customer pays.
    Payment,
    /// What a customer ordered last.
    OrderStatus,
    /// The oldest order of each district of a warehouse is delivered.
    Delivery,
    /// How many of the items that were ordered last are scarce.
    StockLevel,
}

impl Kind {
    /// All of them, with their shares in percent.
    pub const MIX: [(Kind, u64); 5] = [
        (Kind::NewOrder, 45),
        (Kind::Payment, 43),
        (Kind::OrderStatus, 4),
        (Kind::Delivery, 4),
        (Kind::StockLevel, 4),
    ];

    /// The standard's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::NewOrder => "NewOrder",
            Kind::Payment => "Payment",
            Kind::OrderStatus => "OrderStatus",
            Kind::Delivery => "Delivery",
            Kind::StockLevel => "StockLevel",
        }
    }

    fn draw(rng: &mut Rng) -> Kind {
        let mut percent = rng.below(100);
        for (kind, share) in Kind::MIX {
            if percent < share {
                return kind;
            }
            percent -= share;
        }
        unreachable!("the shares are a hundred percent")
    }
}

/// How a customer is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// By number.
    Number(u32),
    /// By a last name, which several may have.
    Name(String),
}

/// One line of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// An item; one that no warehouse has stands for a mistake, and the order is rolled back.
    pub item: u32,
    /// The warehouse that supplies it.
    pub supplier: u16,
    /// How many pieces, 1 to 10.
    pub quantity: u32,
}

/// What a terminal asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// See [`Kind::NewOrder`].
    NewOrder {
        /// Where it is ordered.
        place: District,
        /// Who orders there.
        customer: u32,
        /// 5 to 15.
        lines: Vec<Wanted>,
    },
    /// See [`Kind::Payment`].
    Payment {
        /// Where it is paid.
        place: District,
        /// Where the customer is at home.
        home: District,
        /// Who pays.
        customer: Selection,
        /// In cents.
        amount: i64,
    },
    /// See [`Kind::OrderStatus`].
    OrderStatus {
        /// Where the customer is at home.
        home: District,
        /// Who asks.
        customer: Selection,
    },
    /// See [`Kind::Delivery`].
    Delivery {
        /// Whose ten districts.
        warehouse: u16,
        /// Who delivers, 1 to 10.
        carrier: u8,
    },
    /// See [`Kind::StockLevel`].
    StockLevel {
        /// The terminal's own.
        place: District,
        /// What is less is scarce, 10 to 20.
        threshold: i32,
    },
}

impl Input {
    /// Which of the five it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Input::NewOrder { .. } => Kind::NewOrder,
            Input::Payment { .. } => Kind::Payment,
            Input::OrderStatus { .. } => Kind::OrderStatus,
            Input::Delivery { .. } => Kind::Delivery,
            Input::StockLevel { .. } => Kind::StockLevel,
        }
    }
}

/// Draws what one terminal asks for, for ever.
#[derive(Debug)]
pub struct Inputs {
    sizes: Sizes,
    constants: Constants,
    /// The terminal's warehouse, and the district whose stock it looks at.
    own: District,
    rng: Rng,
}

impl Inputs {
    /// The input of a terminal, given by its number. Terminals are spread over the districts.
    #[must_use]
    pub fn new(sizes: Sizes, constants: Constants, terminal: u32, rng: Rng) -> Inputs {
        let warehouses = u32::from(sizes.warehouses);
        let own = District {
            warehouse: (terminal % warehouses) as u16 + 1,
            number: (terminal / warehouses % u32::from(DISTRICTS)) as u8 + 1,
        };
        Inputs { sizes, constants, own, rng }
    }

    /// The next one.
    pub fn draw(&mut self) -> Input {
        let kind = Kind::draw(&mut self.rng);
        let place = self.district_of(self.own.warehouse);
        match kind {
            Kind::NewOrder => self.new_order(place),
            Kind::Payment => {
                let home = match self.rng.below(100) < 85 {
                    true => place,
                    false => {
                        let warehouse = self.other_warehouse();
                        self.district_of(warehouse)
                    }
                };
                let customer = self.selection();
                let amount = self.rng.between(100, 500_000) as i64;
                Input::Payment { place, home, customer, amount }
            }
            Kind::OrderStatus => Input::OrderStatus { home: place, customer: self.selection() },
            Kind::Delivery => {
                let carrier = self.rng.between(1, 10) as u8;
                Input::Delivery { warehouse: self.own.warehouse, carrier }
            }
            Kind::StockLevel => {
                let threshold = self.rng.between(10, 20) as i32;
                Input::StockLevel { place: self.own, threshold }
            }
        }
    }

    fn new_order(&mut self, place: District) -> Input {
        let customer = draws::customer(&mut self.rng, &self.constants, self.sizes);
        let count = self.rng.between(5, 15) as usize;
        let mut lines: Vec<Wanted> = (0..count).map(|_| self.wanted()).collect();
        if self.rng.below(100) == 0 {
            lines[count - 1].item = self.sizes.items() + 1;
        }
        Input::NewOrder { place, customer, lines }
    }

    fn wanted(&mut self) -> Wanted {
        let item = draws::item(&mut self.rng, &self.constants, self.sizes);
        let is_remote = self.rng.below(100) == 0;
        let supplier = if is_remote { self.other_warehouse() } else { self.own.warehouse };
        Wanted { item, supplier, quantity: self.rng.between(1, 10) as u32 }
    }

    fn selection(&mut self) -> Selection {
        let (rng, constants) = (&mut self.rng, &self.constants);
        match rng.below(100) < 60 {
            true => {
                let number = draws::name_number(rng, constants, self.sizes);
                Selection::Name(draws::last_name(number))
            }
            false => Selection::Number(draws::customer(rng, constants, self.sizes)),
        }
    }

    fn district_of(&mut self, warehouse: u16) -> District {
        District { warehouse, number: self.rng.between(1, u64::from(DISTRICTS)) as u8 }
    }

    /// Another warehouse than the terminal's; its own where there is one only.
    fn other_warehouse(&mut self) -> u16 {
        let others = u64::from(self.sizes.warehouses) - 1;
        if others == 0 {
            return self.own.warehouse;
        }
        let drawn = self.rng.between(1, others) as u16;
        if drawn < self.own.warehouse { drawn } else { drawn + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const SIZES: Sizes = Sizes { warehouses: 4, scale: 1 };

    fn inputs(sizes: Sizes, terminal: u32) -> Inputs {
        Inputs::new(sizes, Constants::of_run(1, 42), terminal, Rng::new(u64::from(terminal)))
    }

    /// How many of these are so, per 1,000.
    fn share<T>(all: &[T], is: impl Fn(&T) -> bool) -> usize {
        all.iter().filter(|one| is(one)).count() * 1_000 / all.len()
    }

    #[test]
    fn the_mix_has_its_shares() {
        let mut inputs = inputs(SIZES, 0);
        let mut counts: BTreeMap<Kind, u64> = BTreeMap::new();
        for _ in 0..20_000 {
            *counts.entry(inputs.draw().kind()).or_default() += 1;
        }
        for (kind, percent) in Kind::MIX {
            let off = counts[&kind].abs_diff(percent * 200);
            assert!(off < 250, "{}: {counts:?}", kind.name());
        }
    }

    #[test]
    fn orders_are_as_clause_2_4_1_has_them() {
        let mut inputs = inputs(SIZES, 5);
        let mut orders = Vec::new();
        while orders.len() < 20_000 {
            if let Input::NewOrder { place, customer, lines } = inputs.draw() {
                assert!(place.warehouse == 2 && (1..=10).contains(&place.number));
                assert!((1..=3_000).contains(&customer) && (5..=15).contains(&lines.len()));
                orders.push(lines);
            }
        }
        let is_wrong = |lines: &Vec<Wanted>| lines.last().unwrap().item > SIZES.items();
        assert!((5..=15).contains(&share(&orders, is_wrong)), "a hundredth is rolled back");
        let lines = orders.concat();
        assert!((5..=15).contains(&share(&lines, |line| line.supplier != 2)), "remote");
        assert!(lines.iter().all(|line| (1..=10).contains(&line.quantity)));
        assert!(lines.iter().all(|line| (1..=4).contains(&line.supplier)));
    }

    #[test]
    fn payments_are_as_clause_2_5_1_has_them() {
        let mut inputs = inputs(SIZES, 3);
        let mut payments = Vec::new();
        while payments.len() < 10_000 {
            if let Input::Payment { place, home, customer, amount } = inputs.draw() {
                assert!(place.warehouse == 4 && (100..=500_000).contains(&amount));
                payments.push((home, customer));
            }
        }
        let remote = share(&payments, |(home, _)| home.warehouse != 4);
        assert!((130..=170).contains(&remote), "{remote}");
        let named = share(&payments, |(_, who)| matches!(who, Selection::Name(_)));
        assert!((570..=630).contains(&named), "{named}");
    }

    #[test]
    fn one_warehouse_has_no_other() {
        let mut inputs = inputs(Sizes { warehouses: 1, scale: 100 }, 12);
        assert_eq!(inputs.own, District { warehouse: 1, number: 3 });
        for _ in 0..2_000 {
            match inputs.draw() {
                Input::NewOrder { lines, .. } => {
                    assert!(lines.iter().all(|line| line.supplier == 1));
                }
                Input::Payment { home, .. } => assert_eq!(home.warehouse, 1),
                Input::StockLevel { place, threshold } => {
                    assert_eq!((place, (10..=20).contains(&threshold)), (inputs.own, true));
                }
                Input::OrderStatus { .. } | Input::Delivery { .. } => {}
            }
        }
    }
}
