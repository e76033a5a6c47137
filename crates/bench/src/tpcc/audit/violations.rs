//! What a condition that does not hold says: where, and what differs.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What must hold of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// A condition of clause 3.3.2, by its number there.
    Condition(u8),
    /// As many rows as were loaded, and as the standard's cardinalities have it.
    Cardinality,
    /// What is kept beside the standard's rows, to find them, says what they say.
    Index,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rule::Condition(number) => write!(f, "condition {number}"),
            Rule::Cardinality => f.write_str("cardinality"),
            Rule::Index => f.write_str("index"),
        }
    }
}

/// One number that is not what another one says. Money is in cents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// What does not hold.
    pub rule: Rule,
    /// Where; none of what all warehouses share.
    pub warehouse: Option<u16>,
    /// Where in the warehouse; none of the whole of it.
    pub district: Option<u8>,
    /// A customer or order there, in words; empty of the whole place.
    pub of: String,
    /// What the first number is.
    pub left_name: String,
    /// The first number.
    pub left: i64,
    /// What the second number is.
    pub right_name: String,
    /// The second number.
    pub right: i64,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.rule)?;
        if let Some(warehouse) = self.warehouse {
            write!(f, ", warehouse {warehouse}")?;
        }
        if let Some(district) = self.district {
            write!(f, ", district {district}")?;
        }
        if !self.of.is_empty() {
            write!(f, ", {}", self.of)?;
        }
        let is_money = matches!(self.rule, Rule::Condition(1 | 8 | 9 | 10 | 12));
        let number = |number: i64| if is_money { money(number) } else { number.to_string() };
        let (left, right) = (number(self.left), number(self.right));
        write!(f, ": {} is {left}, {} is {right}", self.left_name, self.right_name)
    }
}

/// Cents as they are written.
#[must_use]
pub fn money(cents: i64) -> String {
    let sign = if cents < 0 { "-" } else { "" };
    format!("{sign}{}.{:02}", cents.unsigned_abs() / 100, cents.unsigned_abs() % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_numbers_and_the_place_are_named() {
        let mut violation = Violation {
            rule: Rule::Condition(1),
            warehouse: Some(3),
            district: None,
            of: String::new(),
            left_name: "W_YTD".to_owned(),
            left: 1_234_567,
            right_name: "the sum of D_YTD".to_owned(),
            right: -5,
        };
        let text = "condition 1, warehouse 3: W_YTD is 12345.67, the sum of D_YTD is -0.05";
        assert_eq!(violation.to_string(), text);
        (violation.rule, violation.district) = (Rule::Cardinality, Some(10));
        violation.of = "order 7".to_owned();
        assert!(
            violation.to_string().starts_with("cardinality, warehouse 3, district 10, order 7")
        );
    }
}
