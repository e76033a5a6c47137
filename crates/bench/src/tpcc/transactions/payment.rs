//! Payment (clause 2.5): the customer's row is checked and put; W_YTD and D_YTD are added to in
//! place, so that all payments of a warehouse may be done side by side.

use super::{Attempt, Done};
use crate::tpcc::data::keys::Key;
use crate::tpcc::data::rows::{Customer, History, Site, encode};
use crate::tpcc::data::sizes::District;
use crate::tpcc::inputs::Selection;
use crate::tpcc::tables::{Failure, damaged, row};

/// The longest C_DATA.
const DATA_LETTERS_MAX: usize = 500;

pub(super) async fn run(
    attempt: &Attempt<'_>,
    place: District,
    home: District,
    customer: &Selection,
    amount: i64,
) -> Result<Done, Failure> {
    let customer = attempt.select(home, customer).await?;
    let keys =
        [Key::Warehouse(place.warehouse), Key::District(place), Key::Customer(home, customer)];
    let read = attempt.tables.read(&keys).await?;
    let warehouse: Site = row(&keys[0], read[0].as_ref())?;
    let district: Site = row(&keys[1], read[1].as_ref())?;
    let mut payer: Customer = row(&keys[2], read[2].as_ref())?;
    let before = read[2].clone().ok_or_else(|| damaged(&keys[2]))?;

    pay(&mut payer, amount);
    if !payer.is_good {
        note(
            &mut payer.data,
            &format!(
                "{customer} {} {} {} {} {amount}|",
                home.number, home.warehouse, place.number, place.warehouse
            ),
        );
    }
    let history = History {
        home,
        customer,
        date: attempt.date,
        amount,
        data: format!("{}    {}", warehouse.name, district.name),
    };
    let commit = attempt
        .begin()
        .check(keys[2].bytes(), before)
        .put(keys[2].bytes(), encode(&payer))
        .add(Key::WarehouseYtd(place.warehouse).bytes(), amount)
        .add(Key::DistrictYtd(place).bytes(), amount)
        .put(Key::History(place, attempt.writer, attempt.number).bytes(), encode(&history));
    attempt.commit(commit).await?;
    Ok(Done::of(amount))
}

fn pay(customer: &mut Customer, amount: i64) {
    customer.balance -= amount;
    customer.ytd_payment += amount;
    customer.payment_count += 1;
}

/// Puts a note before C_DATA, whose end is cut off.
fn note(data: &mut String, note: &str) {
    data.insert_str(0, note);
    assert!(data.is_ascii(), "letters and notes are of one byte");
    data.truncate(DATA_LETTERS_MAX);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_push_out_the_end() {
        let mut data = "x".repeat(498);
        note(&mut data, "1 2|");
        assert!(data.starts_with("1 2|xx") && data.len() == 500);
        let mut short = "end".to_owned();
        note(&mut short, "a|");
        assert_eq!(short, "a|end");
    }
}
